package luabind

import (
	"context"
	"encoding/json"
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
		{Name: "desc", Kind: Text, Optional: true},
		{Name: "refund", Kind: Flag, Optional: true, Doc: "what is left goes back to the parent at the close"},
	}
	openFields = []Arg{
		{Name: "owner", Kind: Text, Optional: true},
		{Name: "budget", Kind: Table, Optional: true, Fields: budgetFields},
		{Name: "store", Optional: true, Type: "string", Doc: "\"mem\" or a folder (default: the run's store)"},
		{Name: "parent", Kind: Userdata, Optional: true, Type: "session"},
		{Name: "meta", Kind: Table, Optional: true, Doc: "labels: strings, numbers, booleans"},
	}
	resumeFields = []Arg{
		{Name: "session", Kind: Text, Doc: "the session's id"},
		{Name: "budget", Kind: Table, Optional: true, Fields: budgetFields[:4]},
		{Name: "store", Optional: true, Type: "string"},
	}
	attachFields  = []Arg{resumeFields[0], resumeFields[2]}
	bracketFields = append(slices.Clone(openFields), Arg{Name: "session", Kind: Text, Optional: true, Doc: "resume this one instead"})
)

var sessionFuncs = []Func{
	{
		Name: "open", Args: []Arg{{Name: "opts", Kind: Table, Optional: true, Fields: openFields}}, Returns: "session",
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
		Name: "resume", Args: []Arg{{Name: "opts", Kind: Table, Fields: resumeFields}}, Returns: "session",
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
		Name: "attach", Args: []Arg{{Name: "opts", Kind: Table, Fields: attachFields}}, Returns: "session",
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
		Name: "session", Returns: "any ...",
		Args: []Arg{{Name: "opts", Kind: Table, Fields: bracketFields}, {Name: "fn", Kind: Function, Type: "fun(session): any ..."}},
		Doc:  "Opens a session, or resumes opts.session, runs fn on it, closes it and answers what fn returned. When fn raises, the session is closed with reason \"error\" and the same value is raised; when the run itself is ended, it stays resumable.",
		Fn:   bracket,
	},
	{
		Name: "is_session", Args: []Arg{{Name: "v", Optional: true}}, Returns: "boolean",
		Doc: "Whether v is a session handle, or a table or userdata that has every method of one.",
		Fn:  func(c *Call) (int, error) { return c.Return(lua.LBool(isSession(c, c.Arg(1)))) },
	},
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
	k, err := state(c).kernel(c, o.Value("store"))
	if err != nil {
		return nil, err
	}
	grant, take, err := budget(c, o.Table("budget"))
	switch {
	case err != nil:
		return nil, err
	case take != nil:
		return nil, fault(kernel.Validation, "resume", "budget has from_parent, want amount: a resume grants from outside")
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
	if err == nil {
		err = c.Block(func(ctx context.Context) error { return h.s.Close(ctx, "scope_exit", "") })
		if err != nil {
			return 0, err
		}
		return c.Return(out...)
	}
	if c.VM().ending(err) {
		return 0, err // the session stays resumable
	}
	if cerr := h.s.Close(context.WithoutCancel(c.Ctx()), "error", detailOf(err)); cerr != nil {
		c.VM().config.Warn(fmt.Sprintf("session %s: close failed behind an error: %s (the error: %s)", h.s.ID(), cerr, err))
	}
	return 0, err
}

func bracketOpen(c *Call, o Options) (*handle, error) {
	if !o.Has("session") {
		return open(c, o)
	}
	for _, f := range openFields {
		if f.Name != "budget" && f.Name != "store" && o.Has(f.Name) {
			return nil, c.Mistake("unknown option %q beside session: a resumed session keeps what it was opened with", f.Name)
		}
	}
	return resume(c, o)
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
		{Name: "id", Returns: "string", Fn: func(c *Call) (int, error) { return c.Return(lua.LString(Self[*handle](c).s.ID())) }},
		{Name: "scope_id", Returns: "string", Doc: "The id of the authority the session is written under.",
			Fn: func(c *Call) (int, error) { return c.Return(lua.LString(Self[*handle](c).s.ScopeID())) }},
		{Name: "owner", Returns: "string", Fn: func(c *Call) (int, error) { return c.Return(lua.LString(Self[*handle](c).s.Owner())) }},
		{Name: "epoch", Returns: "integer", Doc: "The driver epoch of this handle; a later resume fences it.",
			Fn: func(c *Call) (int, error) { return c.Return(lua.LNumber(Self[*handle](c).s.Epoch())) }},
		{Name: "append", Args: []Arg{{Name: "event", Kind: Table}}, Returns: "integer",
			Doc: "Records { kind, beat?, meta?, data? } and answers its seq; it is on disk then.", Fn: sessionAppend},
		{Name: "events", Args: []Arg{{Name: "from", Kind: Whole, Optional: true}}, Returns: "event[], boolean",
			Doc: "The events from seq on (default: all), and whether some were left out (never).", Fn: sessionEvents},
		{Name: "beats", Args: []Arg{{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
			{Name: "last", Kind: Whole, Optional: true, Doc: "how many (default: all)"},
			{Name: "from_seed", Kind: Flag, Optional: true, Doc: "answer the events before the first beat too"},
		}}}, Returns: "{ id: string, events: event[] }[], event[]?",
			Doc: "The last beats, oldest first. Costs what those beats cost, however long the log is.", Fn: sessionBeats},
		{Name: "scan", Args: []Arg{{Name: "opts", Kind: Table, Optional: true, Fields: scanFields}}, Returns: "event[], boolean",
			Doc: "The events that opts name, with their session as stream.", Fn: sessionScan},
		{Name: "len", Returns: "integer", Doc: "How many events are recorded.", Fn: sessionLen},
		{Name: "view", Args: []Arg{{Name: "name", Kind: Text}, {Name: "opts", Kind: Table, Optional: true, Fields: []Arg{{Name: "n", Kind: Whole, Optional: true}}}},
			Returns: "event[]", Doc: "view(\"tail\", { n = 20 }): the last n events.", Fn: sessionView},
		{Name: "request", Args: []Arg{{Name: "beat", Kind: Text}}, Returns: "request",
			Doc: "The request of a beat, rebuilt whole and held against its recorded hash.", Fn: sessionRequest},
		{Name: "reserve", Args: []Arg{{Name: "n", Kind: Number}}, Returns: "boolean, string?",
			Doc: "Asks the ledger for n units: true, or false and the tag. Without a budget always true.", Fn: sessionReserve},
		{Name: "spend", Args: []Arg{{Name: "n", Kind: Number}}, Doc: "Takes n units without asking; the balance stops at zero.",
			Fn: func(c *Call) (int, error) { return sessionMove(c, (*kernel.Session).Spend) }},
		{Name: "settle", Args: []Arg{{Name: "n", Kind: Number}}, Doc: "Says what the last reservation made by hand has cost.",
			Fn: func(c *Call) (int, error) { return sessionMove(c, (*kernel.Session).Settle) }},
		{Name: "remaining", Returns: "integer?", Doc: "The balance; nil when nothing was ever granted.", Fn: sessionRemaining},
		{Name: "exhausted", Returns: "boolean", Doc: "Whether a budget exists and nothing is left of it.", Fn: sessionExhausted},
		{Name: "interrupted", Returns: "nil|{ beat: string, stage: string, open_calls: table[] }",
			Doc: "The beat that its driver did not live to end, while it is the last one.", Fn: sessionInterrupted},
		{Name: "close", Args: []Arg{{Name: "reason", Kind: Text, Optional: true}, {Name: "detail", Kind: Text, Optional: true}},
			Doc: "Ends the session. Closing twice on one handle is one close.", Fn: sessionClose},
	}
}

var scanFields = []Arg{
	{Name: "kinds", Kind: Table, Optional: true, Type: "string[]"},
	{Name: "beats", Kind: Table, Optional: true, Type: "string[]"},
	{Name: "from", Kind: Whole, Optional: true},
	{Name: "to", Kind: Whole, Optional: true},
	{Name: "sessions", Kind: Table, Optional: true, Type: "string[]", Doc: "ids (default: this session)"},
	{Name: "where", Kind: Function, Optional: true, Type: "fun(event): boolean"},
	{Name: "limit", Kind: Whole, Optional: true, Doc: "rows (default: all)"},
}

func sessionAppend(c *Call) (int, error) {
	h := Self[*handle](c)
	d, err := draft(c.Table(1))
	if err != nil {
		return 0, err
	}
	var seq int64
	if err := c.Block(func(ctx context.Context) (err error) {
		seq, err = h.s.Append(ctx, d)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(lua.LNumber(seq))
}

// draft reads the table of an append.
func draft(t *lua.LTable) (d kernel.Draft, err error) {
	text := func(name string) string {
		v := t.RawGetString(name)
		s, ok := v.(lua.LString)
		if !ok && v != lua.LNil && err == nil {
			err = fault(kernel.Validation, "append", "event.%s: got %s, want a string", name, show(v))
		}
		return string(s)
	}
	object := func(name string) (raw json.RawMessage) {
		v := t.RawGetString(name)
		if v == lua.LNil || err != nil {
			return nil
		}
		if _, ok := v.(*lua.LTable); !ok {
			err = fault(kernel.Validation, "append", "event.%s: got %s, want a table", name, show(v))
			return nil
		}
		raw, jerr := toJSON("event."+name, v)
		if jerr != nil {
			err = fault(kernel.Validation, "append", "%s", jerr)
		}
		return raw
	}
	t.ForEach(func(k, _ lua.LValue) {
		if name := lua.LVAsString(k); err == nil && !slices.Contains(envelope, name) {
			err = fault(kernel.Validation, "append", "event has an unknown key %s (%s): what belongs to a kind stands under data", show(k), Suggest(name, envelope))
		}
	})
	d.Kind, d.Beat = text("kind"), text("beat")
	d.Meta, d.Data = object("meta"), object("data")
	return d, err
}

var envelope = []string{"kind", "beat", "meta", "data"}

func sessionEvents(c *Call) (int, error) {
	h := Self[*handle](c)
	from := c.OptInt(1, 1)
	var evs []*kernel.Event
	if err := c.Block(func(ctx context.Context) (err error) {
		evs, err = h.s.Events(ctx, from)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(h.list(c.L, evs), lua.LFalse)
}

func sessionBeats(c *Call) (int, error) {
	h := Self[*handle](c)
	o := c.Options(1)
	last := o.Int("last", 0)
	if o.Has("last") && last < 1 {
		return 0, c.Mistake("option \"last\": got %d, want a whole number ≥ 1", last)
	}
	var beats []kernel.BeatRecord
	var seed []*kernel.Event
	if err := c.Block(func(ctx context.Context) (err error) {
		beats, seed, err = h.s.Beats(ctx, int(last), o.Bool("from_seed", false))
		return err
	}); err != nil {
		return 0, err
	}
	out := TagArray(c.L, c.L.CreateTable(len(beats), 0))
	kept := make(map[string]beatTable, len(beats))
	for _, b := range beats {
		t, ok := h.beats[b.ID]
		if !ok || t.events != len(b.Events) {
			t = h.record(b)
		}
		kept[b.ID] = t
		out.Append(t.table)
	}
	h.beats = kept
	if !o.Bool("from_seed", false) {
		return c.Return(out)
	}
	return c.Return(out, h.lazyList(seed))
}

// beatTable is the one table of a beat record, while the beat has this many
// events.
type beatTable struct {
	table  *lua.LTable
	events int
}

func (h *handle) record(b kernel.BeatRecord) beatTable {
	return beatTable{h.st.vm.mirror(&mirror{value: b.Events, name: "beat record", frozen: true, fill: func(l *lua.LState, t *lua.LTable) {
		t.RawSetString("id", lua.LString(b.ID))
		t.RawSetString("events", h.st.vm.frozen("beat record", h.list(l, b.Events)))
	}}), len(b.Events)}
}

func sessionScan(c *Call) (int, error) {
	h := Self[*handle](c)
	o := c.Options(1)
	w := kernel.Where{From: o.Int("from", 0), To: o.Int("to", 0), Limit: int(o.Int("limit", 0))}
	if o.Has("limit") && w.Limit < 1 {
		return 0, c.Mistake("option \"limit\": got %d, want a whole number ≥ 1", w.Limit)
	}
	var err error
	for name, dst := range map[string]*[]string{"kinds": &w.Kinds, "beats": &w.Beats} {
		if *dst, err = texts(c, name, o.Table(name)); err != nil {
			return 0, err
		}
	}
	if w.Sessions, err = sessionIDs(c, o.Table("sessions")); err != nil {
		return 0, err
	}
	if fn := o.Value("where"); fn != lua.LNil {
		w.Match = h.matcher(c, fn)
	}
	var rows []kernel.Row
	var cut bool
	if err := c.Block(func(ctx context.Context) (err error) {
		rows, cut, err = h.s.Scan(ctx, w)
		return err
	}); err != nil {
		return 0, err
	}
	out := TagArray(c.L, c.L.CreateTable(len(rows), 0))
	for _, r := range rows {
		out.Append(h.row(r.Session, r.Event))
	}
	return c.Return(out, lua.LBool(cut))
}

// matcher runs a script's where on each event.
func (h *handle) matcher(c *Call, fn lua.LValue) func(string, *kernel.Event) (bool, error) {
	ctx := c.Ctx()
	return func(stream string, ev *kernel.Event) (ok bool, err error) {
		err = h.st.vm.Enter(ctx, func(c *Call) error {
			out, err := c.Invoke(fn, h.row(stream, ev))
			ok = len(out) > 0 && lua.LVAsBool(out[0])
			return err
		})
		return ok, err
	}
}

func texts(c *Call, name string, t *lua.LTable) ([]string, error) {
	if t == nil {
		return nil, nil
	}
	out := make([]string, t.MaxN())
	for i := range out {
		s, ok := t.RawGetInt(i + 1).(lua.LString)
		if !ok {
			return nil, c.Mistake("%s[%d]: got %s, want a string", name, i+1, show(t.RawGetInt(i+1)))
		}
		out[i] = string(s)
	}
	return out, nil
}

// sessionIDs reads a list of ids or handles.
func sessionIDs(c *Call, t *lua.LTable) ([]string, error) {
	if t == nil {
		return nil, nil
	}
	out := make([]string, t.MaxN())
	for i := range out {
		switch v := t.RawGetInt(i + 1).(type) {
		case lua.LString:
			out[i] = string(v)
		case *lua.LUserData:
			if h, ok := v.Value.(*handle); ok {
				out[i] = h.s.ID()
			}
		}
		if out[i] == "" {
			return nil, c.Mistake("sessions[%d]: got %s, want a session or its id", i+1, show(t.RawGetInt(i+1)))
		}
	}
	return out, nil
}

func sessionLen(c *Call) (int, error) {
	h := Self[*handle](c)
	var n int64
	if err := c.Block(func(ctx context.Context) (err error) {
		n, err = h.s.Len(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(lua.LNumber(n))
}

func sessionView(c *Call) (int, error) {
	h := Self[*handle](c)
	n := c.Options(2).Int("n", 20)
	switch name := c.String(1); {
	case name != "tail":
		return 0, fault(kernel.Validation, "view", "got %q, want \"tail\"; other readings are in knl.views", name)
	case n < 0:
		return 0, fault(kernel.Validation, "view", "n: got %d, want a whole number ≥ 0", n)
	}
	var evs []*kernel.Event
	if err := c.Block(func(ctx context.Context) (err error) {
		evs, err = h.s.Tail(ctx, n)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(h.list(c.L, evs))
}

func sessionRequest(c *Call) (int, error) {
	h := Self[*handle](c)
	beat := c.String(1)
	var req *kernel.Request
	if err := c.Block(func(ctx context.Context) (err error) {
		req, err = h.s.Request(ctx, beat)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(c.VM().requestTable(req))
}

// units reads argument 1 as a whole number; another one is the kernel's
// validation error, not a mistake in the call.
func units(c *Call) (int64, error) {
	n, ok := whole(lua.LNumber(c.Number(1)))
	if !ok {
		return 0, fault(kernel.Validation, c.fn.Name, "got %s, want a whole number ≥ 0", show(c.Arg(1)))
	}
	return n, nil
}

func sessionReserve(c *Call) (int, error) {
	h := Self[*handle](c)
	n, err := units(c)
	if err != nil {
		return 0, err
	}
	var ok bool
	var tag string
	if err := c.Block(func(ctx context.Context) (err error) {
		ok, tag, err = h.s.Reserve(ctx, n)
		return err
	}); err != nil {
		return 0, err
	}
	if ok {
		return c.Return(lua.LTrue)
	}
	return c.Return(lua.LFalse, textOrNil(tag))
}

func sessionMove(c *Call, move func(*kernel.Session, context.Context, int64) error) (int, error) {
	h := Self[*handle](c)
	n, err := units(c)
	if err != nil {
		return 0, err
	}
	return 0, c.Block(func(ctx context.Context) error { return move(h.s, ctx, n) })
}

func sessionRemaining(c *Call) (int, error) {
	h := Self[*handle](c)
	var n int64
	var ok bool
	if err := c.Block(func(ctx context.Context) (err error) {
		n, ok, err = h.s.Remaining(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	if !ok {
		return c.Return(lua.LNil)
	}
	return c.Return(lua.LNumber(n))
}

func sessionExhausted(c *Call) (int, error) {
	h := Self[*handle](c)
	var out bool
	if err := c.Block(func(ctx context.Context) (err error) {
		out, err = h.s.Exhausted(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	return c.Return(lua.LBool(out))
}

func sessionInterrupted(c *Call) (int, error) {
	h := Self[*handle](c)
	var in *kernel.Interrupted
	if err := c.Block(func(ctx context.Context) (err error) {
		in, err = h.s.Interrupted(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	if in == nil {
		return c.Return(lua.LNil)
	}
	t, calls := c.L.CreateTable(0, 4), TagArray(c.L, c.L.CreateTable(0, 0))
	t.RawSetString("beat", lua.LString(in.Beat))
	t.RawSetString("stage", lua.LString(in.Stage))
	t.RawSetString("open_calls", calls)
	for _, open := range in.OpenCalls {
		row := c.L.CreateTable(0, 4)
		row.RawSetString("call_id", lua.LString(open.CallID))
		row.RawSetString("name", lua.LString(open.Name))
		row.RawSetString("started", lua.LBool(open.Started))
		calls.Append(row)
	}
	return c.Return(t)
}

func sessionClose(c *Call) (int, error) {
	h := Self[*handle](c)
	reason, detail := c.OptString(1, ""), c.OptString(2, "")
	return 0, c.Block(func(ctx context.Context) error { return h.s.Close(ctx, reason, detail) })
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
