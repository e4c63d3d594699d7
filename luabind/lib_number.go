package luabind

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// A text that holds a number is one in arithmetic and for the libraries. The
// library's VM reads it as Go does, "010" as eight and "1_000" as a thousand, or
// not at all. Its arithmetic asks the metatable of strings first, which answers
// for it here; its functions get numbers.

// arithmetic is what the operators do with numbers.
var arithmetic = map[string]func(a, b float64) float64{
	"add": func(a, b float64) float64 { return a + b },
	"sub": func(a, b float64) float64 { return a - b },
	"mul": func(a, b float64) float64 { return a * b },
	"div": func(a, b float64) float64 { return a / b },
	"mod": modulo,
	"pow": math.Pow,
}

// modulo has the sign of b.
func modulo(a, b float64) float64 {
	r := math.Mod(a, b)
	if r*b < 0 {
		r += b
	}
	return r
}

// numerals completes the metatable of strings.
func (vm *VM) numerals(mt *lua.LTable) {
	for name, do := range arithmetic {
		mt.RawSetString("__"+name, vm.root.NewFunction(func(l *lua.LState) int { return calculate(l, name, do) }))
	}
	mt.RawSetString("__unm", vm.root.NewFunction(func(l *lua.LState) int {
		n, ok := numberOf(l.Get(1))
		if !ok {
			l.RaiseError("cannot perform unm operation on string")
		}
		l.Push(lua.LNumber(-n))
		return 1
	}))
}

// calculate pushes what the operator makes of two operands, one of them a text.
func calculate(l *lua.LState, name string, do func(a, b float64) float64) int {
	x, y := l.Get(1), l.Get(2)
	a, okA := numberOf(x)
	b, okB := numberOf(y)
	if okA && okB {
		l.Push(lua.LNumber(do(a, b)))
		return 1
	}
	if _, text := y.(lua.LString); !text {
		if theirs, ok := l.GetMetaField(y, "__"+name).(*lua.LFunction); ok {
			out, r := threadOf(l).child().call(theirs, []lua.LValue{x, y})
			if r != nil {
				r.again()
			}
			l.Push(append(out, lua.LNil)[0])
			return 1
		}
	}
	kinds := [2]lua.LValueType{x.Type(), y.Type()}
	if okA {
		kinds[0] = lua.LTNumber // it is the other's fault
	}
	l.RaiseError("cannot perform %s operation between %s and %s", name, kinds[0], kinds[1])
	return 0
}

// numberOf reads a number, or a text that holds one.
func numberOf(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return numeral(string(v))
	}
	return 0, false
}

// numberArgs is where the functions of the libraries take numbers; every
// argument of math's is one.
var numberArgs = map[string]map[string][]int{
	"string": {"sub": {2, 3}, "rep": {2}, "byte": {2, 3}, "find": {3}, "match": {3}, "gsub": {4}},
	"table":  {"concat": {3, 4}},
	"":       {"unpack": {2, 3}, "error": {2}},
}

// takeNumbers gives those functions numbers where a script gives text.
func (vm *VM) takeNumbers() {
	for lib, functions := range numberArgs {
		for name, args := range functions {
			vm.before(lib, name, func(l *lua.LState, place string) {
				for _, i := range args {
					takeNumber(l, place, i)
				}
			})
		}
	}
	vm.before("", "select", func(l *lua.LState, place string) {
		if l.Get(1) != lua.LString("#") {
			takeNumber(l, place, 1)
		}
	})
	every := func(l *lua.LState, place string) {
		for i := range l.GetTop() {
			takeNumber(l, place, i+1)
		}
	}
	vm.library("math", nil).ForEach(func(name, fn lua.LValue) {
		if fn.Type() == lua.LTFunction {
			vm.before("math", name.String(), every)
		}
	})
	vm.before("string", "char", every)
}

// before has a function of a library begin with what first does.
func (vm *VM) before(lib, name string, first func(l *lua.LState, place string)) {
	t, place := vm.root.G.Global, name
	if lib != "" {
		t, place = vm.library(lib, nil), lib+"."+name
	}
	fn := t.RawGetString(name).(*lua.LFunction).GFunction
	t.RawSetString(name, vm.root.NewFunction(func(l *lua.LState) int {
		first(l, place)
		return fn(l)
	}))
}

// takeNumber makes a number of argument i, when it is text.
func takeNumber(l *lua.LState, place string, i int) {
	text, ok := l.Get(i).(lua.LString)
	if !ok {
		return
	}
	n, ok := numeral(string(text))
	if !ok {
		raiseAt(l, 1, "%s: argument %d: got %s, want a number", place, i, show(text))
	}
	l.Replace(i, lua.LNumber(n))
}
