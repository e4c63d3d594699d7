package luabind

import (
	"context"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/script"
)

// Ports is what require("ports") works on.
type Ports struct {
	Registry port.Registry // what ports.from may choose
	Model    string        // "provider:name" that the run was told, or ""
	Mask     *Masker       // hides secrets in what ports.cassette writes; nil: nothing is hidden
}

// openPort is a port with the conf it was made with.
type openPort struct {
	name string
	port port.Port
	conf port.Conf
}

// PortsModule answers the module ports.
func PortsModule(p *Ports) *Module {
	return &Module{
		Name:   "ports",
		Doc:    "Models: port:open(conf?) answers what a device takes as llm.",
		Open:   func(vm *VM) (any, error) { return &portsState{p, vm}, nil },
		Types:  []*Type{portType},
		Shapes: portShapes,
		Funcs: []Func{
			{
				Name: "script", Args: []Arg{{Name: "replies", Type: "ports.reply[]|fun(request: knl.request, ctx: knl.call_context): ports.reply", Doc: "the n-th call of a session gets the n-th reply"}}, Returns: "ports.port",
				Doc: "A scripted model. A reply is { text }, { calls = { { \"tool\", { args } } } }, { refuse }, { fail = { kind } }, { truncated = true }, each with delay?, thinking?, usage?.",
				Fn:  scriptPort,
			},
			provider("anthropic", "Claude models, and servers that speak their Messages API. The key stands in ANTHROPIC_API_KEY or in conf.api_key_env, the address in conf.base_url or ANTHROPIC_BASE_URL."),
			provider("openai", "OpenAI's models, and servers that speak Chat Completions (conf.dialect). The key stands in OPENAI_API_KEY or in conf.api_key_env, the address in conf.base_url or OPENAI_BASE_URL."),
			{
				Name: "from", Args: []Arg{{Name: "model", Kind: Text, Doc: "provider:name"}, confArg[0]}, Returns: "ports.port",
				Doc: "The port of a provider, for one model.",
				Fn: func(c *Call) (int, error) {
					conf, err := confOf(c, 2, port.Conf{})
					if err != nil {
						return 0, err
					}
					return portFrom(c, c.String(1), conf)
				},
			},
			{
				Name: "default", Args: []Arg{{Name: "own", Kind: Userdata, Optional: true, Type: "ports.port", Doc: "the script's own"}}, Returns: "ports.port?",
				Doc: "What --model chose; without it own, the script's own port.",
				Fn: func(c *Call) (int, error) {
					if own, ok := c.Arg(1).(*lua.LUserData); c.Given(1) && (!ok || !isPort(own)) {
						return 0, c.ArgMistake(1, "a port")
					}
					if p.Model == "" {
						return c.Return(c.Arg(1))
					}
					return portFrom(c, p.Model, port.Conf{})
				},
			},
			cassetteFunc,
			replayFunc,
		},
	}
}

type portsState struct {
	*Ports
	vm *VM
}

var portType = &Type{
	Name:     "port",
	Doc:      "A provider's adapter.",
	Tostring: func(v any) string { return "port " + v.(*openPort).name },
	Methods: []Func{
		{Name: "open", Args: confArg, Returns: "knl.llm", Doc: "Opens a model. It makes no call.", Fn: portOpen},
		{Name: "count", Args: append([]Arg{{Name: "request", Kind: Table, Type: "knl.request"}}, confArg...), Returns: "integer", Doc: "The tokens that a request takes as a prompt.", Fn: portCount},
		{Name: "profile", Args: confArg, Returns: "ports.profile", Doc: "What the model can do, in tokens.", Fn: portProfile},
		{Name: "health", Args: confArg, Returns: "boolean, string?", Doc: "Whether a call would reach the provider with a valid key.", Fn: portHealth},
	},
}

var confArg = []Arg{{Name: "conf", Kind: Table, Optional: true, Type: "ports.conf", Doc: "which model, and how to ask it"}}

func isPort(ud *lua.LUserData) bool {
	_, ok := ud.Value.(*openPort)
	return ok
}

// confOf reads argument i over base.
func confOf(c *Call, i int, base port.Conf) (port.Conf, error) {
	if !c.Given(i) {
		return base, nil
	}
	raw, err := AppendJSON(nil, c.Table(i), &Encoding{Name: "conf"})
	if err != nil {
		return base, c.Mistake("%s", err)
	}
	conf, err := base.Over(raw)
	if err != nil {
		return base, c.Mistake("%s", err)
	}
	return conf, nil
}

// provider is the function that answers the port of one provider. A model may
// be named when it is opened.
func provider(name, doc string) Func {
	return Func{Name: name, Args: confArg, Returns: "ports.port", Doc: doc, Fn: func(c *Call) (int, error) {
		st := c.State().(*portsState)
		p, known := st.Registry[name]
		if !known {
			return 0, c.Mistake("this host has no %s", name)
		}
		conf, err := confOf(c, 1, port.Conf{})
		if err != nil {
			return 0, err
		}
		return c.Return(st.vm.Wrap(portType, &openPort{name, p, conf}))
	}}
}

func portFrom(c *Call, model string, conf port.Conf) (int, error) {
	st := c.State().(*portsState)
	p, conf, err := st.Registry.From(model, conf)
	if err != nil {
		return 0, c.Mistake("%s", err)
	}
	return c.Return(st.vm.Wrap(portType, &openPort{model, p, conf}))
}

func scriptPort(c *Call) (int, error) {
	st := c.State().(*portsState)
	if callable(c.L, c.Arg(1)) {
		fn := c.Arg(1)
		return c.Return(st.vm.Wrap(portType, &openPort{script.Name, script.Func(st.next(fn)), port.Conf{}}))
	}
	raw, err := AppendJSON(nil, c.Table(1), &Encoding{Name: "replies", ListFields: true})
	if err != nil {
		return 0, c.Mistake("%s", err)
	}
	if string(raw) == "{}" {
		raw = []byte("[]")
	}
	replies, err := script.ParseReplies(raw)
	if err != nil {
		return 0, c.Mistake("%s", err)
	}
	return c.Return(st.vm.Wrap(portType, &openPort{script.Name, script.New(replies), port.Conf{}}))
}

// next asks a script's function for the reply to a request.
func (st *portsState) next(fn lua.LValue) func(context.Context, *kernel.Request, kernel.CallOptions) (script.Reply, error) {
	return func(ctx context.Context, req *kernel.Request, o kernel.CallOptions) (r script.Reply, err error) {
		err = st.vm.Enter(ctx, func(c *Call) error {
			out, err := c.Invoke(fn, st.vm.requestTable(req), callContext(c, o))
			if err != nil {
				return err
			}
			t, ok := first(out).(*lua.LTable)
			if !ok {
				return fmt.Errorf("ports.script: got %s from its function, want a reply (a table)", show(first(out)))
			}
			raw, err := AppendJSON(nil, t, &Encoding{Name: "reply", ListFields: true})
			if err != nil {
				return err
			}
			r, err = script.ParseReply(raw)
			return err
		})
		return r, err
	}
}

func portOpen(c *Call) (int, error) {
	p := Self[*openPort](c)
	conf, err := confOf(c, 1, p.conf)
	if err != nil {
		return 0, err
	}
	model, err := p.port.Open(conf)
	if err != nil {
		return 0, err
	}
	for _, m := range c.VM().Modules() { // the model's metatable is knl's
		if st, ok := c.VM().StateOf(m).(*knlState); ok {
			st.complete()
		}
	}
	return c.Return(c.VM().Wrap(llmType, model))
}

func portCount(c *Call) (int, error) {
	p := Self[*openPort](c)
	req, err := c.VM().requestOf(c.Arg(1))
	if err != nil {
		return 0, c.ArgMistake(1, "a request: "+err.Error())
	}
	conf, err := confOf(c, 2, p.conf)
	if err != nil {
		return 0, err
	}
	var n int64
	if err := c.Block(func(ctx context.Context) (err error) {
		n, err = p.port.Count(ctx, req, conf)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(lua.LNumber(n))
}

func portProfile(c *Call) (int, error) {
	p := Self[*openPort](c)
	conf, err := confOf(c, 1, p.conf)
	if err != nil {
		return 0, err
	}
	var pr port.Profile
	if err := c.Block(func(ctx context.Context) (err error) {
		pr, err = p.port.Profile(ctx, conf)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(c.VM().structTable(c.L, portForms().profile, pr))
}

func portHealth(c *Call) (int, error) {
	p := Self[*openPort](c)
	conf, err := confOf(c, 1, p.conf)
	if err != nil {
		return 0, err
	}
	var bad error
	if err := c.Block(func(ctx context.Context) error {
		bad = p.port.Health(ctx, conf)
		return ctx.Err()
	}); err != nil {
		return 0, err
	}
	if bad != nil {
		return c.Return(lua.LFalse, lua.LString(bad.Error()))
	}
	return c.Return(lua.LTrue)
}
