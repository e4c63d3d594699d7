package luabind

import (
	luar "layeh.com/gopher-luar"

	lua "github.com/yuin/gopher-lua"
)

// Value makes a Lua value of any Go value: its exported fields and methods are
// there by reflection. It is for what a script merely holds and calls now and
// then: a progress bar, a client of an embedding program. A call costs ten times
// one of a [Module], keeps the baton, and takes its arguments as they come.
func (vm *VM) Value(v any) lua.LValue { return luar.New(vm.root, v) }
