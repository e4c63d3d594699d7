package luabind

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// The library keeps the places of elements that were set to nil at the end of a list:
// a length passes over all of them, and a stack takes time with the square of what it
// ever held. So who asks for a length lets go of them first, and next goes on with the
// names when the place it stands at is gone.
func init() {
	stock := jumpTable[lua.OP_LEN]
	jumpTable[lua.OP_LEN] = func(l *lua.LState, inst uint32, base unsafe.Pointer) int {
		if _, ours := l.Context().(*thread); ours {
			if t, ok := l.Get(argB(inst) + 1).(*lua.LTable); ok {
				trim(t)
			}
		}
		return stock(l, inst, base)
	}
}

// Where a table keeps its list, and the places of its other keys.
var listOffset, keysOffset = tableField[[]lua.LValue]("array"), tableField[map[lua.LValue]int]("k2i")

func tableField[T any](name string) uintptr {
	field, ok := reflect.TypeFor[lua.LTable]().FieldByName(name)
	if !ok || field.Type != reflect.TypeFor[T]() {
		panic("BUG: luabind: a table of gopher-lua has no field " + name + " as it was")
	}
	return field.Offset
}

func listOf(t *lua.LTable) []lua.LValue {
	return *(*[]lua.LValue)(unsafe.Add(unsafe.Pointer(t), listOffset))
}

// trim lets go of the places at the end of a list that hold nothing.
func trim(t *lua.LTable) {
	for list := listOf(t); len(list) > 0 && list[len(list)-1] == lua.LNil; list = list[:len(list)-1] {
		t.Remove(-1)
	}
}

// luaNext is next(t [, key]).
func luaNext(l *lua.LState) int {
	t, key := l.CheckTable(1), l.Get(2)
	if n, ok := key.(lua.LNumber); ok && n > lua.LNumber(len(listOf(t))) {
		keys := *(*map[lua.LValue]int)(unsafe.Add(unsafe.Pointer(t), keysOffset))
		if _, named := keys[key]; !named { // the list ended meanwhile
			if key = lua.LNil; len(listOf(t)) > 0 {
				key = lua.LNumber(len(listOf(t)))
			}
		}
	}
	k, v := t.Next(key)
	l.Push(k)
	if k == lua.LNil {
		return 1
	}
	l.Push(v)
	return 2
}

// openTable mends what the library does at the end of a list, and with what is no
// place of it.
func (vm *VM) openTable() {
	g, next := vm.root.G.Global, vm.root.NewFunction(luaNext)
	g.RawSetString("next", next)
	g.RawSetString("pairs", vm.root.NewFunction(func(l *lua.LState) int {
		t := l.CheckTable(1)
		l.Push(next)
		l.Push(t)
		l.Push(lua.LNil)
		return 3
	}))
	vm.library("table", map[string]lua.LGFunction{"concat": tableConcat, "remove": tableRemove})
	vm.before("table", "insert", func(l *lua.LState, place string) {
		trimArg(l)
		if l.GetTop() == 3 {
			takeNumber(l, place, 2)
		}
	})
	vm.before("table", "sort", func(l *lua.LState, _ string) {
		trimArg(l)
		if l.GetTop() == 2 && l.Get(2) == lua.LNil {
			l.Pop(1)
		}
	})
}

func trimArg(l *lua.LState) {
	if t, ok := l.Get(1).(*lua.LTable); ok {
		trim(t)
	}
}

// tableRemove is table.remove(list [, place]); of a place that the list does not
// have it removes nothing.
func tableRemove(l *lua.LState) int {
	t := l.CheckTable(1)
	trim(t)
	n := t.Len()
	takeNumber(l, "table.remove", 2)
	i := l.OptInt(2, n)
	if i < 1 || i > n {
		return 0
	}
	l.Push(t.Remove(i))
	return 1
}
