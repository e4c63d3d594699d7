package luabind

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Values of JSON that Lua 5.1 has no word for, and how each crosses.
//
//	JSON                       Lua
//	null                       Null, one userdata; also inside a list, so lengths stay
//	[], [1, 2]                 table tagged by a metatable with raw __jsontype = "array"
//	{}                         untagged table
//	integer a double holds     number (|n| below 2^63, exactly)
//	any other integer          Int, userdata that keeps its digits
//	1.5, 1e300                 number, the nearest double; a larger one is refused
//	-0                         0, so that values equal in Lua have equal bytes
//
// Every decoded list is tagged, not just an empty one: a script that removes the
// last element of what it read still writes [].

// Null is JSON's null: a value that is not nil, equal only to itself.
var Null = &lua.LUserData{Value: nullValue{}, Metatable: valueMeta("null", map[string]lua.LGFunction{
	"__tostring": func(l *lua.LState) int { l.Push(lua.LString("null")); return 1 },
})}

type nullValue struct{}

// Int is an integer that no Lua number holds exactly, as its decimal digits.
type Int string

var intMeta = valueMeta("int", map[string]lua.LGFunction{
	"__add": refuseArithmetic, "__sub": refuseArithmetic, "__mul": refuseArithmetic, "__div": refuseArithmetic,
	"__mod": refuseArithmetic, "__pow": refuseArithmetic, "__unm": refuseArithmetic,
	"__tostring": func(l *lua.LState) int { l.Push(lua.LString(l.CheckUserData(1).Value.(Int))); return 1 },
	"__eq":       compareInts(func(order int) bool { return order == 0 }),
	"__lt":       compareInts(func(order int) bool { return order < 0 }),
	"__le":       compareInts(func(order int) bool { return order <= 0 }),
	"__concat":   concatInt,
})

// NewInt reads the decimal digits of an integer. It answers a number when a
// double holds it exactly, else a userdata of [Int].
func NewInt(text string) (lua.LValue, error) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" || (digits[0] == '0' && len(digits) > 1) {
		return nil, fmt.Errorf("got %q, want the decimal digits of an integer", text)
	}
	return integer(text), nil
}

// integer answers the Lua value of a valid JSON integer.
func integer(text string) lua.LValue {
	n, err := strconv.ParseInt(text, 10, 64)
	if f := float64(n); err == nil && exact(f) && int64(f) == n {
		return lua.LNumber(f)
	}
	return &lua.LUserData{Value: Int(strings.Clone(text)), Metatable: intMeta}
}

// exact says whether f is inside the range whose whole numbers print as
// digits, both here and by tostring.
func exact(f float64) bool { return f > -(1<<63) && f < 1<<63 }

// compare orders two integers by value.
func (n Int) compare(m Int) int {
	nNegative, mNegative := strings.HasPrefix(string(n), "-"), strings.HasPrefix(string(m), "-")
	switch {
	case nNegative && !mNegative:
		return -1
	case mNegative && !nNegative:
		return 1
	case nNegative:
		n, m = m, n
	}
	if len(n) != len(m) {
		return len(n) - len(m)
	}
	return strings.Compare(string(n), string(m))
}

func compareInts(holds func(order int) bool) lua.LGFunction {
	return func(l *lua.LState) int {
		n, nOK := l.CheckUserData(1).Value.(Int)
		m, mOK := l.CheckUserData(2).Value.(Int)
		l.Push(lua.LBool(nOK && mOK && holds(n.compare(m))))
		return 1
	}
}

func refuseArithmetic(l *lua.LState) int {
	for i := 1; i <= 2; i++ {
		if ud, ok := l.Get(i).(*lua.LUserData); ok {
			if n, ok := ud.Value.(Int); ok {
				l.RaiseError("integer %s: got arithmetic, which would lose digits that no Lua number holds", string(n))
			}
		}
	}
	panic("BUG: luabind: arithmetic of integers was called without one")
}

func concatInt(l *lua.LState) int {
	var text strings.Builder
	for i := 1; i <= 2; i++ {
		switch v := l.Get(i).(type) {
		case lua.LString, lua.LNumber:
			text.WriteString(v.String())
		case *lua.LUserData:
			n, ok := v.Value.(Int)
			if !ok {
				l.RaiseError("attempt to concatenate a userdata value")
			}
			text.WriteString(string(n))
		default:
			l.RaiseError("attempt to concatenate a %s value", v.Type())
		}
	}
	l.Push(lua.LString(text.String()))
	return 1
}

// valueMeta builds the protected metatable of a userdata type that every VM of
// the process shares. It is never written after this.
func valueMeta(name string, methods map[string]lua.LGFunction) *lua.LTable {
	meta := &lua.LTable{Metatable: lua.LNil}
	for event, fn := range methods {
		meta.RawSetString(event, &lua.LFunction{IsG: true, GFunction: fn})
	}
	meta.RawSetString("__metatable", lua.LString(name))
	return meta
}

// arrayMetaKey is where a VM's registry keeps the metatable of its lists.
const arrayMetaKey = "knl.array"

// arrayMeta answers the metatable that tags lists, one for each VM. Scripts may
// read it and put another in its place.
func arrayMeta(l *lua.LState) *lua.LTable {
	registry := l.G.Registry
	if meta, ok := registry.RawGetString(arrayMetaKey).(*lua.LTable); ok {
		return meta
	}
	meta := l.CreateTable(0, 4)
	meta.RawSetString("__jsontype", lua.LString("array"))
	registry.RawSetString(arrayMetaKey, meta)
	return meta
}

// TagArray marks t as a list, so that it stays one when it is empty.
func TagArray(l *lua.LState, t *lua.LTable) *lua.LTable {
	t.Metatable = arrayMeta(l)
	return t
}

// isTagged says whether t carries the list tag, its own VM's or another's.
func isTagged(t *lua.LTable) bool {
	meta, ok := t.Metatable.(*lua.LTable)
	return ok && meta.RawGetString("__jsontype") == lua.LString("array")
}

// appendNumber writes f as JSON: whole numbers as digits, others as the
// shortest text that reads back as f. It answers false for NaN and infinities.
func appendNumber(dst []byte, f float64) ([]byte, bool) {
	if exact(f) && f == math.Trunc(f) {
		return strconv.AppendInt(dst, int64(f), 10), true
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, false
	}
	if size := math.Abs(f); size >= 1e-6 && size < 1e21 && exact(f) {
		return strconv.AppendFloat(dst, f, 'f', -1, 64), true
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && dst[n-3] == '-' { // 1e-07 as 1e-7
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, true
}
