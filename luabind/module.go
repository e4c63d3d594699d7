package luabind

import (
	"fmt"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Kind is what an argument or option may be. It checks the value and names it
// in an error.
type Kind uint8

// The kinds of [Arg].
const (
	Anything     Kind = iota
	Text              // a string; a number is not taken for one
	Number            // a number
	Whole             // a whole number
	Flag              // true or false, nothing else
	Table             // a table
	Function          // a function, or a table that can be called
	Seconds           // seconds, a number that is not negative
	Milliseconds      // milliseconds, a number that is not negative
	Userdata          // a userdata of this package
)

// Arg describes one argument of a host function, or one key of its options.
type Arg struct {
	Name     string
	Kind     Kind
	Optional bool
	Doc      string
	// Type is the LuaCATS spelling, when Kind does not say enough ("string|string[]").
	Type string
	// Fields are the keys of an options table; [Call.Options] refuses others.
	Fields []Arg
}

// Func is one function of a host module or one method of a [Type].
type Func struct {
	Name    string
	Args    []Arg
	Returns string // LuaCATS: "string", "boolean, string?"
	Doc     string
	// Fn unpacks its arguments from the call, acts, and answers how many values
	// it pushed. An error is raised: see [Call.Return] and [VM.ErrorValue].
	Fn func(*Call) (int, error)
}

// Const is a field of a host module that is not a function.
type Const struct {
	Name  string
	Type  string // LuaCATS
	Doc   string
	Value func(*VM) lua.LValue
}

// Type is a kind of handle that host functions give to scripts. Scripts call
// its methods and cannot set fields or reach the metatable.
type Type struct {
	Name     string // "session"
	Doc      string
	Methods  []Func
	Call     *Func              // what calling the handle does, when it can be called
	Fields   []Arg              // what scripts may read of it
	Tostring func(v any) string // nil prints the name
}

// Module is one host module. The description is shared by every VM; what a VM
// keeps for itself is what Open answers.
type Module struct {
	Name   string // "knl", "std.sh"
	Doc    string
	Funcs  []Func
	Consts []Const
	Types  []*Type
	// Shapes answers what the module publishes by name beside its options; see
	// [Shape].
	Shapes func() []Shape
	// Open makes the module's state in a VM; functions read it by [Call.State].
	Open func(*VM) (any, error)
	// Close ends that state with the VM.
	Close func(state any) error
	// Fault says how an error of this module looks to a script; see [Fault].
	Fault func(error) (Fault, bool)
}

// Walk calls fn for every function and method of m with the name a script uses:
// "std.sh.run", "session:append".
func (m *Module) Walk(fn func(place string, f *Func)) {
	for i := range m.Funcs {
		fn(m.Name+"."+m.Funcs[i].Name, &m.Funcs[i])
	}
	for _, t := range m.Types {
		for i := range t.Methods {
			fn(t.Name+":"+t.Methods[i].Name, &t.Methods[i])
		}
	}
}

// Signature answers the function as the documentation shows it:
// "std.sh.run(argv, opts?) -> table".
func (f *Func) Signature(place string) string {
	names := make([]string, len(f.Args))
	for i, a := range f.Args {
		names[i] = a.Name
		if a.Optional {
			names[i] += "?"
		}
	}
	sig := place + "(" + strings.Join(names, ", ") + ")"
	if f.Returns != "" {
		sig += " -> " + f.Returns
	}
	return sig
}

// LuaType answers the LuaCATS type of a.
func (a *Arg) LuaType() string {
	if a.Type != "" {
		return a.Type
	}
	return kindNames[a.Kind].cats
}

// table builds the module's table in vm.
func (m *Module) table(vm *VM) (*lua.LTable, error) {
	var state any
	if m.Open != nil {
		s, err := m.Open(vm)
		if err != nil {
			return nil, fmt.Errorf("opening module %q: %w", m.Name, err)
		}
		state = s
		if m.Close != nil {
			vm.onClose(func() error { return m.Close(s) })
		}
	}
	vm.states[m] = state
	tbl := vm.root.CreateTable(0, len(m.Funcs)+len(m.Consts))
	for i := range m.Funcs {
		f := &m.Funcs[i]
		tbl.RawSetString(f.Name, vm.function(f, bound{place: m.Name + "." + f.Name, state: state}))
	}
	for i := range m.Consts {
		tbl.RawSetString(m.Consts[i].Name, m.Consts[i].Value(vm))
	}
	for _, t := range m.Types {
		vm.metatable(t, state)
	}
	return tbl, nil
}

// Wrap makes the userdata that scripts hold for v. The type must be listed in
// the Types of a module of this VM.
func (vm *VM) Wrap(t *Type, v any) *lua.LUserData {
	mt := vm.metas[t]
	if mt == nil {
		panic("BUG: luabind: type " + t.Name + " is listed in no open module")
	}
	return &lua.LUserData{Value: v, Env: vm.root.G.Global, Metatable: mt}
}

// metatable builds the metatable of t once per VM.
func (vm *VM) metatable(t *Type, state any) {
	if vm.metas[t] != nil {
		return
	}
	methods := vm.root.CreateTable(0, len(t.Methods))
	for i := range t.Methods {
		f := &t.Methods[i]
		methods.RawSetString(f.Name, vm.function(f, bound{place: t.Name + ":" + f.Name, state: state, self: t}))
	}
	mt := vm.root.CreateTable(0, 4)
	mt.RawSetString("__index", methods)
	mt.RawSetString("__metatable", lua.LString(t.Name))
	mt.RawSetString("__newindex", vm.root.NewFunction(func(l *lua.LState) int {
		l.RaiseError("%s: field %q cannot be set, a %s is read-only", t.Name, lua.LVAsString(l.Get(2)), t.Name)
		return 0
	}))
	mt.RawSetString("__tostring", vm.root.NewFunction(func(l *lua.LState) int {
		l.Push(lua.LString(describe(t, l.Get(1))))
		return 1
	}))
	vm.metas[t] = mt
}

func describe(t *Type, v lua.LValue) string {
	if ud, ok := v.(*lua.LUserData); ok && t.Tostring != nil {
		return t.Tostring(ud.Value)
	}
	return t.Name
}

// bound is what a host function knows about where it hangs.
type bound struct {
	place string // "std.sh.run", "session:append"
	state any
	self  *Type // set for a method
}

// function makes the Lua function that runs f.
func (vm *VM) function(f *Func, b bound) *lua.LFunction {
	at := &b
	return vm.root.NewFunction(func(l *lua.LState) int {
		t := threadOf(l)
		c := t.borrowCall(f, at)
		n, err := f.Fn(c)
		if err != nil {
			c.raise(err)
		}
		if vm.dev {
			vm.hold(c, n)
		}
		t.returnCall(c)
		return n
	})
}

// Modules answers the host modules of vm in the order they were configured.
func (vm *VM) Modules() []*Module { return vm.config.Modules }

// reserved answers the names that [VM] gives to host modules, sorted: every
// module and every prefix of a dotted one.
func reserved(mods []*Module) []string {
	seen := map[string]bool{}
	for _, m := range mods {
		parts := strings.Split(m.Name, ".")
		for i := range parts {
			seen[strings.Join(parts[:i+1], ".")] = true
		}
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
