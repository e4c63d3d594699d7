package luabind

import lua "github.com/yuin/gopher-lua"

// openTable mends what the library does at the end of a list, whose places it
// keeps when elements are set to nil ([trim]), and with what is no place of it.
func (vm *VM) openTable() {
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
