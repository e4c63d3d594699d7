package luabind

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// raised is a Lua error on its way up; it is the Go panic that carries it.
type raised struct {
	value lua.LValue
	at    *thread // whose frames are those of the error
	trace string  // the traceback, when the error has left its thread already
	place string  // and the position of the frame that raised it
	abort *abort  // set instead of value for what no pcall may catch
	// closed is the state whose panic function made this error: it has closed the
	// upvalues of its frames, so that its registers may be cleared.
	closed *lua.LState
}

// abort is the Go panic that ends a run or a task.
type abort struct{ err error }

// panicRaised is the panic function of every LState: errors of the VM leave it
// as *raised.
func panicRaised(l *lua.LState) {
	t := threadOf(l)
	v := t.thrown
	if v == nil {
		v = l.Get(-1)
		if s, ok := v.(lua.LString); ok {
			v = clearer(t, string(s))
		}
	}
	t.thrown = nil
	panic(&raised{value: v, closed: l})
}

// throw raises v as it is. It goes around the text functions of the library,
// which would mend v.
func throw(l *lua.LState, v lua.LValue) {
	threadOf(l).thrown = v
	l.Error(lua.LNil, 0)
}

// raiseAt raises text with the position of the frame at level in front; level 1
// is who called the running host function.
func raiseAt(l *lua.LState, level int, format string, args ...any) {
	throw(l, lua.LString(threadOf(l).position(level)+fmt.Sprintf(format, args...)))
}

// again raises r in the thread that asked for its result: what a coroutine, a
// task or a protected body ended with.
func (r *raised) again() {
	if r.abort != nil {
		panic(r.abort)
	}
	panic(r)
}

// keepTrace takes the traceback while the frames are what they were. An error of
// the host keeps the one of where it was raised first: a script that catches it
// and raises it again must not hide its line.
func (r *raised) keepTrace() {
	if r.trace != "" || r.abort != nil || r.at == nil {
		return
	}
	box, ok := boxOf(r.value)
	if ok && box.trace != "" {
		r.trace, r.place = box.trace, box.place
		return
	}
	r.trace, r.place = r.at.traceback(0), r.at.where()
	if ok {
		box.trace, box.place = r.trace, r.place
	}
}

const callOfNothing = "attempt to call a non-function object"

// clearer mends a message of the library: one raised by a host function that no
// Lua function called has no position, and what was nil has no name.
func clearer(t *thread, text string) lua.LValue {
	if strings.HasPrefix(text, " ") {
		text = t.where() + text[1:]
	}
	if strings.Contains(text, "bad argument #") { // the library's name for a function that no Lua called
		text = strings.Replace(text, " to main chunk (", " to '?' (", 1)
	}
	if head, ok := strings.CutSuffix(text, callOfNothing); ok {
		text = head + t.deadCall()
	}
	return lua.LString(inLuasWords(t, text))
}

// deadCall names what the innermost Lua frame tried to call, and what it may have
// meant.
func (t *thread) deadCall() string {
	o, ok := failedIn(t)
	if ok && o.live { // else a host function called it
		if name := calledAs(&frame{fn: o.fn, pc: o.at + 1}); name != "" {
			return fmt.Sprintf("attempt to call %q, which is not a function%s", name, o.meant(name))
		}
	}
	return "attempt to call a value that is not a function"
}

// goError answers r as Go code gets it.
func (vm *VM) goError(r *raised) error {
	if r.abort != nil {
		return r.abort.err
	}
	r.keepTrace()
	e := &LuaError{Value: r.value, Traceback: r.trace, place: r.place}
	e.cause, _ = ErrorFrom(r.value)
	e.Message = vm.textOf(r)
	return e
}

// textOf answers the text of an error that was not caught.
func (vm *VM) textOf(r *raised) string {
	if s, ok := r.value.(lua.LString); ok {
		return string(s)
	}
	at := r.place
	if at == "" && r.at != nil {
		at = r.at.where()
	}
	if f, ok := FaultFrom(r.value); ok {
		return at + f.Text
	}
	return at + vm.valueText(r.value)
}

// valueText answers what tostring answers, and for a table without __tostring
// its message.
func (vm *VM) valueText(v lua.LValue) string {
	if vm.root.GetMetaField(v, "__tostring") != lua.LNil {
		t := vm.borrow(vm.idleStrand, nil, 0)
		if out, r := t.call(vm.tostring, []lua.LValue{v}); r == nil && len(out) > 0 {
			return lua.LVAsString(out[0])
		}
	}
	if tbl, ok := v.(*lua.LTable); ok {
		if m, ok := tbl.RawGetString("message").(lua.LString); ok {
			return string(m)
		}
		if raw, err := AppendJSON(nil, tbl, nil); err == nil && len(raw) > 2 {
			return "a table was raised as an error: " + shorten(string(raw))
		}
		return "a table was raised as an error"
	}
	return v.String()
}

// abortIn answers the abort that err comes from.
func abortIn(err error) *abort {
	var limit *LimitError
	var stop *AbortError
	if errors.As(err, &limit) || errors.As(err, &stop) || errors.Is(err, errKilled) {
		return &abort{err}
	}
	return nil
}

func toText(v any) string { return fmt.Sprint(v) }
