package luabind

import (
	"cmp"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/shapes"
)

// openShapes gives the table of each root module its field shapes. What stands
// there is made when a script first looks at it: a run that does not look pays
// nothing.
//
//	shapes.<name>       a schema, as require("lshape") makes them
//	shapes.api          export -> { doc, args, returns, members? }
//	shapes.objects      kind of handle -> method -> entry
func (vm *VM) openShapes() {
	for _, m := range vm.config.Modules {
		root, ok := vm.loader.loaded.RawGetString(rootOf(m.Name)).(*lua.LTable)
		if ok && root.RawGetString("shapes") == lua.LNil {
			root.RawSetString("shapes", vm.shapesOf(rootOf(m.Name)))
		}
	}
}

func (vm *VM) shapesOf(root string) *lua.LTable {
	return vm.mirror(&mirror{name: "shapes", fill: func(l *lua.LState, t *lua.LTable) {
		b := vm.published()
		b.learn(l)
		for _, s := range b.roots[root] {
			t.RawSetString(s.Name, b.table(s.Schema))
		}
		t.RawSetString("api", vm.mirror(&mirror{name: "api", fill: func(_ *lua.LState, t *lua.LTable) { b.api(root, t) }}))
		t.RawSetString("objects", vm.mirror(&mirror{name: "objects", fill: func(_ *lua.LState, t *lua.LTable) { b.objects(root, t) }}))
	}})
}

// learn takes the methods that lshape gives to schemas.
func (b *book) learn(l *lua.LState) {
	t, ok := l.Context().(*thread)
	if b.methods != nil || !ok {
		return
	}
	b.methods = lua.LNil
	words, _ := t.require("lshape.t").(*lua.LTable)
	if words == nil {
		return
	}
	if internal, ok := words.RawGetString("_internal").(*lua.LTable); ok {
		b.methods = internal.RawGetString("schema_mt")
	}
}

// table answers the one table of a schema.
func (b *book) table(s *shapes.Schema) *lua.LTable {
	if t := b.tables[s]; t != nil {
		return t
	}
	t := b.vm.root.CreateTable(0, 4)
	b.tables[s] = t
	for name, v := range s.Data() {
		t.RawSetString(name, b.datum(v))
	}
	if b.methods != nil {
		t.Metatable = b.methods
	}
	return t
}

// datum answers a value of a schema's plain data.
func (b *book) datum(v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case *shapes.Schema:
		return b.table(v)
	case []any:
		list := b.vm.root.CreateTable(len(v), 0)
		for _, item := range v {
			list.Append(b.datum(item))
		}
		return list
	case []*shapes.Schema:
		list := b.vm.root.CreateTable(len(v), 0)
		for _, item := range v {
			list.Append(b.table(item))
		}
		return list
	}
	fields := v.(map[string]*shapes.Schema)
	t := b.vm.root.CreateTable(0, len(fields))
	for name, item := range fields {
		t.RawSetString(name, b.table(item))
	}
	return t
}

// api fills t with an entry for each export of a root module.
func (b *book) api(root string, t *lua.LTable) {
	t.RawSetString("shapes", b.constant("The schemas of this module by name, and api and objects: what it exports.", "table"))
	for _, m := range b.vm.config.Modules {
		if rootOf(m.Name) != root {
			continue
		}
		at := t
		if _, name, inside := strings.Cut(m.Name, "."); inside {
			at = b.vm.root.CreateTable(0, 4)
			entry := b.constant(m.Doc, "table")
			entry.RawSetString("members", at)
			t.RawSetString(name, entry)
		}
		for i := range m.Funcs {
			at.RawSetString(m.Funcs[i].Name, b.entry(root, m.Name+"."+m.Funcs[i].Name, &m.Funcs[i]))
		}
		for _, c := range m.Consts {
			at.RawSetString(c.Name, b.constant(c.Doc, c.Type))
		}
	}
}

// objects fills t with the methods of each kind of handle.
func (b *book) objects(root string, t *lua.LTable) {
	for _, m := range b.vm.config.Modules {
		for _, kind := range m.Types {
			if rootOf(m.Name) != root {
				continue
			}
			methods := b.vm.root.CreateTable(0, 4)
			for i := range kind.Methods {
				f := &kind.Methods[i]
				methods.RawSetString(f.Name, b.entry(root, kind.Name+":"+f.Name, f))
			}
			for _, f := range kind.Fields {
				field := b.constant(f.Doc, "")
				field.RawSetString("returns", b.table(b.arg(root, kind.Name+"."+f.Name, &f)))
				methods.RawSetString(f.Name, field)
			}
			if kind.Call != nil {
				methods.RawSetString("__call", b.entry(root, kind.Name, kind.Call))
			}
			t.RawSetString(kind.Name, methods)
		}
	}
}

// constant answers the entry of what is not called.
func (b *book) constant(doc, cats string) *lua.LTable {
	t := b.vm.root.CreateTable(0, 4)
	t.RawSetString("doc", lua.LString(doc))
	t.RawSetString("returns", lua.LString(cats))
	return t
}

// entry answers the entry of a function.
func (b *book) entry(root, place string, f *Func) *lua.LTable {
	t, args := b.vm.root.CreateTable(0, 4), b.vm.root.CreateTable(len(f.Args), 0)
	t.RawSetString("doc", lua.LString(f.Doc))
	t.RawSetString("args", args)
	for i := range f.Args {
		args.Append(b.argument(root, place, &f.Args[i]))
	}
	if want := b.returns(f); len(want.list) == 1 && !want.rest {
		t.RawSetString("returns", b.table(want.list[0]))
	} else if f.Returns != "" {
		t.RawSetString("returns", lua.LString(f.Returns))
	}
	return t
}

// argument answers { schema, what it is, name = its name, optional = true? }.
func (b *book) argument(root, place string, a *Arg) *lua.LTable {
	t := b.vm.root.CreateTable(2, 2)
	t.Append(b.table(b.arg(root, place, a)))
	t.Append(lua.LString(cmp.Or(a.Doc, a.Name)))
	t.RawSetString("name", lua.LString(a.Name))
	if a.Optional {
		t.RawSetString("optional", lua.LTrue)
	}
	return t
}
