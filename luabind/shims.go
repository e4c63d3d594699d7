package luabind

import (
	"math"
	"runtime"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The libraries of a VM: base, table, math, os and debug of the library with
// what is wrong or unsafe there replaced, and string and coroutine of our own.
// Not there: io, dofile, loadfile, module, package.loadlib, os.execute and what
// else reaches past the host modules.

// library stores funcs in the global table name, which is made when missing.
func (vm *VM) library(name string, funcs map[string]lua.LGFunction) *lua.LTable {
	lib, ok := vm.root.G.Global.RawGetString(name).(*lua.LTable)
	if !ok {
		lib = vm.root.CreateTable(0, len(funcs))
		vm.root.G.Global.RawSetString(name, lib)
	}
	vm.put(lib, funcs)
	return lib
}

func (vm *VM) put(t *lua.LTable, funcs map[string]lua.LGFunction) {
	for name, fn := range funcs {
		t.RawSetString(name, vm.root.NewFunction(fn))
	}
}

func (vm *VM) openLibraries() {
	lua.OpenBase(vm.root)
	lua.OpenTable(vm.root)
	lua.OpenMath(vm.root)
	vm.root.SetTop(0)
	g := vm.root.G.Global
	for _, name := range []string{
		"dofile", "loadfile", "module", "newproxy", "_printregs", "_GOPHER_LUA_VERSION",
	} {
		g.RawSetString(name, lua.LNil)
	}
	vm.put(g, map[string]lua.LGFunction{
		"pcall": luaPcall, "xpcall": luaXpcall, "error": luaError, "assert": luaAssert,
		"print": luaPrint, "tostring": luaTostring, "tonumber": luaTonumber, "unpack": luaUnpack,
		"load": luaLoad, "loadstring": luaLoadstring, "collectgarbage": luaCollect,
	})
	vm.tostring = g.RawGetString("tostring")
	vm.openTable()
	vm.openRandom()
	vm.library("math", nil).RawSetString("huge", lua.LNumber(math.Inf(1)))
	vm.library("debug", map[string]lua.LGFunction{"traceback": debugTraceback, "getinfo": debugGetinfo})
	out := vm.root.NewTable()
	vm.put(out, map[string]lua.LGFunction{"write": luaWrite})
	g.RawSetString("io", out)
	vm.openString()
	vm.takeNumbers()
	vm.openOS()
	vm.openCoroutine()
	vm.openRequire()
}

// numberText writes a number as tostring does. What is not finite is named as
// in C, not as in Go.
func numberText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	return lua.LNumber(f).String()
}

// luaTonumber is tonumber(v [, base]) with the numerals of Lua: decimal with an
// exponent, or hexadecimal. The library's knows no exponent without a point,
// and takes Go's "0b1" and "inf".
func luaTonumber(l *lua.LState) int {
	if l.GetTop() == 0 {
		raiseAt(l, 1, "tonumber: argument 1: got nothing, want a value")
	}
	v, base := l.Get(1), l.Get(2)
	if n, ok := numberOf(base); ok {
		base = lua.LNumber(n)
	}
	if base != lua.LNil && base != lua.LNumber(10) {
		l.Push(inBase(l, v, base))
		return 1
	}
	switch v := v.(type) {
	case lua.LNumber:
		l.Push(v)
	case lua.LString:
		if n, ok := numeral(string(v)); ok {
			l.Push(lua.LNumber(n))
		} else {
			l.Push(lua.LNil)
		}
	default:
		l.Push(lua.LNil)
	}
	return 1
}

const luaSpace = " \t\n\r\f\v"

// numeral reads a Lua number with blanks around it.
func numeral(s string) (float64, bool) {
	s = strings.Trim(s, luaSpace)
	digits, sign := s, 1.0
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		if digits[0] == '-' {
			sign = -1
		}
		digits = digits[1:]
	}
	if len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') {
		n, err := strconv.ParseUint(digits[2:], 16, 64)
		return sign * float64(n), err == nil
	}
	if digits == "" || strings.Trim(digits[:1], "0123456789.") != "" || strings.Trim(digits, "0123456789.eE+-") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(digits, 64)
	return sign * n, err == nil || math.IsInf(n, 0)
}

// inBase reads an integer in base 2 to 36.
func inBase(l *lua.LState, v, base lua.LValue) lua.LValue {
	b, ok := whole(base)
	if !ok || b < 2 || b > 36 {
		raiseAt(l, 1, "tonumber: argument 2 (base): got %s, want a whole number from 2 to 36", show(base))
	}
	if !lua.LVCanConvToString(v) {
		raiseAt(l, 1, "tonumber: argument 1: got %s, want a string", show(v))
	}
	s := strings.ToLower(strings.Trim(lua.LVAsString(v), luaSpace))
	if b == 16 {
		s = strings.TrimPrefix(s, "0x")
	}
	if strings.Contains(s, "_") {
		return lua.LNil
	}
	digits := strings.TrimPrefix(s, "-")
	n, err := strconv.ParseUint(digits, int(b), 64)
	switch {
	case err != nil:
		return lua.LNil
	case digits != s:
		return -lua.LNumber(n)
	}
	return lua.LNumber(n)
}

// luaUnpack is unpack(list [, i [, j]]); room for all values is made at once.
func luaUnpack(l *lua.LState) int {
	t := l.CheckTable(1)
	i, j := l.OptInt(2, 1), l.OptInt(3, 0)
	if l.Get(3) == lua.LNil {
		j = t.Len()
	}
	if i > j {
		return 0
	}
	n := j - i + 1
	if n <= 0 || n > registryMax/4 {
		raiseAt(l, 1, "unpack: too many results (%d), at most %d", n, registryMax/4)
	}
	makeRoom(l, n)
	for ; i <= j; i++ {
		l.Push(t.RawGet(lua.LNumber(i)))
	}
	return n
}

// makeRoom grows the registry of l once for n values.
func makeRoom(l *lua.LState, n int) {
	if n < registryGrow {
		return
	}
	top := l.GetTop()
	l.SetTop(top + n)
	l.SetTop(top)
}

// luaLoad is load(text or function [, chunkname]).
func luaLoad(l *lua.LState) int {
	if _, ok := l.Get(1).(lua.LString); ok {
		return luaLoadstring(l)
	}
	t, reader := threadOf(l), checkCallable(l, "load")
	var text strings.Builder
	for {
		out, r := t.child().call(reader, nil)
		if r != nil {
			r.again()
		}
		if len(out) == 0 || out[0] == lua.LNil || out[0] == lua.LString("") {
			break
		}
		piece, ok := out[0].(lua.LString)
		if !ok {
			raiseAt(l, 1, "load: the reader gave %s, want a string or nil", show(out[0]))
		}
		t.room(int64(text.Len()+len(piece)), "load")
		text.WriteString(string(piece))
	}
	return t.loadText(text.String(), l.OptString(2, "=(load)"))
}

func luaLoadstring(l *lua.LState) int {
	text, ok := l.Get(1).(lua.LString)
	if !ok {
		raiseAt(l, 1, "loadstring: argument 1: got %s, want a string", show(l.Get(1)))
	}
	return threadOf(l).loadText(string(text), l.OptString(2, "=(load)"))
}

// loadText pushes the function of a chunk, or nil and why it is not Lua.
func (t *thread) loadText(text, name string) int {
	if name != "" && (name[0] == '=' || name[0] == '@') {
		name = name[1:]
	}
	t.step(len(text) / 8)
	proto, err := compileNew(name, text)
	if err != nil {
		t.L.Push(lua.LNil)
		t.L.Push(lua.LString(err.Error()))
		return 2
	}
	t.L.Push(t.vm.root.NewFunctionFromProto(proto))
	return 1
}

// luaCollect is collectgarbage: "count" answers KB in use, "collect" collects;
// the other options of Lua have no meaning here and answer 0.
func luaCollect(l *lua.LState) int {
	switch opt := l.OptString(1, "collect"); opt {
	case "count":
		l.Push(lua.LNumber(float64(memoryUsed()) / 1024))
	case "collect":
		runtime.GC()
		l.Push(lua.LNumber(0))
	case "stop", "restart", "step", "setpause", "setstepmul":
		l.Push(lua.LNumber(0))
	default:
		raiseAt(l, 1, "collectgarbage: got %q (%s)", opt,
			Suggest(opt, []string{"collect", "count", "stop", "restart", "step", "setpause", "setstepmul"}))
	}
	return 1
}

// tableConcat is table.concat(list [, sep [, i [, j]]]) in one pass.
func tableConcat(l *lua.LState) int {
	t := l.CheckTable(1)
	sep, i := l.OptString(2, ""), l.OptInt(3, 1)
	j := l.OptInt(4, 0)
	if l.Get(4) == lua.LNil {
		j = t.Len()
	}
	size := int64(0)
	for k := i; k <= j; k++ {
		size += int64(len(concatPiece(l, t, k)) + len(sep))
	}
	th := threadOf(l)
	th.room(size, "table.concat")
	var b strings.Builder
	b.Grow(int(max(size, 0)))
	for k := i; k <= j; k++ {
		if k > i {
			b.WriteString(sep)
		}
		b.WriteString(concatPiece(l, t, k))
	}
	l.Push(lua.LString(b.String()))
	return 1
}

func concatPiece(l *lua.LState, t *lua.LTable, k int) string {
	switch v := t.RawGet(lua.LNumber(k)).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return numberText(float64(v))
	default:
		raiseAt(l, 1, "table.concat: element %d: got %s, want a string or a number", k, show(v))
	}
	return ""
}
