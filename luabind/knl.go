package luabind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// Kernel is what require("knl") works on. One value may serve many VMs.
type Kernel struct {
	// Open answers the store that spec names: "" for the store of the run, "mem",
	// or a folder. It is asked when a script first needs the store, and must
	// answer the same store for the same spec.
	Open func(spec string) (store.Store, error)
	// Options are those of every kernel; its Stamp goes into every session.
	Options kernel.Options
	// Version is knl.version.
	Version string
	// Session is told of every session that a script opens or resumes.
	Session func(s *kernel.Session, resumed bool)
	// Device may change what a device that a script makes is built from; nil
	// changes nothing. The script still sees what it gave.
	Device func(*kernel.Config)
}

// knlState is what a VM keeps for require("knl").
type knlState struct {
	vm      *VM
	host    *Kernel
	kernels map[store.Store]*kernel.Kernel
	mint    func() string
	fold    *lua.LFunction // knl.fold, to know it when a device has it
	meta    bool           // the metatables of device and llm are complete
}

// KnlModules answers the modules knl, knl.Outcome and knl.views on k.
func KnlModules(k *Kernel) []*Module {
	knl := &Module{
		Name: "knl",
		Doc:  "Sessions, devices and beats.",
		Open: func(vm *VM) (any, error) {
			return &knlState{vm: vm, host: k, kernels: map[store.Store]*kernel.Kernel{}}, nil
		},
		Types:  []*Type{sessionType, deviceType, llmType},
		Shapes: knlShapes,
		Fault:  kernelFault,
	}
	knl.Funcs = append(knl.Funcs, sessionFuncs...)
	knl.Funcs = append(knl.Funcs, deviceFuncs...)
	knl.Funcs = append(knl.Funcs, beatFuncs...)
	knl.Funcs = append(knl.Funcs, tailFuncs...)
	knl.Funcs = append(knl.Funcs, valueFuncs...)
	knl.Consts = []Const{
		{Name: "null", Type: "userdata", Doc: "JSON's null, which keeps its place in a list.", Value: func(*VM) lua.LValue { return Null }},
		{Name: "version", Type: "string", Doc: "The version of knl.", Value: func(*VM) lua.LValue { return lua.LString(k.Version) }},
	}
	views := &Module{Name: "knl.views", Doc: "Readings of the log: each answers rows, and whether limit cut them short.", Funcs: viewFuncs,
		Open: func(vm *VM) (any, error) { return vm.states[knl], nil }}
	outcome := &Module{Name: "knl.Outcome", Doc: "What a beat comes to.", Funcs: outcomeFuncs}
	return []*Module{knl, outcome, views}
}

func state(c *Call) *knlState { return c.State().(*knlState) }

// kernel answers the kernel on the store that v names, or that v is a session
// of.
func (st *knlState) kernel(c *Call, v lua.LValue) (*kernel.Kernel, error) {
	spec := ""
	if ud, ok := v.(*lua.LUserData); ok {
		if h, ok := ud.Value.(*handle); ok {
			return h.k, nil
		}
	}
	if v != lua.LNil {
		s, ok := v.(lua.LString)
		if !ok || s == "" {
			return nil, fault(kernel.Validation, c.fn.Name, "store: got %s, want \"mem\", the path of a folder or a session", show(v))
		}
		spec = string(s)
	}
	var opened store.Store
	err := c.Block(func(context.Context) (err error) {
		opened, err = st.host.Open(spec)
		return err
	})
	if err != nil {
		var known *kernel.Error
		var stopped *CancelError
		if errors.As(err, &known) || errors.As(err, &stopped) {
			return nil, err
		}
		kind := kernel.Storage
		if errors.Is(err, store.ErrBusy) {
			kind = kernel.Busy
		} else if errors.Is(err, store.ErrCorrupt) {
			kind = kernel.Corruption
		}
		return nil, &kernel.Error{Kind: kind, Method: c.fn.Name, Message: err.Error(), Err: err}
	}
	k := st.kernels[opened]
	if k == nil {
		k = kernel.New(opened, st.host.Options)
		st.kernels[opened] = k
	}
	return k, nil
}

func fault(kind kernel.Kind, method, format string, args ...any) *kernel.Error {
	return &kernel.Error{Kind: kind, Method: method, Message: fmt.Sprintf(format, args...)}
}

// kernelFault shows the kernel's errors to scripts.
func kernelFault(err error) (Fault, bool) {
	var e *kernel.Error
	if errors.As(err, &e) {
		return Fault{Kind: string(e.Kind), Method: e.Method, Retryable: e.Retryable(), Message: e.Message, Text: e.Error()}, true
	}
	var ce *kernel.CallError
	if errors.As(err, &ce) {
		return Fault{Kind: string(ce.Kind), Retryable: ce.Kind.Retryable(), Message: ce.Message, Text: ce.Error()}, true
	}
	return Fault{}, false
}

// json answers v as JSON for the kernel, which mends and counts bad text.
func toJSON(name string, v lua.LValue) (json.RawMessage, error) {
	return AppendJSON(nil, v, &Encoding{Name: name, ListFields: true, AsIs: true})
}

var memOnce = sync.OnceValue(store.NewMem)

// SharedMem answers the one in-memory store of this process: what store = "mem"
// names.
func SharedMem() store.Store { return memOnce() }

var valueFuncs = []Func{
	{
		Name: "int", Args: []Arg{{Name: "digits", Kind: Text, Doc: "decimal, with a sign or without"}}, Returns: "number|userdata",
		Doc: "An integer beyond 2^53 that keeps its digits; a number when one holds it.",
		Fn: func(c *Call) (int, error) {
			v, err := NewInt(c.String(1))
			if err != nil {
				return 0, c.Mistake("%s", err)
			}
			return c.Return(v)
		},
	},
	{
		Name: "array", Args: []Arg{{Name: "t", Kind: Table, Optional: true, Doc: "marked itself, not copied"}}, Returns: "table",
		Doc: "Marks t, or a new table, as a list, so that it is [] when it is empty.",
		Fn: func(c *Call) (int, error) {
			if !c.Given(1) {
				return c.Return(TagArray(c.L, c.L.CreateTable(0, 4)))
			}
			return c.Return(TagArray(c.L, c.Table(1)))
		},
	},
	{
		Name: "new_beat_id", Returns: "string", Doc: "A fresh id; ids sort by the time of their making.",
		Fn: func(c *Call) (int, error) { return c.Return(lua.LString(state(c).newID())) },
	},
	{
		Name: "error", Args: []Arg{{Name: "raised", Doc: "what pcall answered behind false"}}, Returns: "knl.error",
		Doc: "Reads what a pcall caught. The text of an error is never parsed: what the kernel raised is known by what it is.",
		Fn:  readError,
	},
	{
		Name: "api", Returns: "table<string, { signature: string, doc: string }>", Doc: "What a script can reach, by place.",
		Fn: listAPI,
	},
}

func (st *knlState) newID() string {
	if st.mint == nil {
		st.mint = kernel.New(nil, st.host.Options).NewBeatID
	}
	return st.mint()
}

func readError(c *Call) (int, error) {
	v := c.Arg(1)
	f, ok := FaultFrom(v)
	if !ok {
		f = Fault{Message: c.VM().text(c.L, v)}
		f.Text = f.Message
	}
	return c.Return(c.VM().withText(c.VM().structTable(c.L, errorForm(), f), f.Text))
}

func listAPI(c *Call) (int, error) {
	out := c.L.CreateTable(0, 4)
	for _, m := range c.VM().Modules() {
		m.Walk(func(place string, f *Func) {
			t := c.L.CreateTable(0, 4)
			t.RawSetString("signature", lua.LString(f.Signature(place)))
			t.RawSetString("doc", lua.LString(f.Doc))
			out.RawSetString(place, t)
		})
	}
	return c.Return(out)
}

// text answers tostring(v).
func (vm *VM) text(l *lua.LState, v lua.LValue) string {
	return lua.LVAsString(l.ToStringMeta(v))
}

// withText gives t a metatable whose tostring is text.
func (vm *VM) withText(t *lua.LTable, text string) *lua.LTable {
	mt := vm.root.CreateTable(0, 1)
	mt.RawSetString("__tostring", vm.root.NewFunction(func(l *lua.LState) int {
		l.Push(lua.LString(text))
		return 1
	}))
	t.Metatable = mt
	return t
}

func setText(t *lua.LTable, name, v string) {
	if v != "" {
		t.RawSetString(name, lua.LString(v))
	}
}
