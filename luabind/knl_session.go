package luabind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

// handle is a session as scripts hold it.
type handle struct {
	st    *knlState
	k     *kernel.Kernel
	s     *kernel.Session
	ud    *lua.LUserData
	shown map[*kernel.Event]*lua.LTable // events that scripts were handed, shared
	beats map[string]beatTable          // beat records that scripts were handed, shared
}

func (st *knlState) handle(k *kernel.Kernel, s *kernel.Session) *handle {
	h := &handle{st: st, k: k, s: s, shown: map[*kernel.Event]*lua.LTable{}}
	h.ud = st.vm.Wrap(sessionType, h)
	return h
}

var (
	budgetFields = []Arg{
		{Name: "amount", Kind: Whole, Optional: true, Doc: "units granted"},
		{Name: "from_parent", Kind: Whole, Optional: true, Doc: "units moved from the parent"},
		{Name: "tag", Kind: Text, Optional: true, Doc: "names the unit"},
		{Name: "desc", Kind: Text, Optional: true, Doc: "what it is for"},
		{Name: "refund", Kind: Flag, Optional: true, Doc: "what is left goes back to the parent at the close"},
	}
	openFields = []Arg{
		{Name: "owner", Kind: Text, Optional: true, Doc: "who it is for (default: anon, or the parent's)"},
		{Name: "budget", Kind: Table, Optional: true, Fields: budgetFields, Doc: "of units that its beats may use (default: no bound)"},
		{Name: "store", Optional: true, Type: "string|knl.session", Doc: "\"mem\", a folder, or a session: the store it is in (default: the run's store)"},
		{Name: "parent", Kind: Userdata, Optional: true, Type: "knl.session", Doc: "that the budget is taken from"},
		{Name: "meta", Kind: Table, Optional: true, Doc: "labels: strings, numbers, booleans"},
	}
	resumeFields = []Arg{
		{Name: "session", Kind: Text, Doc: "the session's id"},
		{Name: "budget", Kind: Table, Optional: true, Fields: budgetFields[:4], Doc: "added to what is left"},
		{Name: "store", Optional: true, Type: "string|knl.session", Doc: "\"mem\", a folder, or a session: the store it is in (default: the run's store)"},
	}
	attachFields  = []Arg{resumeFields[0], resumeFields[2]}
	bracketFields = append(slices.Clone(openFields), Arg{Name: "session", Kind: Text, Optional: true, Doc: "resume this one instead"})
)

var sessionFuncs = []Func{
	{
		Name: "open", Args: []Arg{{Name: "opts", Kind: Table, Optional: true, Fields: openFields}}, Returns: "knl.session",
		Doc: "Begins a session and answers its driver's handle.",
		Fn: func(c *Call) (int, error) {
			if err := deviceKeyHint(c, 1); err != nil {
				return 0, err
			}
			h, err := open(c, c.Options(1))
			return pushHandle(c, h, err)
		},
	},
	{
		Name: "resume", Args: []Arg{{Name: "opts", Kind: Table, Fields: resumeFields}}, Returns: "knl.session",
		Doc: "Takes over the driving of a session: older handles are fenced, an interrupted beat is recorded, nothing is run again.",
		Fn: func(c *Call) (int, error) {
			if err := deviceKeyHint(c, 1); err != nil {
				return 0, err
			}
			h, err := resume(c, c.Options(1))
			return pushHandle(c, h, err)
		},
	},
	{
		Name: "attach", Args: []Arg{{Name: "opts", Kind: Table, Fields: attachFields}}, Returns: "knl.session",
		Doc: "A handle that reads a session and appends to it beside its driver.",
		Fn: func(c *Call) (int, error) {
			o := c.Options(1)
			k, err := state(c).kernel(c, o.Value("store"))
			if err != nil {
				return 0, err
			}
			var s *kernel.Session
			err = c.Block(func(ctx context.Context) (err error) {
				s, err = k.Attach(ctx, o.String("session", ""))
				return err
			})
			return pushHandle(c, state(c).handle(k, s), err)
		},
	},
	{
		Name: "session", Returns: "...",
		Args: []Arg{{Name: "opts", Kind: Table, Fields: bracketFields}, {Name: "fn", Kind: Function, Type: "fun(session: knl.session): ...", Doc: "what the session is for"}},
		Doc:  "Opens a session, or resumes opts.session (the other options are for a new one: a resume grants nothing), runs fn on it, closes it and answers what fn returned. When that is an Outcome that is not ok, or the run itself is ended, the session is left as it is and can be resumed; a child is closed then too. When fn raises, it is closed with reason \"error\" and the same value is raised.",
		Fn:   bracket,
	},
	{
		Name: "is_session", Args: []Arg{{Name: "v", Optional: true, Doc: "anything"}}, Returns: "boolean",
		Doc: "Whether v is a session handle, or a table or userdata that has every method of one.",
		Fn:  func(c *Call) (int, error) { return c.Return(lua.LBool(isSession(c, c.Arg(1)))) },
	},
}

// wait is Block for what answers a value.
func wait[T any](c *Call, fn func(context.Context) (T, error)) (out T, err error) {
	err = c.Block(func(ctx context.Context) (err error) {
		out, err = fn(ctx)
		return err
	})
	return out, err
}

func pushHandle(c *Call, h *handle, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return c.Return(h.ud)
}

// deviceKeyHint answers a mistake when an options table names a device's field.
func deviceKeyHint(c *Call, i int) error {
	t, ok := c.Arg(i).(*lua.LTable)
	if !ok {
		return nil
	}
	for _, f := range deviceFields {
		if t.RawGetString(f.Name) != lua.LNil {
			return c.Mistake("unknown option %q: it belongs to knl.device, a session holds no policy", f.Name)
		}
	}
	return nil
}

func open(c *Call, o Options) (*handle, error) {
	k, err := state(c).kernel(c, o.Value("store"))
	if err != nil {
		return nil, err
	}
	spec := kernel.Open{Owner: o.String("owner", "")}
	if v := o.Value("parent"); v != lua.LNil {
		parent, ok := v.(*lua.LUserData).Value.(*handle)
		if !ok {
			return nil, fault(kernel.Validation, "open", "parent: got %s, want a session", show(v))
		}
		spec.Parent = parent.s
		if !o.Has("store") {
			k = parent.k
		}
	}
	if spec.Grant, spec.Take, err = budget(c, o.Table("budget")); err != nil {
		return nil, err
	}
	if meta := o.Table("meta"); meta != nil {
		if spec.Meta, err = toJSON("meta", meta); err != nil {
			return nil, fault(kernel.Validation, "open", "%s", err)
		}
	}
	var s *kernel.Session
	if err = c.Block(func(ctx context.Context) (err error) {
		s, err = k.Open(ctx, spec)
		return err
	}); err != nil {
		return nil, err
	}
	return state(c).opened(k, s, false), nil
}

func (st *knlState) opened(k *kernel.Kernel, s *kernel.Session, resumed bool) *handle {
	if st.host.Session != nil {
		st.host.Session(s, resumed)
	}
	return st.handle(k, s)
}

// budget reads a budget table: a grant, or a move from the parent.
func budget(c *Call, t *lua.LTable) (*kernel.Grant, *kernel.Take, error) {
	if t == nil {
		return nil, nil, nil
	}
	o, err := c.CheckFields(t, "budget", budgetFields)
	if err != nil {
		return nil, nil, err
	}
	tag := o.String("tag", "")
	switch method := c.fn.Name; {
	case o.Has("amount") && o.Has("from_parent"):
		return nil, nil, fault(kernel.Validation, method, "budget has both amount and from_parent, want one")
	case o.Has("from_parent") && o.Has("desc"):
		return nil, nil, fault(kernel.Validation, method, "budget has desc with from_parent: a move takes no description")
	case o.Has("from_parent"):
		return nil, &kernel.Take{Amount: o.Int("from_parent", 0), Tag: tag, Refund: o.Bool("refund", false)}, nil
	case o.Has("refund"):
		return nil, nil, fault(kernel.Validation, method, "budget has refund without from_parent: there is nowhere to give back to")
	case o.Has("amount"):
		return &kernel.Grant{Amount: o.Int("amount", 0), Tag: tag, Desc: o.String("desc", "")}, nil, nil
	default:
		return nil, nil, fault(kernel.Validation, method, "budget has no amount, want a whole number ≥ 0")
	}
}

func resume(c *Call, o Options) (*handle, error) {
	grant, take, err := budget(c, o.Table("budget"))
	switch {
	case err != nil:
		return nil, err
	case take != nil:
		return nil, fault(kernel.Validation, "resume", "budget has from_parent, want amount: a resume grants from outside")
	}
	return takeUp(c, o, grant)
}

// takeUp resumes the session that o names.
func takeUp(c *Call, o Options, grant *kernel.Grant) (*handle, error) {
	k, err := state(c).kernel(c, o.Value("store"))
	if err != nil {
		return nil, err
	}
	var s *kernel.Session
	if err := c.Block(func(ctx context.Context) (err error) {
		s, err = k.Resume(ctx, o.String("session", ""), kernel.Resume{Grant: grant})
		return err
	}); err != nil {
		return nil, err
	}
	return state(c).opened(k, s, true), nil
}

// bracket is knl.session(opts, fn).
func bracket(c *Call) (int, error) {
	if err := deviceKeyHint(c, 1); err != nil {
		return 0, err
	}
	o, fn := c.Options(1), c.Func(2)
	h, err := bracketOpen(c, o)
	if err != nil {
		return 0, err
	}
	out, err := c.Invoke(fn, h.ud)
	child := o.Has("parent") && !o.Has("session")
	switch {
	case err == nil && !child && unfinished(c.L, first(out)):
	case err == nil:
		err = c.Finish(func(ctx context.Context) error { return h.s.Close(ctx, "scope_exit", "") })
	case c.VM().ending(err) && !child: // the session stays resumable
	default:
		c.closeBehind(h, err)
	}
	if err != nil {
		return 0, err
	}
	return c.Return(out...)
}

// closeBehind closes h behind the error that its function ended with, which is
// the one to report.
func (c *Call) closeBehind(h *handle, err error) {
	aborted, detail := c.VM().ending(err), detailOf(err)
	if cerr := c.Finish(func(ctx context.Context) error {
		if aborted {
			return h.s.CloseAborted(ctx)
		}
		return h.s.Close(ctx, "error", detail)
	}); cerr != nil {
		c.VM().config.Warn(fmt.Sprintf("session %s: close failed behind an error: %s (the error: %s)", h.s.ID(), cerr, err))
	}
}

// unfinished says whether v is an Outcome that is not ok. A loop that was stopped
// by its budget or lost its provider has not ended its session: it stays
// resumable.
func unfinished(l *lua.LState, v lua.LValue) bool {
	t, ok := v.(*lua.LTable)
	if !ok {
		return false
	}
	t = look(l, t)
	has := func(name string) bool { return t.RawGetString(name).Type() == lua.LTString }
	switch t.RawGetString("status") {
	case lua.LString("stopped"), lua.LString("refused"):
		return has("reason")
	case lua.LString("error"):
		return has("kind") && t.RawGetString("detail") != lua.LNil
	}
	return false
}

// bracketOpen opens a session or resumes opts.session. The other options say how
// a new one is opened: a loop that is resumed ten times is not granted its budget
// ten times. Who means to add to it calls knl.resume.
func bracketOpen(c *Call, o Options) (*handle, error) {
	if !o.Has("session") {
		return open(c, o)
	}
	if _, _, err := budget(c, o.Table("budget")); err != nil {
		return nil, err
	}
	return takeUp(c, o, nil)
}

// ending says whether err ends the run itself: a limit, or the end of the run.
func (vm *VM) ending(err error) bool {
	var limit *LimitError
	var abort *AbortError
	return errors.As(err, &limit) || errors.As(err, &abort) || vm.meter.run.Err() != nil
}

func detailOf(err error) string {
	var e *LuaError
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

var sessionType = &Type{
	Name:     "session",
	Doc:      "A handle on one session.",
	Tostring: func(v any) string { return "session " + v.(*handle).s.ID() },
}

func init() { // some of its methods make handles
	sessionType.Methods = []Func{
		{Name: "id", Returns: "string", Doc: "The session's id.", Fn: func(c *Call) (int, error) { return c.Return(lua.LString(Self[*handle](c).s.ID())) }},
		{Name: "scope_id", Returns: "string", Doc: "The id of the authority the session is written under.",
			Fn: func(c *Call) (int, error) { return c.Return(lua.LString(Self[*handle](c).s.ScopeID())) }},
		{Name: "owner", Returns: "string", Doc: "Who the session is for.", Fn: func(c *Call) (int, error) { return c.Return(lua.LString(Self[*handle](c).s.Owner())) }},
		{Name: "epoch", Returns: "integer", Doc: "The driver epoch of this handle; a later resume fences it.",
			Fn: func(c *Call) (int, error) { return c.Return(lua.LNumber(Self[*handle](c).s.Epoch())) }},
		{Name: "append", Args: []Arg{{Name: "event", Kind: Table, Type: "knl.event_in"}}, Returns: "integer",
			Doc: "Records an event and answers its seq; it is on disk then.", Fn: sessionAppend},
		{Name: "events", Args: []Arg{{Name: "from", Kind: Whole, Optional: true, Doc: "a seq (default: 1)"}}, Returns: "knl.event[], boolean",
			Doc: "The events from seq on (default: all), and whether some were left out (never).", Fn: sessionEvents},
		{Name: "beats", Args: []Arg{{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
			{Name: "last", Kind: Whole, Optional: true, Doc: "how many (default: all)"},
			{Name: "from_seed", Kind: Flag, Optional: true, Doc: "answer the events before the first beat too"},
		}}}, Returns: "knl.beat_record[], knl.event[]?",
			Doc: "The last beats, oldest first. Costs what those beats cost, however long the log is.", Fn: sessionBeats},
		{Name: "scan", Args: []Arg{{Name: "opts", Kind: Table, Optional: true, Fields: scanFields}}, Returns: "knl.event[], boolean",
			Doc: "The events that opts name, with their session as stream.", Fn: sessionScan},
		{Name: "len", Args: []Arg{{Name: "of", Kind: Text, Optional: true, Type: `"events"|"beats"`, Doc: "default: events"}}, Returns: "integer",
			Doc: "How many events are recorded, or how many beats were begun. It costs the same however long the log is.", Fn: sessionLen},
		{Name: "view", Args: []Arg{{Name: "name", Kind: Text, Type: "\"tail\""}, {Name: "opts", Kind: Table, Optional: true, Fields: []Arg{{Name: "n", Kind: Whole, Optional: true, Doc: "how many (default: 20)"}}}},
			Returns: "knl.event[]", Doc: "view(\"tail\", { n = 20 }): the last n events.", Fn: sessionView},
		{Name: "request", Args: []Arg{{Name: "beat", Kind: Text, Doc: "its id"}}, Returns: "knl.request",
			Doc: "The request of a beat, rebuilt whole and held against its recorded hash.", Fn: sessionRequest},
		{Name: "reserve", Args: []Arg{{Name: "n", Kind: Number, Doc: "units, a whole number"}}, Returns: "boolean, string?",
			Doc: "Asks the ledger for n units: true, or false and the tag. Without a budget always true.", Fn: sessionReserve},
		{Name: "spend", Args: []Arg{{Name: "n", Kind: Number, Doc: "units, a whole number"}}, Doc: "Takes n units without asking; the balance stops at zero.",
			Fn: func(c *Call) (int, error) { return sessionMove(c, (*kernel.Session).Spend) }},
		{Name: "settle", Args: []Arg{{Name: "n", Kind: Number, Doc: "units, a whole number"}}, Doc: "Says what the last reservation made by hand has cost.",
			Fn: func(c *Call) (int, error) { return sessionMove(c, (*kernel.Session).Settle) }},
		{Name: "remaining", Returns: "integer?", Doc: "The balance; nil when nothing was ever granted.", Fn: sessionRemaining},
		{Name: "exhausted", Returns: "boolean", Doc: "Whether a budget exists and nothing is left of it.", Fn: sessionExhausted},
		{Name: "interrupted", Returns: "knl.interrupted?",
			Doc: "The beat that its driver did not live to end, while it is the last one.", Fn: sessionInterrupted},
		{Name: "close", Args: []Arg{{Name: "reason", Kind: Text, Optional: true, Doc: "(default: closed)"}, {Name: "detail", Kind: Text, Optional: true, Doc: "cut to 200 characters"}},
			Doc: "Ends the session. Closing twice on one handle is one close.", Fn: sessionClose},
	}
}

// isSession asks v for every method of a session.
func isSession(c *Call, v lua.LValue) bool {
	switch v := v.(type) {
	case *lua.LUserData:
		if _, ok := v.Value.(*handle); ok {
			return true
		}
	case *lua.LTable:
	default:
		return false
	}
	for i := range sessionType.Methods {
		if !hasMethod(c, v, sessionType.Methods[i].Name) {
			return false
		}
	}
	return true
}

func hasMethod(c *Call, v lua.LValue, name string) (ok bool) {
	get := c.L.NewFunction(func(l *lua.LState) int {
		l.Push(lua.LBool(callable(l, l.GetField(l.Get(1), name))))
		return 1
	})
	out, err := c.Invoke(get, v)
	return err == nil && len(out) == 1 && out[0] == lua.LTrue
}
