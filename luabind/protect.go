package luabind

import (
	"io"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The protected calls, error and assert of the host. The library's own close
// the upvalues of frames that live on (pcall) or of none (xpcall), and report
// level 1 whatever level error was given.

// luaPcall runs its function on a thread of its own.
func luaPcall(l *lua.LState) int {
	t := threadOf(l)
	n := l.GetTop()
	if n == 0 {
		raiseAt(l, 1, "pcall: argument 1: got nothing, want a function")
	}
	c := t.child()
	for i := 1; i <= n; i++ {
		c.L.Push(l.Get(i))
	}
	r := c.run(n - 1)
	if r == nil {
		return c.answer(l)
	}
	if r.abort != nil {
		panic(r.abort)
	}
	if _, ours := boxOf(r.value); ours {
		r.keepTrace()
	}
	c.recycle(r)
	l.Push(lua.LFalse)
	l.Push(r.value)
	return 2
}

// answer pushes true and the results of c to l, and gives c back.
func (t *thread) answer(l *lua.LState) int {
	n := t.L.GetTop()
	l.Push(lua.LTrue)
	for i := 1; i <= n; i++ {
		l.Push(t.L.Get(i))
	}
	t.giveBack()
	return n + 1
}

// luaXpcall is xpcall(f, handler, …): the handler runs while the frames of the
// error are there to be looked at, and what follows it goes to f.
func luaXpcall(l *lua.LState) int {
	t := threadOf(l)
	if !callable(l, l.Get(2)) {
		raiseAt(l, 1, "xpcall: argument 2 (handler): got %s, want a function", show(l.Get(2)))
	}
	c := t.child()
	c.L.Push(l.Get(1))
	n := l.GetTop()
	for i := 3; i <= n; i++ {
		c.L.Push(l.Get(i))
	}
	r := c.run(n - 2)
	if r == nil {
		return c.answer(l)
	}
	if r.abort != nil {
		panic(r.abort)
	}
	l.Push(lua.LFalse)
	l.Push(t.handled(r, l.Get(2)))
	return 2
}

// handled answers what the handler makes of r. Its thread continues t, but its
// traceback is that of the error; nesting is not counted, so that an overflow
// can be handled.
func (t *thread) handled(r *raised, handler lua.LValue) lua.LValue {
	r.keepTrace()
	h := t.vm.borrow(t.strand, nil, 0)
	h.caller, h.depth, h.below = t, t.depth, r.trace
	out, again := h.call(handler, []lua.LValue{r.value})
	switch {
	case again == nil && len(out) > 0:
		return out[0]
	case again == nil:
		return lua.LNil
	case again.abort != nil:
		panic(again.abort)
	}
	return lua.LString("error in error handling: " + t.vm.textOf(again))
}

// luaError is error(value, level): a text gets the position of the function at
// level in front.
func luaError(l *lua.LState) int {
	v := l.Get(1)
	level := l.OptInt(2, 1)
	if lua.LVCanConvToString(v) && level > 0 {
		v = lua.LString(threadOf(l).position(level) + lua.LVAsString(v))
	}
	throw(l, v)
	return 0
}

// luaAssert answers its arguments or raises the second. A text gets the
// position of the caller, any other value is raised as it is.
func luaAssert(l *lua.LState) int {
	if l.GetTop() == 0 {
		raiseAt(l, 1, "assert: argument 1: got nothing, want a value")
	}
	if lua.LVAsBool(l.Get(1)) {
		return l.GetTop()
	}
	switch v := l.Get(2).(type) {
	case *lua.LNilType:
		raiseAt(l, 1, "assertion failed!")
	case lua.LString:
		raiseAt(l, 1, "%s", string(v))
	default:
		throw(l, v)
	}
	return 0
}

// debugTraceback is debug.traceback([thread,] [message [, level]]).
func debugTraceback(l *lua.LState) int {
	t, shift := threadOf(l), 0
	skip := 1
	if co := coroutineOf(l.Get(1)); co != nil {
		t, shift, skip = co.innermost(), 1, 0
	}
	msg := l.Get(shift + 1)
	if msg != lua.LNil && !lua.LVCanConvToString(msg) {
		l.Push(msg)
		return 1
	}
	if l.GetTop() >= shift+2 {
		skip = l.CheckInt(shift + 2)
	}
	text := "stack traceback:\n" + t.traceback(skip)
	if msg != lua.LNil {
		text = lua.LVAsString(msg) + "\n" + text
	}
	l.Push(lua.LString(text))
	return 1
}

// debugGetinfo is debug.getinfo(level or function): source, short_src,
// currentline, linedefined, lastlinedefined, what, name, func.
func debugGetinfo(l *lua.LState) int {
	var found *frame
	switch v := l.Get(1).(type) {
	case *lua.LFunction:
		found = &frame{fn: v}
	case lua.LNumber:
		found = threadOf(l).frameAt(int(v))
	default:
		raiseAt(l, 1, "debug.getinfo: argument 1: got %s, want a level or a function", show(v))
	}
	if found == nil {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(found.info(l, l.Get(1).Type() == lua.LTNumber))
	return 1
}

func (t *thread) frameAt(level int) (found *frame) {
	if level < 0 {
		return nil
	}
	t.eachLevel(func(f *frame) bool {
		if level == 0 {
			found = f
		}
		level--
		return level >= 0
	})
	return found
}

func (f *frame) info(l *lua.LState, active bool) *lua.LTable {
	tbl := l.CreateTable(0, 8)
	tbl.RawSetString("func", f.fn)
	tbl.RawSetString("currentline", lua.LNumber(-1))
	if f.called != "" {
		tbl.RawSetString("name", lua.LString(f.called))
	}
	if f.fn.IsG {
		tbl.RawSetString("what", lua.LString("Go"))
		tbl.RawSetString("source", lua.LString("=[Go]"))
		tbl.RawSetString("short_src", lua.LString("[Go]"))
		return tbl
	}
	p := f.fn.Proto
	what := "Lua"
	if p.LineDefined == 0 {
		what = "main"
	}
	tbl.RawSetString("what", lua.LString(what))
	tbl.RawSetString("source", lua.LString("@"+p.SourceName))
	tbl.RawSetString("short_src", lua.LString(p.SourceName))
	tbl.RawSetString("linedefined", lua.LNumber(p.LineDefined))
	tbl.RawSetString("lastlinedefined", lua.LNumber(p.LastLineDefined))
	if active {
		tbl.RawSetString("currentline", lua.LNumber(f.line()))
	}
	return tbl
}

// luaTostring is tostring with the names Lua gives to what is not finite.
func luaTostring(l *lua.LState) int {
	if l.GetTop() == 0 {
		raiseAt(l, 1, "tostring: argument 1: got nothing, want a value")
	}
	v := l.Get(1)
	if n, ok := v.(lua.LNumber); ok {
		l.Push(lua.LString(numberText(float64(n))))
		return 1
	}
	l.Push(l.ToStringMeta(v))
	return 1
}

// luaPrint writes its arguments to the script's stdout, tabs between.
func luaPrint(l *lua.LState) int {
	var line strings.Builder
	for i := 1; i <= l.GetTop(); i++ {
		if i > 1 {
			line.WriteByte('\t')
		}
		if n, ok := l.Get(i).(lua.LNumber); ok {
			line.WriteString(numberText(float64(n)))
		} else {
			line.WriteString(lua.LVAsString(l.ToStringMeta(l.Get(i))))
		}
	}
	line.WriteByte('\n')
	toStdout(l, "print", line.String())
	return 0
}

// luaWrite is io.write: strings and numbers as they are, nothing between and no
// line end, as pieces of an answer come.
func luaWrite(l *lua.LState) int {
	var text strings.Builder
	for i := 1; i <= l.GetTop(); i++ {
		switch v := l.Get(i).(type) {
		case lua.LString:
			text.WriteString(string(v))
		case lua.LNumber:
			text.WriteString(numberText(float64(v)))
		default:
			raiseAt(l, 1, "io.write: argument %d: got %s, want a string or a number", i, show(v))
		}
	}
	toStdout(l, "io.write", text.String())
	l.Push(lua.LTrue)
	return 1
}

func toStdout(l *lua.LState, method, text string) {
	vm := threadOf(l).vm
	if _, err := io.WriteString(vm.config.Stdout, text); err != nil {
		throw(l, vm.errorValue(err, method))
	}
}
