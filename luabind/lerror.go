package luabind

import (
	"context"
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// LuaError is an error that a Lua function raised, as Go code gets it.
type LuaError struct {
	Value     lua.LValue // what was raised, the very value
	Message   string     // its text, with file:line in front
	Traceback string     // every Lua frame, innermost first, one a line
	cause     error      // the Go error inside Value, when there is one
	place     string     // where it was raised
}

// raised answers e as it was on its way up, to be raised again.
func (e *LuaError) raised() *raised {
	return &raised{value: e.Value, trace: e.Traceback, place: e.place}
}

// Error answers the message.
func (e *LuaError) Error() string { return e.Message }

// Unwrap answers the Go error that the host had raised, if it was one.
func (e *LuaError) Unwrap() error { return e.cause }

// LimitError ends a run that hit one of its [Limits]. No pcall catches it.
type LimitError struct {
	Limit     string // "instructions", "time", "memory"
	Message   string // "script.lua:3: instruction limit of 1000 reached"
	Traceback string
}

// Error answers the message.
func (e *LimitError) Error() string { return e.Message }

// AbortError ends the Lua of a run that was cancelled or of a task that did
// not end in its grace. No pcall catches it.
type AbortError struct {
	Cause     error
	Traceback string // where the Lua was
}

// Error answers the cause's text.
func (e *AbortError) Error() string { return e.Cause.Error() }

// Unwrap answers the cause.
func (e *AbortError) Unwrap() error { return e.Cause }

// PanicError is a Go panic under a host function or inside the VM: a bug of the
// host, reported to the script as an error of kind "panic".
type PanicError struct {
	Panic any
	Stack string // of the goroutine that panicked
}

// Error answers "BUG: <panic>".
func (e *PanicError) Error() string {
	if text := strings.TrimPrefix(toText(e.Panic), "BUG: "); text != "" {
		return "BUG: " + text
	}
	return "BUG: panic without a text"
}

// CancelError is what a blocking call answers when its task was cancelled.
type CancelError struct{ Cause error }

// Error answers "task cancelled", with the cause when it says more.
func (e *CancelError) Error() string {
	if e.Cause == nil || errors.Is(e.Cause, context.Canceled) {
		return "task cancelled"
	}
	return "task cancelled: " + e.Cause.Error()
}

// Unwrap answers the cause; it is a [context.Canceled] too.
func (e *CancelError) Unwrap() []error { return []error{context.Canceled, e.Cause} }

func cancelled(ctx context.Context) error { return &CancelError{context.Cause(ctx)} }

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Fault is how a Go error looks to a script: a value with these fields whose
// tostring is Text.
type Fault struct {
	Kind      string // "" when the error has none
	Method    string // the call that failed: "append", "std.sh.run"
	Retryable bool
	Message   string
	Text      string // empty: "<method>: <message>"
}

// errorBox is the userdata of a raised Go error.
type errorBox struct {
	err   error
	fault Fault
	trace string // of where it was raised, once it was caught
	place string // the position in front of its text
}

// ErrorValue answers err as the value a script gets when it is raised, with the
// fields kind, method, retryable and message. An error that Lua raised before
// is the value it was.
func (vm *VM) ErrorValue(err error) lua.LValue { return vm.errorValue(err, "") }

// ErrorFrom answers the Go error behind a raised value.
func ErrorFrom(v lua.LValue) (error, bool) {
	if box, ok := boxOf(v); ok {
		return box.err, true
	}
	return nil, false
}

// FaultFrom answers the fields of a raised Go error.
func FaultFrom(v lua.LValue) (Fault, bool) {
	if box, ok := boxOf(v); ok {
		return box.fault, true
	}
	return Fault{}, false
}

// RaiseValue raises v in the Lua function that called, as it is.
func RaiseValue(l *lua.LState, v lua.LValue) { throw(l, v) }

func boxOf(v lua.LValue) (*errorBox, bool) {
	ud, ok := v.(*lua.LUserData)
	if !ok {
		return nil, false
	}
	box, ok := ud.Value.(*errorBox)
	return box, ok
}

func (vm *VM) errorValue(err error, place string) lua.LValue {
	if already, ok := err.(*LuaError); ok {
		return already.Value
	}
	box := &errorBox{err: err, fault: vm.fault(err, place)}
	return &lua.LUserData{Value: box, Env: vm.root.G.Global, Metatable: vm.errorMeta}
}

// fault asks the host modules what err is; the rest has no kind of its own.
func (vm *VM) fault(err error, place string) Fault {
	for _, m := range vm.config.Modules {
		if m.Fault == nil {
			continue
		}
		if f, ok := m.Fault(err); ok {
			return completed(f, place, err)
		}
	}
	return completed(Fault{Kind: kindOf(err)}, place, err)
}

func completed(f Fault, place string, err error) Fault {
	if f.Method == "" {
		f.Method = place
	}
	if f.Message == "" {
		f.Message = err.Error()
	}
	if f.Text == "" {
		f.Text = f.Message
		if f.Method != "" && !strings.HasPrefix(f.Text, f.Method+":") {
			f.Text = f.Method + ": " + f.Text
		}
	}
	return f
}

func kindOf(err error) string {
	var bug *PanicError
	switch {
	case errors.As(err, &bug):
		return "panic"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return ""
}

// newErrorMeta makes the metatable of raised Go errors.
func (vm *VM) newErrorMeta() *lua.LTable {
	mt := vm.root.CreateTable(0, 5)
	for name, fn := range map[string]lua.LGFunction{
		"__index": errorField, "__newindex": errorSetField, "__tostring": errorText, "__concat": errorConcat,
	} {
		mt.RawSetString(name, vm.root.NewFunction(fn))
	}
	mt.RawSetString("__metatable", lua.LString("error"))
	return mt
}

func errorField(l *lua.LState) int {
	f, _ := FaultFrom(l.Get(1))
	switch lua.LVAsString(l.Get(2)) {
	case "kind":
		l.Push(textOrNil(f.Kind))
	case "method":
		l.Push(textOrNil(f.Method))
	case "retryable":
		l.Push(lua.LBool(f.Retryable))
	case "message":
		l.Push(lua.LString(f.Message))
	default:
		l.Push(lua.LNil)
	}
	return 1
}

func errorSetField(l *lua.LState) int {
	raiseAt(l, 1, "error: field %s cannot be set, a raised error is read-only", show(l.Get(2)))
	return 0
}

func errorText(l *lua.LState) int {
	f, _ := FaultFrom(l.Get(1))
	l.Push(lua.LString(f.Text))
	return 1
}

func errorConcat(l *lua.LState) int {
	text := ""
	for i := 1; i <= 2; i++ {
		v := l.Get(i)
		if f, ok := FaultFrom(v); ok {
			text += f.Text
		} else if lua.LVCanConvToString(v) {
			text += lua.LVAsString(v)
		} else {
			raiseAt(l, 1, "cannot join an error and %s", show(v))
		}
	}
	l.Push(lua.LString(text))
	return 1
}

func textOrNil(s string) lua.LValue {
	if s == "" {
		return lua.LNil
	}
	return lua.LString(s)
}
