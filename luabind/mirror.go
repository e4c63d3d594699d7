package luabind

import (
	"encoding/json"
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// A mirror is a Lua table that stands for a Go value and is filled when a
// script first looks at it. What no script looks at is never converted: a fold
// that hands events on to knl.fold costs the same for a long log and a short
// one. There are two kinds:
//
//	open    becomes an ordinary table at the first touch and forgets its value:
//	        a request, the events of a fold. It is the script's to change.
//	frozen  stays what it is; its fields are read through it and cannot be set:
//	        an event, the tools of a device. Deeper tables are shared too, and
//	        are not to be changed; dev mode refuses it (see sealed).
//
// The library functions that bypass metatables (next, pairs, ipairs, rawget,
// rawset, unpack, table.*) are wrapped to look first.
type mirror struct {
	vm     *VM
	value  any // what it stands for: *kernel.Request, *kernel.Event, …
	name   string
	frozen bool
	list   bool                               // # counts its elements
	fill   func(l *lua.LState, t *lua.LTable) // puts the fields into t
	body   *lua.LTable                        // of a frozen one, once it was looked at
}

// String and Type make a mirror a Lua value, so that it can stand in the field
// of its metatable that no script and no library reads: the metatable's own.
func (m *mirror) String() string { return m.name }

// Type implements [lua.LValue].
func (m *mirror) Type() lua.LValueType { return lua.LTUserData }

// mirrorOf answers the mirror behind v, or nil.
func mirrorOf(v lua.LValue) *mirror {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil
	}
	mt, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return nil
	}
	m, _ := mt.Metatable.(*mirror)
	return m
}

// mirror makes the table that stands for m. Its metatable is a copy of one whose
// fields all mirrors share: a beat makes some ten, and most are never looked at.
func (vm *VM) mirror(m *mirror) *lua.LTable {
	m.vm = vm
	shared := &vm.openMirrorMetas().record
	if m.list {
		shared = &vm.mirrors.list
	}
	mt := *shared
	mt.Metatable = m
	return &lua.LTable{Metatable: &mt}
}

// frozen makes a read-only table of the fields of body, which is not copied.
func (vm *VM) frozen(name string, body *lua.LTable) *lua.LTable {
	m := &mirror{name: name, frozen: true, list: isTagged(body), body: body}
	t := vm.mirror(m)
	t.Metatable = vm.shown(m)
	return t
}

// shown makes the metatable of a frozen mirror that was looked at: its fields
// are read without a call.
func (vm *VM) shown(m *mirror) *lua.LTable {
	mt := vm.mirrors.fields(vm.root, m.list)
	mt.RawSetString("__index", m.body)
	mt.Metatable = m
	return mt
}

// look answers the table with the fields of t: t itself, or what a frozen
// mirror shows.
func look(l *lua.LState, t *lua.LTable) *lua.LTable {
	m := mirrorOf(t)
	if m == nil {
		return t
	}
	if !m.frozen {
		t.Metatable = lua.LNil
		m.fill(l, t)
		return t
	}
	if m.body == nil {
		m.body = l.CreateTable(0, 4)
		m.fill(l, m.body)
		t.Metatable = m.vm.shown(m)
	}
	return m.body
}

// mirrorMetas are the metatables of a VM's mirrors that nobody looked at, and
// the functions in them.
type mirrorMetas struct {
	index, newindex, length *lua.LFunction
	record, list            lua.LTable
}

// fields makes a metatable with the functions.
func (f *mirrorMetas) fields(l *lua.LState, list bool) *lua.LTable {
	mt := l.CreateTable(0, 3)
	mt.RawSetString("__index", f.index)
	mt.RawSetString("__newindex", f.newindex)
	if list {
		mt.RawSetString("__len", f.length)
	}
	return mt
}

func (vm *VM) openMirrorMetas() *mirrorMetas {
	if vm.mirrors != nil {
		return vm.mirrors
	}
	f := &mirrorMetas{
		index: vm.root.NewFunction(func(l *lua.LState) int {
			l.Push(look(l, l.CheckTable(1)).RawGet(l.Get(2)))
			return 1
		}),
		newindex: vm.root.NewFunction(func(l *lua.LState) int {
			t := l.CheckTable(1)
			if m := mirrorOf(t); m != nil && m.frozen {
				raiseAt(l, 1, "%s: field %s cannot be set, it is read-only", m.name, show(l.Get(2)))
			}
			l.SetTable(look(l, t), l.Get(2), l.Get(3))
			return 0
		}),
		length: vm.root.NewFunction(func(l *lua.LState) int {
			l.Push(lua.LNumber(look(l, l.CheckTable(1)).Len()))
			return 1
		}),
	}
	f.record, f.list = *f.fields(vm.root, false), *f.fields(vm.root, true)
	vm.mirrors = f
	return f
}

// openMirrors wraps the library functions that read a table past its
// metatable. It runs after the libraries are open.
func (vm *VM) openMirrors() {
	g := vm.root.G.Global
	for _, name := range []string{"next", "pairs", "rawget", "unpack"} {
		vm.lookFirst(g, name, false)
	}
	vm.openIpairs(g)
	vm.lookFirst(g, "rawset", true)
	lib, ok := g.RawGetString("table").(*lua.LTable)
	if !ok {
		panic("BUG: luabind: no table library")
	}
	for _, name := range []string{"concat", "getn", "maxn", "unpack"} {
		vm.lookFirst(lib, name, false)
	}
	for _, name := range []string{"insert", "remove", "sort"} {
		vm.lookFirst(lib, name, true)
	}
	vm.lookFirst(g, "setmetatable", true)
	vm.openSetmetatable(g)
	vm.openGetmetatable(g)
}

// lookFirst wraps lib[name] so that its first argument is looked at before;
// a function that writes refuses a frozen one.
func (vm *VM) lookFirst(lib *lua.LTable, name string, writes bool) {
	old, ok := lib.RawGetString(name).(*lua.LFunction)
	if !ok || !old.IsG {
		return
	}
	fn := old.GFunction
	wrapped := *old
	wrapped.GFunction = func(l *lua.LState) int {
		if t, ok := l.Get(1).(*lua.LTable); ok && t.Metatable != lua.LNil {
			if m := mirrorOf(t); m != nil {
				if writes && m.frozen {
					raiseAt(l, 1, "%s: got a %s, which is read-only", name, m.name)
				}
				l.Replace(1, look(l, t))
			}
		}
		return fn(l)
	}
	lib.RawSetString(name, &wrapped)
}

// openGetmetatable hides the metatables of mirrors: an open one becomes the
// table it stands for, a frozen one shows its name.
func (vm *VM) openGetmetatable(g *lua.LTable) {
	old := g.RawGetString("getmetatable").(*lua.LFunction)
	fn := old.GFunction
	wrapped := *old
	wrapped.GFunction = func(l *lua.LState) int {
		if t, ok := l.Get(1).(*lua.LTable); ok {
			switch m := mirrorOf(t); {
			case m == nil:
			case m.frozen:
				l.Push(lua.LString(m.name))
				return 1
			default:
				look(l, t)
			}
		}
		return fn(l)
	}
	g.RawSetString("getmetatable", &wrapped)
}

// openSetmetatable takes tables alone: the library lets a script replace the
// metatable of every string.
func (vm *VM) openSetmetatable(g *lua.LTable) {
	old := g.RawGetString("setmetatable").(*lua.LFunction)
	fn := old.GFunction
	wrapped := *old
	wrapped.GFunction = func(l *lua.LState) int {
		if l.Get(1).Type() != lua.LTTable {
			raiseAt(l, 1, "setmetatable: argument 1: got %s, want a table", show(l.Get(1)))
		}
		return fn(l)
	}
	g.RawSetString("setmetatable", &wrapped)
}

// openIpairs puts an ipairs in place that makes no number for the first
// elements of a list, as the library's does for each.
func (vm *VM) openIpairs(g *lua.LTable) {
	next := vm.root.NewFunction(func(l *lua.LState) int {
		t, _ := l.Get(1).(*lua.LTable)
		n, _ := l.Get(2).(lua.LNumber)
		if t == nil {
			raiseAt(l, 1, "ipairs: got %s, want a table", show(l.Get(1)))
		}
		i := int(n) + 1
		v := t.RawGetInt(i)
		if v == lua.LNil {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(boxed(i))
		l.Push(v)
		return 2
	})
	g.RawSetString("ipairs", vm.root.NewFunction(func(l *lua.LState) int {
		t, ok := l.Get(1).(*lua.LTable)
		if !ok {
			raiseAt(l, 1, "ipairs: argument 1: got %s, want a table", show(l.Get(1)))
		}
		l.Push(next)
		l.Push(look(l, t))
		l.Push(boxed(0))
		return 3
	}))
}

// boxed answers a whole number as a Lua value; small ones are boxed once.
func boxed(i int) lua.LValue {
	if i >= 0 && i < len(smallNumbers) {
		return smallNumbers[i]
	}
	return lua.LNumber(i)
}

// rawOf answers the JSON of a mirror that nobody looked at, so that it is
// written as it is.
func rawOf(t *lua.LTable) (json.RawMessage, bool) {
	m := mirrorOf(t)
	if m == nil || m.body != nil {
		return nil, false
	}
	if r, ok := m.value.(interface{ Canonical() json.RawMessage }); ok {
		return r.Canonical(), true
	}
	return nil, false
}

// must converts JSON that the kernel vouches for.
func (vm *VM) must(l *lua.LState, raw json.RawMessage) lua.LValue {
	v, err := FromJSON(l, raw)
	if err != nil {
		panic(fmt.Sprintf("BUG: recorded JSON does not read: %s", err))
	}
	return v
}

// recordedList is a JSON array that the kernel vouches for.
type recordedList json.RawMessage

// Canonical answers its text.
func (r recordedList) Canonical() json.RawMessage { return json.RawMessage(r) }

// lazyJSON answers a recorded array as a table that is converted when a script
// looks at it.
func (vm *VM) lazyJSON(raw json.RawMessage) *lua.LTable {
	return vm.mirror(&mirror{value: recordedList(raw), name: "list", list: true, fill: func(l *lua.LState, t *lua.LTable) {
		TagArray(l, t)
		read := vm.must(l, raw).(*lua.LTable)
		for i := 1; i <= read.MaxN(); i++ {
			t.RawSetInt(i, read.RawGetInt(i))
		}
	}})
}
