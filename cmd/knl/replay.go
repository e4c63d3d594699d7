package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/replay"
)

const replayUsage = `Runs a script against a recorded session in place of a model: the n-th call of
the script's session is answered as the n-th recorded one was, if it asks the
same; children play recorded children. Every device gets the recorded model,
whatever port the script gave it. ID is a whole id, a unique beginning or ending
of one, or "last". Flags stand before ID; what follows the script is the script's.

Tools answer what was recorded and do not run, and the children that they opened
are left out; --tools run lets them. What the script does between its beats is
done. Its own sessions live in memory and are
gone after the run, arg.session is nil; the store is read and not written.

What the script prints goes to stderr. Exits 0 when all recorded calls were asked
again, in the same bytes; 1 at the first difference, or when the script raises.

JSON:
  { "identical", "session", "beats", "difference"?: { "session", "call", "beat"?,
    "changes": [ text ] }, "error"?: { "message", "traceback"? } }`

// What --tools may say.
const (
	toolsRecorded = "recorded"
	toolsRun      = "run"
)

func replayCommand(a *app) *cobra.Command {
	var f runFlags
	var tools string
	cmd := &cobra.Command{
		Use:   "replay ID script.lua [args…]",
		Short: "Run a script against a recorded session",
		Long:  replayUsage,
		Args:  a.wantArgs("session ID", "script", "args…"),
		RunE: a.command(func(ctx context.Context, args []string) (err error) {
			s := script{path: args[1], args: args[2:]}
			if s.limits, err = f.limits(); err != nil {
				return err
			}
			if err := errors.Join(oneOf("--tools", tools, toolsRecorded, toolsRun), scriptFault(s.path)); err != nil {
				return err
			}
			if a.flags.model != "" {
				return misuse("leave it out, or use knl run", "--model %s: the recorded session is the model of a replay", a.flags.model)
			}
			return a.replay(ctx, args[0], s, tools)
		}),
	}
	f.register(cmd)
	cmd.Flags().StringVar(&tools, "tools", toolsRecorded, `"recorded": tools answer from the log; "run": they run`)
	return cmd
}

// replay plays the session that prefix names and reports how it went.
func (a *app) replay(ctx context.Context, prefix string, s script, tools string) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	return a.look(ctx, func(p *place) error {
		id, err := p.session(ctx, prefix)
		if err != nil {
			return err
		}
		recorded := p.kernel
		if tools == toolsRecorded {
			if recorded, err = withoutTools(ctx, p, id); err != nil {
				return err
			}
		}
		h := a.newHost()
		h.stores.dir, h.stores.mem = memory, store.NewMem()
		h.playing = &playing{session: id, port: replay.New(recorded, id), store: h.stores.mem, tools: tools == toolsRecorded}
		s.host, s.stdout = h, a.ui.err
		r := s.run(ctx)
		r.err = errors.Join(r.err, h.stores.close())
		d, err := h.playing.judge(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if interrupted(ctx) {
			return &fault{code: exitInterrupted, err: errors.New("interrupted")}
		}
		return a.replayed(h, d, r)
	})
}

// childless is a store in which some children are not seen.
type childless struct {
	store.Store
	hidden map[string]bool
}

// Children lists the others.
func (c childless) Children(ctx context.Context, parent string) ([]string, error) {
	ids, err := c.Store.Children(ctx, parent)
	return slices.DeleteFunc(ids, func(id string) bool { return c.hidden[id] }), err
}

// withoutTools answers p's kernel without the sessions that tools of the tree of
// id opened: a tool that does not run opens none.
func withoutTools(ctx context.Context, p *place, id string) (*kernel.Kernel, error) {
	tree, err := p.kernel.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	hidden := map[string]bool{}
	for _, row := range tree {
		s, err := p.kernel.Attach(ctx, row.Session)
		if err != nil {
			return nil, err
		}
		rows, _, err := s.Scan(ctx, kernel.Where{Kinds: []string{kernel.ToolCall, kernel.ToolResult, kernel.BudgetReserved}})
		if err != nil {
			return nil, err
		}
		openedInCalls(rows, hidden)
	}
	return kernel.New(childless{p.store, hidden}, kernel.Options{}), nil
}

// openedInCalls adds the children that a session opened while a call ran.
func openedInCalls(rows []kernel.Row, children map[string]bool) {
	running := map[string]bool{}
	for _, row := range rows {
		var d struct {
			CallID string `json:"call_id"`
			Child  string `json:"child"`
		}
		_ = json.Unmarshal(row.Event.Data, &d) // a caller's event may have other types there
		switch row.Event.Kind {
		case kernel.ToolCall:
			running[d.CallID] = true
		case kernel.ToolResult:
			delete(running, d.CallID)
		case kernel.BudgetReserved:
			if d.Child != "" && len(running) > 0 {
				children[d.Child] = true
			}
		}
	}
}

// replayDoc is the JSON of a replay.
type replayDoc struct {
	Identical  bool               `json:"identical"`
	Session    string             `json:"session"`
	Beats      int                `json:"beats"`
	Difference *replay.Difference `json:"difference,omitempty"`
	Error      *errorDoc          `json:"error,omitempty"`
}

// judge says how far the script followed the recorded session.
func (p *playing) judge(ctx context.Context) (*replayDoc, error) {
	beats, left, err := p.port.Left(ctx)
	d := &replayDoc{Session: p.session, Beats: beats, Difference: p.port.First()}
	if d.Difference == nil {
		d.Difference = left
	}
	d.Identical = d.Difference == nil
	return d, err
}

func (a *app) replayed(h *host, d *replayDoc, r result) error {
	code, why := exitDone, ""
	if r.err != nil {
		code, why = r.reason(false)
		d.Error = &errorDoc{h.mask.Mask(why), h.mask.Mask(scriptTrace(r.err))}
	}
	if d.Difference != nil {
		code = exitRaised
		for i, line := range d.Difference.Changes {
			d.Difference.Changes[i] = h.mask.Mask(line)
		}
	}
	if err := a.showReplay(d); err != nil || code == exitDone {
		return err
	}
	switch {
	case d.Difference == nil:
		return &fault{code: code, err: ended{d.Error.Message, r.err}}
	case d.Error != nil:
		a.ui.note("the script raised: %s", d.Error.Message)
	}
	return &fault{code: code, err: fmt.Errorf("session %s: the replay differs at call %d", d.Difference.Session, d.Difference.Call),
		hint: nextStep(d.Difference)}
}

// nextStep says where to look at what was recorded.
func nextStep(d *replay.Difference) string {
	if d.Beat == "" {
		return fmt.Sprintf("knl log %s shows what was recorded", d.Session)
	}
	return fmt.Sprintf("knl show %s --beat %s shows what was recorded", d.Session, d.Beat)
}

func (a *app) showReplay(d *replayDoc) error {
	switch {
	case a.flags.json:
		return a.ui.json(d)
	case d.Identical:
		return a.ui.line("replayed %s, identical", count(int64(d.Beats), "beat"))
	}
	where := fmt.Sprintf("call %d of session %s", d.Difference.Call, d.Difference.Session)
	if d.Difference.Beat != "" {
		where += " (beat " + d.Difference.Beat + ")"
	}
	if err := a.ui.line("replayed %s, then %s differs:", count(int64(d.Beats), "beat"), where); err != nil {
		return err
	}
	for _, line := range d.Difference.Changes {
		if err := a.ui.line("  %s", visible(line)); err != nil {
			return err
		}
	}
	return nil
}

// playing is what a replay puts in the place of the world; nil puts nothing.
type playing struct {
	session string
	port    *replay.Replay
	store   store.Store // of every session that the script opens
	tools   bool        // tools answer what is recorded
}

// kernel answers k with the sessions in memory and the recorded model in every
// device.
func (p *playing) kernel(k *luabind.Kernel) *luabind.Kernel {
	if p != nil {
		k.Open = func(string) (store.Store, error) { return p.store, nil }
		k.Device = p.device
	}
	return k
}

func (p *playing) device(c *kernel.Config) {
	if c.LLM != nil {
		c.LLM, _ = p.port.Open(port.Conf{}) // it refuses no conf
	}
	if !p.tools {
		return
	}
	c.Tools = maps.Clone(c.Tools)
	for name, tool := range c.Tools {
		tool.Handler, tool.Timeout = p.handle, 0
		c.Tools[name] = tool
	}
}

func (p *playing) handle(_ context.Context, _ json.RawMessage, t kernel.ToolContext) (json.RawMessage, error) {
	return p.port.Tool(t.Session.ID(), t.CallID)
}

// ports answers o with the recorded session under every name.
func (p *playing) ports(o *luabind.Ports) *luabind.Ports {
	if p == nil {
		return o
	}
	registry := port.Registry{replay.Name: p.port}
	for name := range o.Registry {
		registry[name] = p.port
	}
	o.Registry, o.Model = registry, replay.Name+":"+p.session
	return o
}
