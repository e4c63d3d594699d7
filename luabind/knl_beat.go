package luabind

import (
	"context"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/shapes"
)

var beatFields = []Arg{
	{Name: "on_delta", Kind: Function, Optional: true, Type: "fun(delta: knl.delta)", Doc: "is shown the answer while it comes"},
	{Name: "deadline", Kind: Seconds, Optional: true, Doc: "seconds from now"},
	{Name: "tool_choice", Optional: true, Type: "string|table", Doc: "which tool must be called"},
	{Name: "params", Kind: Table, Optional: true, Doc: "sampling parameters"},
}

var beatFuncs = []Func{
	{
		Name: "beat", Returns: "knl.beat_outcome",
		Args: []Arg{{Name: "session", Type: "knl.session"}, {Name: "device", Type: "knl.device"}, {Name: "opts", Optional: true, Type: "knl.beat_opts", Fields: beatFields}},
		Doc:  "One model call and the tools it asks for. Answers an Outcome and does not raise: a wrong argument is an error of kind conf.",
		Fn:   runBeat,
	},
	{
		Name: "rerun", Returns: "knl.beat_outcome",
		Args: []Arg{{Name: "session", Type: "knl.session"}, {Name: "device", Type: "knl.device"}, {Name: "call_id", Kind: Text, Doc: "of the interrupted beat"}},
		Doc:  "Runs a call of the interrupted beat again, when its tool is declared idempotent or it was never started.",
		Fn:   rerunCall,
	},
	{
		Name: "fold", Returns: "knl.request",
		Args: []Arg{{Name: "events", Type: "(knl.event|knl.beat_record|table)[]", Optional: true, Doc: "events, beat records, and lists of them"}, {Name: "device", Type: "knl.device", Optional: true, Doc: "whose system and tools the request has"}},
		Doc:  "The conversation made of events: pair-closed whatever the events are. knl.fold({ seed, beats }, device) folds what s:beats answers.",
		Fn:   foldNow,
	},
}

// foldFunction answers the function that stands at knl.fold.
func (st *knlState) foldFunction() lua.LValue {
	if st.fold == nil {
		knl, _ := st.vm.loader.loaded.RawGetString("knl").(*lua.LTable)
		if knl == nil {
			return lua.LNil
		}
		st.fold, _ = knl.RawGetString("fold").(*lua.LFunction)
	}
	if st.fold == nil {
		return lua.LNil
	}
	return st.fold
}

func foldNow(c *Call) (int, error) {
	evs, err := c.VM().eventsOf(c.L, c.Arg(1))
	if err != nil {
		return 0, c.Mistake("%s", err)
	}
	var d *kernel.Device
	if ud, ok := c.Arg(2).(*lua.LUserData); ok {
		if dev, ok := ud.Value.(*device); ok {
			d = dev.d
		}
	}
	return c.Return(c.VM().requestTable(kernel.FoldEvents(evs, d)))
}

// subjects reads the session and the device of a beat; what is wrong with them
// is an Outcome.
func subjects(c *Call, what string) (h *handle, d *device, bad *kernel.Outcome) {
	if ud, ok := c.Arg(1).(*lua.LUserData); ok {
		h, _ = ud.Value.(*handle)
	}
	if ud, ok := c.Arg(2).(*lua.LUserData); ok {
		d, _ = ud.Value.(*device)
	}
	switch {
	case h == nil:
		bad = confError(what + ": argument 1 (session): got " + show(c.Arg(1)) + ", want a session")
	case listens(c.Ctx(), h.s.ID()):
		bad = confError(what + ": session " + h.s.ID() + " is in a beat already, and this runs inside its on_delta: open a child session")
	case d == nil:
		bad = confError(what + ": argument 2 (device): got " + show(c.Arg(2)) + ", want a device")
	}
	return h, d, bad
}

// listenKey is where the context of an on_delta carries whose beat it listens to.
type listenKey struct{}

// listened is the chain of sessions in whose beats an on_delta runs.
type listened struct {
	session string
	outer   any
}

// listening answers a context for the on_delta of a beat.
func listening(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, listenKey{}, &listened{session, ctx.Value(listenKey{})})
}

// listens says whether ctx runs inside the on_delta of a beat of session. The
// kernel cannot tell: the script's own context is all that it is called with.
func listens(ctx context.Context, session string) bool {
	for l, _ := ctx.Value(listenKey{}).(*listened); l != nil; l, _ = l.outer.(*listened) {
		if l.session == session {
			return true
		}
	}
	return false
}

func confError(text string) *kernel.Outcome {
	return &kernel.Outcome{Status: kernel.StatusError, Stage: kernel.StageConf, Detail: &kernel.Detail{Message: text}}
}

func runBeat(c *Call) (int, error) {
	h, d, bad := subjects(c, "knl.beat")
	if bad != nil {
		return pushOutcome(c, *bad)
	}
	o, bad := beatOptions(c, h)
	if bad != nil {
		return pushOutcome(c, *bad)
	}
	var out kernel.Outcome
	if err := c.Block(func(ctx context.Context) error {
		out = kernel.Beat(context.WithValue(ctx, handleKey{}, h), h.s, d.d, o)
		return nil
	}); err != nil {
		return 0, err
	}
	return pushOutcome(c, out)
}

// beatOptions reads opts; a mistake in it is an Outcome, in both modes.
func beatOptions(c *Call, h *handle) (o kernel.BeatOptions, bad *kernel.Outcome) {
	if !c.Given(3) {
		return o, nil
	}
	t, ok := c.Arg(3).(*lua.LTable)
	if !ok {
		return o, confError("knl.beat: argument 3 (opts): got " + show(c.Arg(3)) + ", want a table")
	}
	opts, err := c.CheckFields(look(c.L, t), "option", beatFields)
	if err != nil {
		return o, confError(err.Error())
	}
	if opts.Has("deadline") {
		o.Deadline = time.Now().Add(opts.Seconds("deadline", 0))
	}
	if fn := opts.Value("on_delta"); fn != lua.LNil {
		o.OnDelta = c.VM().onDelta(listening(c.Ctx(), h.s.ID()), fn, o.Deadline)
	}
	if v := opts.Value("tool_choice"); v != lua.LNil {
		if o.ToolChoice, err = AppendJSON(nil, v, &Encoding{Name: "knl.beat: tool_choice"}); err != nil {
			return o, confError(err.Error())
		}
	}
	if v := opts.Value("params"); v != lua.LNil {
		if o.Params, err = AppendJSON(nil, v, &Encoding{Name: "knl.beat: params"}); err != nil {
			return o, confError(err.Error())
		}
	}
	return o, nil
}

func rerunCall(c *Call) (int, error) {
	h, d, bad := subjects(c, "knl.rerun")
	if bad != nil {
		return pushOutcome(c, *bad)
	}
	id := c.String(3)
	var out kernel.Outcome
	if err := c.Block(func(ctx context.Context) error {
		out = kernel.Rerun(context.WithValue(ctx, handleKey{}, h), h.s, d.d, id)
		return nil
	}); err != nil {
		return 0, err
	}
	return pushOutcome(c, out)
}

// pushOutcome answers an Outcome as plain tables.
func pushOutcome(c *Call, o kernel.Outcome) (int, error) {
	t := c.L.CreateTable(0, 4)
	t.RawSetString("status", lua.LString(o.Status))
	switch o.Status {
	case kernel.StatusOK:
		t.RawSetString("out", c.VM().replyTable(c.L, o.Reply))
	case kernel.StatusRefused:
		t.RawSetString("reason", lua.LString(o.Reason))
		t.RawSetString("detail", c.VM().replyTable(c.L, o.Reply))
	case kernel.StatusStopped:
		t.RawSetString("reason", lua.LString(o.Reason))
		setText(t, "tag", o.Tag)
	default:
		t.RawSetString("kind", lua.LString(o.Stage))
		t.RawSetString("detail", c.VM().detailTable(c.L, o.Detail))
	}
	return c.Return(t)
}

func (vm *VM) replyTable(l *lua.LState, r *kernel.Reply) *lua.LTable {
	t := vm.structTable(l, shapes.FormOf("reply"), r)
	if r.RefusalKind != "" {
		t.RawSetString("refusal", vm.structTable(l, shapes.FormOf("refusal"), shapes.Refusal{Kind: r.RefusalKind, Detail: r.RefusalDetail}))
		t.RawSetString("tools", lua.LNil) // none of them ran
	}
	return t
}

func (vm *VM) detailTable(l *lua.LState, d *kernel.Detail) *lua.LTable {
	t := vm.structTable(l, shapes.FormOf("detail"), d)
	if !vm.dev {
		t.RawSetString("traceback", lua.LNil)
	}
	return vm.withText(t, d.Message)
}

var outcomeFuncs = []Func{
	{Name: "ok", Args: []Arg{{Name: "out", Kind: Table, Doc: "what came of it; a beat's is a knl.reply"}}, Returns: "knl.outcome", Doc: "It went well.",
		Fn: func(c *Call) (int, error) { return newOutcome(c, "ok", [2]string{"out"}) }},
	{Name: "refused", Args: []Arg{{Name: "reason", Kind: Text, Doc: "the kind of the refusal"}, {Name: "detail", Optional: true, Doc: "a beat's is a knl.reply"}}, Returns: "knl.outcome", Doc: "The model declined.",
		Fn: func(c *Call) (int, error) { return newOutcome(c, "refused", [2]string{"reason", "detail"}) }},
	{Name: "err", Args: []Arg{{Name: "kind", Kind: Text, Doc: "a beat's is one of outcome_stages"}, {Name: "detail", Doc: "a beat's is a knl.detail"}}, Returns: "knl.outcome", Doc: "A stage broke.",
		Fn: func(c *Call) (int, error) { return newOutcome(c, "error", [2]string{"kind", "detail"}) }},
	{Name: "stopped", Args: []Arg{{Name: "reason", Kind: Text, Doc: "a beat's is one of stopped_reasons"}, {Name: "tag", Kind: Text, Optional: true, Doc: "the unit that ran out"}}, Returns: "knl.outcome", Doc: "Nothing broke, and the loop should end.",
		Fn: func(c *Call) (int, error) { return newOutcome(c, "stopped", [2]string{"reason", "tag"}) }},
	isOutcome("is_ok", "ok"), isOutcome("is_refused", "refused"), isOutcome("is_error", "error"), isOutcome("is_stopped", "stopped"),
	{Name: "match", Args: []Arg{{Name: "o", Kind: Table, Type: "knl.outcome"}, {Name: "arms", Kind: Table, Type: "{ ok: (fun(o: knl.outcome): any), refused: (fun(o: knl.outcome): any), error: (fun(o: knl.outcome): any), stopped: (fun(o: knl.outcome): any) }", Doc: "a function for each status"}}, Returns: "any",
		Doc: "Calls the arm of o's status with o. All four arms must be there.", Fn: matchOutcome},
}

func newOutcome(c *Call, status string, fields [2]string) (int, error) {
	t := c.L.CreateTable(0, 4)
	t.RawSetString("status", lua.LString(status))
	for i, name := range fields {
		if name == "" {
			continue
		}
		if arg := c.fn.Args[i]; !arg.Optional || c.Given(i+1) {
			if !arg.Kind.accepts(c.L, c.Arg(i+1)) {
				c.refuse(i+1, arg.Kind)
			}
		}
		t.RawSetString(name, c.Arg(i+1))
	}
	return c.Return(t)
}

func isOutcome(name, status string) Func {
	return Func{Name: name, Args: []Arg{{Name: "v", Optional: true, Doc: "anything"}}, Returns: "boolean", Doc: "Whether v is an Outcome whose status is " + status + ".", Fn: func(c *Call) (int, error) {
		t, ok := c.Arg(1).(*lua.LTable)
		return c.Return(lua.LBool(ok && look(c.L, t).RawGetString("status") == lua.LString(status)))
	}}
}

var statuses = []string{"ok", "refused", "error", "stopped"}

func matchOutcome(c *Call) (int, error) {
	o, arms := c.Table(1), c.Table(2)
	for _, name := range statuses {
		if !callable(c.L, arms.RawGetString(name)) {
			return 0, c.Mistake("arms.%s: got %s, want a function: every status has an arm", name, show(arms.RawGetString(name)))
		}
	}
	arm := arms.RawGet(o.RawGetString("status"))
	if arm == lua.LNil {
		return 0, c.Mistake("status: got %s, want ok, refused, error or stopped", show(o.RawGetString("status")))
	}
	out, err := c.Invoke(arm, o)
	if err != nil {
		return 0, err
	}
	return c.Return(first(out))
}
