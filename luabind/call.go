package luabind

import (
	"context"
	"fmt"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// Call is one call of a host function: its arguments, its task and its answer.
// It is valid until Fn returns and belongs to the goroutine that runs Fn.
//
// Argument indices count from 1 as the documentation does; the receiver of a
// method is [Call.Self], not an argument. An accessor that finds the wrong
// value raises at the line of the script that called.
type Call struct {
	L      *lua.LState
	thread *thread
	fn     *Func
	at     *bound
	shift  int // 1 for a method: the receiver sits below the arguments
	next   *Call
}

// VM answers the VM that the call runs in.
func (c *Call) VM() *VM { return c.thread.vm }

// Ctx answers the context of the calling task: done when the task is cancelled,
// its deadline passes or the run ends. Every wait must end with it.
func (c *Call) Ctx() context.Context { return c.thread.strand.ctx }

// State answers what the module's Open made for this VM.
func (c *Call) State() any { return c.at.state }

// Place answers the function as the script names it: "std.sh.run".
func (c *Call) Place() string { return c.at.place }

// Block runs fn without the VM's baton, so that other tasks run meanwhile, and
// takes the baton back before it returns. fn must not touch Lua values that a
// script can reach; [VM.Enter] is its way back into Lua.
func (c *Call) Block(fn func(ctx context.Context) error) error {
	return c.thread.block(fn)
}

// Finish is Block for what must be done also when the task was cancelled or its
// Lua has been ended: ctx is never done.
func (c *Call) Finish(fn func(ctx context.Context) error) error {
	return c.thread.apart(context.WithoutCancel(c.Ctx()), fn)
}

// Invoke calls a Lua function with args on a thread of its own and answers what
// it returned. An error of the function is a *[LuaError]; the end of the run, of
// the task or a limit is an error too, and no more Lua runs after it.
func (c *Call) Invoke(fn lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	return c.thread.invoke(fn, args)
}

// Return pushes values and answers their count, the way Fn ends.
func (c *Call) Return(values ...lua.LValue) (int, error) {
	for _, v := range values {
		c.L.Push(v)
	}
	return len(values), nil
}

// Self answers the receiver of a method as the Go value that was wrapped, and
// raises when the script called the method on something else.
func Self[T any](c *Call) T {
	if ud, ok := c.L.Get(1).(*lua.LUserData); ok {
		if v, ok := ud.Value.(T); ok {
			return v
		}
	}
	c.fail("%s: got %s as receiver, want a %s (call it with a colon)", c.at.place, show(c.L.Get(1)), c.at.self.Name)
	panic("unreachable")
}

// N answers how many arguments the script gave.
func (c *Call) N() int { return c.L.GetTop() - c.shift }

// Arg answers argument i as it is, nil when it was not given.
func (c *Call) Arg(i int) lua.LValue { return c.L.Get(i + c.shift) }

// Given says whether argument i is there and not nil.
func (c *Call) Given(i int) bool { return c.Arg(i) != lua.LNil }

// String answers argument i, which must be a string.
func (c *Call) String(i int) string {
	v, ok := c.Arg(i).(lua.LString)
	if !ok {
		c.refuse(i, Text)
	}
	return string(v)
}

// OptString answers argument i, or def when it is nil.
func (c *Call) OptString(i int, def string) string {
	if !c.Given(i) {
		return def
	}
	return c.String(i)
}

// Number answers argument i, which must be a number.
func (c *Call) Number(i int) float64 {
	v, ok := c.Arg(i).(lua.LNumber)
	if !ok {
		c.refuse(i, Number)
	}
	return float64(v)
}

// OptNumber answers argument i, or def when it is nil.
func (c *Call) OptNumber(i int, def float64) float64 {
	if !c.Given(i) {
		return def
	}
	return c.Number(i)
}

// Int answers argument i, which must be a whole number.
func (c *Call) Int(i int) int64 {
	v, ok := whole(c.Arg(i))
	if !ok {
		c.refuse(i, Whole)
	}
	return v
}

// OptInt answers argument i, or def when it is nil.
func (c *Call) OptInt(i int, def int64) int64 {
	if !c.Given(i) {
		return def
	}
	return c.Int(i)
}

// Bool answers argument i, which must be true or false.
func (c *Call) Bool(i int) bool {
	v, ok := c.Arg(i).(lua.LBool)
	if !ok {
		c.refuse(i, Flag)
	}
	return bool(v)
}

// OptBool answers argument i, or def when it is nil.
func (c *Call) OptBool(i int, def bool) bool {
	if !c.Given(i) {
		return def
	}
	return c.Bool(i)
}

// Table answers argument i, which must be a table.
func (c *Call) Table(i int) *lua.LTable {
	v, ok := c.Arg(i).(*lua.LTable)
	if !ok {
		c.refuse(i, Table)
	}
	return v
}

// Func answers argument i, which must be callable.
func (c *Call) Func(i int) lua.LValue {
	v := c.Arg(i)
	if !callable(c.L, v) {
		c.refuse(i, Function)
	}
	return v
}

// Mistake answers an error that is raised at the caller's line, with the
// function named in front: for arguments that are wrong in a way Kind cannot say.
func (c *Call) Mistake(format string, args ...any) error {
	return &mistake{c.at.place + ": " + fmt.Sprintf(format, args...)}
}

// ArgMistake is [Call.Mistake] about argument i: got what was given, want what
// the text says.
func (c *Call) ArgMistake(i int, want string) error {
	return &mistake{c.argText(i, want)}
}

// mistake is an error of the calling script; it is raised as text at its line.
type mistake struct{ text string }

func (m *mistake) Error() string { return m.text }

func (c *Call) argText(i int, want string) string {
	name := ""
	if i <= len(c.fn.Args) {
		name = " (" + c.fn.Args[i-1].Name + ")"
	}
	return fmt.Sprintf("%s: argument %d%s: got %s, want %s", c.at.place, i, name, show(c.Arg(i)), want)
}

// refuse raises the got/want error of argument i.
func (c *Call) refuse(i int, k Kind) { c.fail("%s", c.argText(i, kindNames[k].want)) }

// fail raises text at the line of the script that called.
func (c *Call) fail(format string, args ...any) {
	c.raise(&mistake{fmt.Sprintf(format, args...)})
}

// raise turns the error of a host function into a Lua error.
func (c *Call) raise(err error) {
	if m, ok := err.(*mistake); ok {
		raiseAt(c.L, 1, "%s", m.text)
	}
	if a := abortIn(err); a != nil {
		panic(a)
	}
	if e, ok := err.(*LuaError); ok { // of a function that the script gave: it is the script's error
		e.raised().again()
	}
	throw(c.L, c.VM().errorValue(err, c.at.place))
}

var kindNames = [...]struct{ want, cats string }{
	Anything:     {"a value", "any"},
	Text:         {"a string", "string"},
	Number:       {"a number", "number"},
	Whole:        {"a whole number", "integer"},
	Flag:         {"true or false", "boolean"},
	Table:        {"a table", "table"},
	Function:     {"a function", "function"},
	Seconds:      {"seconds (a number)", "number"},
	Milliseconds: {"milliseconds (a number)", "number"},
	Userdata:     {"a handle", "userdata"},
}

// accepts says whether v is of kind k.
func (k Kind) accepts(l *lua.LState, v lua.LValue) bool {
	switch k {
	case Text:
		return v.Type() == lua.LTString
	case Number:
		return v.Type() == lua.LTNumber
	case Whole:
		_, ok := whole(v)
		return ok
	case Flag:
		return v.Type() == lua.LTBool
	case Table:
		return v.Type() == lua.LTTable
	case Function:
		return callable(l, v)
	case Seconds, Milliseconds:
		n, ok := v.(lua.LNumber)
		return ok && n >= 0 && !math.IsInf(float64(n), 0)
	case Userdata:
		return v.Type() == lua.LTUserData
	}
	return true
}

// whole answers v as an integer when it is one that a float64 holds exactly.
func whole(v lua.LValue) (int64, bool) {
	n, ok := v.(lua.LNumber)
	f := float64(n)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func callable(l *lua.LState, v lua.LValue) bool {
	if v.Type() == lua.LTFunction {
		return true
	}
	return l.GetMetaField(v, "__call").Type() == lua.LTFunction
}

// show writes a value the way an error says what it got.
func show(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		if s := string(v); len(s) > 40 {
			return strconv.Quote(string([]rune(s[:40]))) + "…"
		}
		return strconv.Quote(string(v))
	case lua.LNumber, lua.LBool:
		return v.String()
	case *lua.LNilType:
		return "nil"
	case *lua.LFunction:
		return "a function"
	}
	return "a " + v.Type().String()
}
