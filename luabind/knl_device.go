package luabind

import (
	"encoding/json"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

// device is a kernel.Device as scripts hold it.
type device struct {
	st     *knlState
	d      *kernel.Device
	ud     *lua.LUserData
	fields *lua.LTable // what the script gave, frozen copies
}

var deviceFields = []Arg{
	{Name: "llm", Optional: true, Type: "knl.llm|fun(request: knl.request, ctx: knl.call_context): knl.answer?, knl.call_error?", Doc: "answers a request; nil and why when it cannot"},
	{Name: "tools", Kind: Table, Optional: true, Type: "table<string, knl.tool_entry>", Doc: "by name"},
	{Name: "tool_policy", Kind: Function, Optional: true, Type: "fun(block: knl.tool_use_block, answer: knl.answer): knl.tool_policy_decision?, string?", Doc: "decides over each call before any runs; the second value is why"},
	{Name: "fold", Kind: Function, Optional: true, Type: "fun(events: knl.event[], device: knl.device): knl.request, table?", Doc: "makes the request (default: knl.fold), and may say what it left out of it"},
	{Name: "filters", Kind: Table, Optional: true, Type: "(fun(request: knl.request): knl.request)[]", Doc: "change the request, in their order"},
	{Name: "system", Optional: true, Type: "string|table[]", Doc: "text, or a list of blocks"},
	{Name: "cost", Kind: Function, Optional: true, Type: "fun(request: knl.request): integer", Doc: "what a beat reserves (default: 1)"},
	{Name: "settle", Kind: Function, Optional: true, Type: "fun(request: knl.request, response: knl.answer): integer", Doc: "what a beat has cost"},
	{Name: "parallel", Kind: Whole, Optional: true, Doc: "calls marked parallel that run at a time (default 4)"},
}

var toolFields = []Arg{
	{Name: "description", Kind: Text, Optional: true, Doc: "for the model"},
	{Name: "input_schema", Kind: Table, Optional: true, Doc: "JSON Schema of the arguments"},
	{Name: "handler", Kind: Function, Type: "fun(args: table, ctx: knl.tool_context): any", Doc: "runs a call; what it raises is told to the model"},
	{Name: "effects", Kind: Text, Optional: true, Type: "knl.effects", Doc: "(default: external)"},
	{Name: "idempotent", Kind: Flag, Optional: true, Doc: "running a call twice is running it once"},
	{Name: "parallel", Kind: Flag, Optional: true, Doc: "may run beside other calls of the reply"},
	{Name: "timeout", Kind: Seconds, Optional: true, Doc: "seconds (default: none)"},
	{Name: "strict", Kind: Flag, Optional: true, Doc: "validate the arguments by input_schema"},
}

var deviceFuncs = []Func{{
	Name: "device", Args: []Arg{{Name: "config", Kind: Table, Optional: true, Type: "knl.device_opts", Fields: deviceFields}}, Returns: "knl.device",
	Doc: "A frozen bundle of policy. It is checked whole, here.",
	Fn: func(c *Call) (int, error) {
		for _, name := range []string{"owner", "budget", "store", "session", "parent"} {
			if t, ok := c.Arg(1).(*lua.LTable); ok && t.RawGetString(name) != lua.LNil {
				return 0, c.Mistake("unknown option %q: it belongs to knl.open or knl.resume, a device holds no state", name)
			}
		}
		d, err := newDevice(c, c.Options(1))
		if err != nil {
			return 0, err
		}
		return c.Return(d.ud)
	},
}}

var deviceType = &Type{Name: "device", Doc: "A frozen bundle of policy.", Fields: deviceFields}

func init() { // its method makes another one
	deviceType.Methods = []Func{{
		Name: "with", Args: []Arg{{Name: "delta", Kind: Table, Type: "knl.device_opts", Fields: deviceFields}}, Returns: "knl.device",
		Doc: "A new device with the fields of delta in place of this one's. knl.null takes a field away.",
		Fn:  deviceWith,
	}}
}

var llmType = &Type{Name: "llm", Doc: "An opened model: llm(request, ctx?) -> answer | nil, error.", Call: &llmCall}

// complete gives the metatables of device and llm what a Type cannot say.
func (st *knlState) complete() {
	if st.meta {
		return
	}
	st.meta = true
	mt := st.vm.metas[deviceType]
	methods := mt.RawGetString("__index").(*lua.LTable)
	mt.RawSetString("__metatable", lua.LString("knl.device"))
	mt.RawSetString("__index", st.vm.root.NewFunction(func(l *lua.LState) int {
		v := methods.RawGet(l.Get(2))
		if v == lua.LNil {
			if d, ok := l.CheckUserData(1).Value.(*device); ok {
				v = d.fields.RawGet(l.Get(2))
			}
		}
		l.Push(v)
		return 1
	}))
	st.vm.metas[llmType].RawSetString("__call", st.vm.function(&llmCall, bound{place: "llm", state: st, self: llmType}))
}

func deviceWith(c *Call) (int, error) {
	d := Self[*device](c)
	delta := c.Table(1)
	merged := c.L.CreateTable(0, 4)
	d.fields.ForEach(func(k, v lua.LValue) { merged.RawSet(k, v) })
	delta.ForEach(func(k, v lua.LValue) {
		if v == Null {
			v = lua.LNil
		}
		merged.RawSet(k, v)
	})
	o, err := c.CheckFields(merged, "option", deviceFields)
	if err != nil {
		return 0, err
	}
	next, err := newDevice(c, o)
	if err != nil {
		return 0, err
	}
	return c.Return(next.ud)
}

// newDevice checks a config whole and builds the kernel's device from it.
func newDevice(c *Call, o Options) (*device, error) {
	st := state(c)
	st.complete()
	d := &device{st: st, fields: c.L.CreateTable(0, 4)}
	d.ud = st.vm.Wrap(deviceType, d)
	config, err := d.config(c, o)
	if err != nil {
		return nil, err
	}
	if st.host.Device != nil {
		st.host.Device(&config)
	}
	if d.d, err = kernel.NewDevice(config); err != nil {
		return nil, c.Mistake("%s", err)
	}
	for _, f := range deviceFields {
		if v := o.Value(f.Name); v != lua.LNil && d.fields.RawGetString(f.Name) == lua.LNil {
			d.fields.RawSetString(f.Name, v)
		}
	}
	if d.fields.RawGetString("fold") == lua.LNil {
		d.fields.RawSetString("fold", st.foldFunction())
	}
	return d, nil
}

func (d *device) config(c *Call, o Options) (config kernel.Config, err error) {
	config.Parallel = int(o.Int("parallel", 0))
	if o.Has("parallel") && config.Parallel < 1 {
		return config, c.Mistake("option \"parallel\": got %d, want a whole number ≥ 1", config.Parallel)
	}
	if config.LLM, err = d.llm(c, o.Value("llm")); err != nil {
		return config, err
	}
	if config.Tools, err = d.tools(c, o.Table("tools")); err != nil {
		return config, err
	}
	if v := o.Value("system"); v != lua.LNil {
		if config.System, err = systemOf(c, v); err != nil {
			return config, err
		}
	}
	if config.Filters, err = d.filters(c, o.Table("filters")); err != nil {
		return config, err
	}
	if fn := o.Value("tool_policy"); fn != lua.LNil {
		config.Policy = d.policy(fn)
	}
	if fn := o.Value("fold"); fn != lua.LNil && fn != d.st.foldFunction() {
		config.Fold = d.fold(fn)
	}
	if fn := o.Value("cost"); fn != lua.LNil {
		config.Cost = d.cost(fn)
	}
	if fn := o.Value("settle"); fn != lua.LNil {
		config.Settle = d.settle(fn)
	}
	return config, nil
}

func systemOf(c *Call, v lua.LValue) (json.RawMessage, error) {
	switch v.(type) {
	case lua.LString, *lua.LTable:
	default:
		return nil, c.Mistake("option \"system\": got %s, want text or a list of blocks", show(v))
	}
	raw, err := toJSON("option \"system\"", v)
	if err != nil {
		return nil, c.Mistake("%s", err)
	}
	return raw, nil
}

func (d *device) filters(c *Call, t *lua.LTable) ([]kernel.Filter, error) {
	if t == nil {
		return nil, nil
	}
	kept := TagArray(c.L, c.L.CreateTable(0, 4))
	var out []kernel.Filter
	t = look(c.L, t)
	for i := 1; i <= t.MaxN(); i++ {
		fn := t.RawGetInt(i)
		if !callable(c.L, fn) {
			return nil, c.Mistake("filters[%d]: got %s, want a function", i, show(fn))
		}
		kept.Append(fn)
		out = append(out, d.filter(fn))
	}
	if k, _ := t.Next(lua.LNil); k != lua.LNil && len(out) == 0 {
		return nil, c.Mistake("filters: got a table with the key %s, want a list of functions", show(k))
	}
	d.fields.RawSetString("filters", c.VM().frozen("knl.device.filters", kept))
	return out, nil
}

// tools reads the map of entries and keeps a frozen copy of it.
func (d *device) tools(c *Call, t *lua.LTable) (map[string]kernel.Tool, error) {
	if t == nil {
		return nil, nil
	}
	t = look(c.L, t)
	if t.RawGetInt(1) != lua.LNil {
		return nil, c.Mistake("tools: got a list, want a map from name to entry: { read = { handler = fn } }")
	}
	kept := c.L.CreateTable(0, 4)
	out := map[string]kernel.Tool{}
	var bad error
	t.ForEach(func(k, v lua.LValue) {
		name, isText := k.(lua.LString)
		entry, isTable := v.(*lua.LTable)
		switch {
		case bad != nil:
		case !isText:
			bad = c.Mistake("tools: got the key %s, want the name of a tool", show(k))
		case !isTable:
			bad = c.Mistake("tools.%s: got %s, want a table with a handler", name, show(v))
		default:
			entry = look(c.L, entry)
			kept.RawSet(k, c.VM().frozen("tool", copyTable(c.L, entry)))
			out[string(name)], bad = d.tool(c, string(name), entry)
		}
	})
	if bad != nil {
		return nil, bad
	}
	d.fields.RawSetString("tools", c.VM().frozen("knl.device.tools", kept))
	return out, nil
}

func copyTable(l *lua.LState, t *lua.LTable) *lua.LTable {
	out := l.CreateTable(0, 4)
	t.ForEach(func(k, v lua.LValue) { out.RawSet(k, v) })
	return out
}

func (d *device) tool(c *Call, name string, entry *lua.LTable) (kernel.Tool, error) {
	o, err := c.CheckFields(entry, "tools."+name+": key", toolFields)
	if err != nil {
		return kernel.Tool{}, err
	}
	t := kernel.Tool{
		Description: o.String("description", ""),
		Effects:     kernel.Effects(o.String("effects", "")),
		Idempotent:  o.Bool("idempotent", false),
		Parallel:    o.Bool("parallel", false),
		Timeout:     o.Seconds("timeout", 0),
		Strict:      o.Bool("strict", false),
		Handler:     d.handler(name, o.Value("handler")),
	}
	if o.Has("timeout") && t.Timeout <= 0 {
		return t, c.Mistake("tools.%s: key \"timeout\": got 0, want more than 0 seconds", name)
	}
	if s := o.Table("input_schema"); s != nil {
		if t.InputSchema, err = toJSON("tools."+name+".input_schema", s); err != nil {
			return t, c.Mistake("%s", err)
		}
	}
	return t, nil
}
