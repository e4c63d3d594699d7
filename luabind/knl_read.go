package luabind

import (
	"context"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/shapes"
)

// What a session's handle reads.

var scanFields = []Arg{
	{Name: "kinds", Kind: Table, Optional: true, Type: "string[]", Doc: "of these kinds (default: all)"},
	{Name: "beats", Kind: Table, Optional: true, Type: "string[]", Doc: "of these beats, by id (default: all, and none)"},
	{Name: "from", Kind: Whole, Optional: true, Doc: "a seq (default: the first)"},
	{Name: "to", Kind: Whole, Optional: true, Doc: "a seq (default: the last)"},
	{Name: "sessions", Kind: Table, Optional: true, Type: "(knl.session|string)[]", Doc: "sessions or their ids (default: this session)"},
	{Name: "where", Kind: Function, Optional: true, Type: "fun(event: knl.event): boolean", Doc: "picks events (default: all)"},
	{Name: "limit", Kind: Whole, Optional: true, Doc: "rows (default: all)"},
}

func sessionEvents(c *Call) (int, error) {
	h := Self[*handle](c)
	from := c.OptInt(1, 1)
	evs, err := wait(c, func(ctx context.Context) ([]*kernel.Event, error) { return h.s.Events(ctx, from) })
	if err != nil {
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
		h.st.vm.filled("knl.beat_record", t)
	}}), len(b.Events)}
}

func sessionScan(c *Call) (int, error) {
	h := Self[*handle](c)
	o := c.Options(1)
	w := kernel.Where{From: o.Int("from", 0), To: o.Int("to", 0), Limit: int(o.Int("limit", 0))}
	if o.Has("limit") && w.Limit < 1 {
		return 0, c.Mistake("option \"limit\": got %d, want a whole number ≥ 1", w.Limit)
	}
	if o.Has("to") && w.To < 1 {
		w.To = -1 // a bound that was computed: nothing is below the first event
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
	count := h.s.Len
	switch of := c.OptString(1, "events"); of {
	case "events":
	case "beats":
		count = h.s.BeatCount
	default:
		return 0, fault(kernel.Validation, "len", "got %q, want \"events\" or \"beats\"", of)
	}
	n, err := wait(c, count)
	if err != nil {
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
	evs, err := wait(c, func(ctx context.Context) ([]*kernel.Event, error) { return h.s.Tail(ctx, n) })
	if err != nil {
		return 0, err
	}
	return c.Return(h.list(c.L, evs))
}

func sessionRequest(c *Call) (int, error) {
	h := Self[*handle](c)
	beat := c.String(1)
	req, err := wait(c, func(ctx context.Context) (*kernel.Request, error) { return h.s.Request(ctx, beat) })
	if err != nil {
		return 0, err
	}
	return c.Return(c.VM().requestTable(req))
}

func sessionInterrupted(c *Call) (int, error) {
	h := Self[*handle](c)
	in, err := wait(c, h.s.Interrupted)
	if err != nil {
		return 0, err
	}
	if in == nil {
		return c.Return(lua.LNil)
	}
	return c.Return(c.VM().structTable(c.L, shapes.FormOf("interrupted"), in))
}
