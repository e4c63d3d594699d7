package luabind

import (
	"context"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/replay"
)

var replayFunc = Func{
	Name: "replay", Returns: "ports.port",
	Args: []Arg{{Name: "opts", Kind: Table, Fields: []Arg{
		{Name: "session", Type: "knl.session|string", Doc: "what is played, or its id in the run's store"},
	}}},
	Doc: "A recorded session as a port: the n-th call of a new session gets the answer of the n-th recorded one, and a child " +
		"that of a recorded child. A request that differs from the recorded one fails and says what changed.",
	Fn: replayPort,
}

func replayPort(c *Call) (int, error) {
	st := c.State().(*portsState)
	k, id, err := recorded(c, c.Options(1).Value("session"))
	if err != nil {
		return 0, err
	}
	return c.Return(st.vm.Wrap(portType, &openPort{replay.Name, replay.New(k, id), port.Conf{}}))
}

// recorded answers the session that v is or names, with its kernel.
func recorded(c *Call, v lua.LValue) (*kernel.Kernel, string, error) {
	if ud, ok := v.(*lua.LUserData); ok {
		if h, ok := ud.Value.(*handle); ok {
			return h.k, h.s.ID(), nil
		}
	}
	id, ok := v.(lua.LString)
	if !ok {
		return nil, "", c.Mistake("option \"session\": got %s, want a session or its id", show(v))
	}
	k, err := runKernel(c)
	if err == nil {
		err = c.Block(func(ctx context.Context) error {
			_, err := k.Attach(ctx, string(id))
			return err
		})
	}
	if err != nil {
		return nil, "", c.Mistake("option \"session\": %s", err)
	}
	return k, string(id), nil
}

// runKernel answers the kernel on the run's store, which the module knl opens.
func runKernel(c *Call) (*kernel.Kernel, error) {
	for _, m := range c.VM().Modules() {
		if st, ok := c.VM().StateOf(m).(*knlState); ok {
			return st.kernel(c, lua.LNil)
		}
	}
	return nil, fault(kernel.Unsupported, "replay", "this host has no store")
}
