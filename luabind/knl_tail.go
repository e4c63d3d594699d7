package luabind

import (
	"context"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

// knl.tail: the end of a log, in O(what it answers). A fold is handed the whole
// log, and a policy that wants its last beats must not pay for the rest. The
// events of a list are answered as the tables they are.

var tailFields = []Arg{
	{Name: "last", Kind: Whole, Optional: true, Doc: "beats (default: all)"},
	{Name: "since", Kind: Text, Optional: true, Doc: "a kind: start behind the newest event of it"},
	{Name: "from_seed", Kind: Flag, Optional: true, Doc: "answer the events before the first beat, too, as far as they are not in it"},
}

var tailFuncs = []Func{{
	Name: "tail", Returns: "{ events: table[], beats: string[], since?: table }, table[]?",
	Args: []Arg{
		{Name: "log", Type: "knl.session|table[]", Doc: "a session, what a fold is handed, or a list of events"},
		{Name: "opts", Kind: Table, Optional: true, Fields: tailFields},
	},
	Doc: "The end of a log: its events from the first one of the n-th beat from the end on, without those of older beats, and the ids of its beats, oldest first. A log with fewer beats is answered whole. It costs what it answers, however long the log is.",
	Fn:  tailOf,
}}

// tailLog is what a tail is cut from. Places count from 1.
type tailLog interface {
	// spans answers the last n beats, oldest first.
	spans(n int) ([]beatSpan, error)
	// newest answers the newest event of a kind and its place, 0 for none.
	newest(kind string) (int64, lua.LValue, error)
	// from answers the events from a place on.
	from(at int64) ([]tailEvent, error)
	// seed answers the events before the first beat and before a place.
	seed(before int64) (lua.LValue, error)
	// list answers events as a script holds them.
	list(evs []tailEvent) lua.LValue
}

// beatSpan is where a beat begins and ends.
type beatSpan struct {
	id          string
	first, last int64
}

// tailEvent is an event of the kernel or a table that a script made.
type tailEvent struct {
	beat string
	ev   *kernel.Event
	t    *lua.LTable
}

func tailOf(c *Call) (int, error) {
	log, err := tailLogOf(c)
	if err != nil {
		return 0, err
	}
	o := c.Options(2)
	last := int(o.Int("last", 0))
	if o.Has("last") && last < 1 {
		return 0, c.Mistake("option \"last\": got %d, want a whole number ≥ 1", last)
	}
	at, beats, since, err := cutTail(log, last, o.String("since", ""))
	if err != nil {
		return 0, err
	}
	evs, err := log.from(at.first)
	if err != nil {
		return 0, err
	}
	if at.kept != nil {
		evs = ofBeats(evs, at.kept)
	} else {
		beats = beatsOf(evs)
	}
	t := c.L.CreateTable(0, 3)
	ids := TagArray(c.L, c.L.CreateTable(len(beats), 0))
	for _, id := range beats {
		ids.Append(lua.LString(id))
	}
	t.RawSetString("events", log.list(evs))
	t.RawSetString("beats", ids)
	t.RawSetString("since", since)
	if !o.Bool("from_seed", false) {
		return c.Return(t)
	}
	seed, err := log.seed(at.first)
	if err != nil {
		return 0, err
	}
	return c.Return(t, seed)
}

// cutting is where a tail begins, and whose events it holds.
type cutting struct {
	first int64
	kept  map[string]bool // nil: of all beats
}

// cutTail answers where the last beats begin, or what stands behind the newest
// event of a kind when that is later; their ids, when they are counted; and that
// event.
func cutTail(log tailLog, last int, kind string) (at cutting, beats []string, since lua.LValue, err error) {
	at.first, since = 1, lua.LNil
	if kind != "" {
		if at.first, since, err = log.newest(kind); err != nil {
			return at, nil, nil, err
		}
		at.first++
	}
	if last == 0 {
		return at, nil, since, nil
	}
	spans, err := log.spans(last)
	if err != nil {
		return at, nil, nil, err
	}
	if len(spans) == last {
		at.first = max(at.first, spans[0].first)
	}
	at.kept = make(map[string]bool, len(spans))
	for _, s := range spans {
		if at.kept[s.id] = true; s.last >= at.first {
			beats = append(beats, s.id)
		}
	}
	return at, beats, since, nil
}

func beatsOf(evs []tailEvent) (ids []string) {
	seen := map[string]bool{"": true}
	for _, ev := range evs {
		if !seen[ev.beat] {
			seen[ev.beat] = true
			ids = append(ids, ev.beat)
		}
	}
	return ids
}

// ofBeats leaves out the events of beats that are not kept: of an older one that
// ran beside the first.
func ofBeats(evs []tailEvent, kept map[string]bool) []tailEvent {
	out := evs[:0]
	for _, ev := range evs {
		if ev.beat == "" || kept[ev.beat] {
			out = append(out, ev)
		}
	}
	return out
}

func tailLogOf(c *Call) (tailLog, error) {
	const want = "a session, what a fold is handed, or a list of events"
	switch v := c.Arg(1).(type) {
	case *lua.LUserData:
		if h, ok := v.Value.(*handle); ok {
			return &sessionTail{c, h, h.s}, nil
		}
	case *lua.LTable:
		if m := mirrorOf(v); m != nil {
			if f, ok := m.value.(*foldLog); ok {
				if h, ok := f.ctx.Value(handleKey{}).(*handle); ok {
					return &sessionTail{c, h, f.log}, nil
				}
			}
		}
		return listTailOf(c, look(c.L, v)), nil
	}
	return nil, c.ArgMistake(1, want)
}

// sessionTail is cut from the log of a session.
type sessionTail struct {
	c   *Call
	h   *handle
	log kernel.Log
}

func (s *sessionTail) spans(n int) ([]beatSpan, error) {
	beats, err := wait(s.c, func(ctx context.Context) ([]kernel.BeatRecord, error) {
		beats, _, err := s.log.Beats(ctx, n, false)
		return beats, err
	})
	out := make([]beatSpan, len(beats))
	for i, b := range beats {
		out[i] = beatSpan{b.ID, b.Events[0].Seq, b.Events[len(b.Events)-1].Seq}
	}
	return out, err
}

func (s *sessionTail) newest(kind string) (int64, lua.LValue, error) {
	ev, err := wait(s.c, func(ctx context.Context) (*kernel.Event, error) { return s.log.Newest(ctx, kind) })
	if ev == nil {
		return 0, lua.LNil, err
	}
	return ev.Seq, s.h.event(ev), err
}

func (s *sessionTail) from(at int64) ([]tailEvent, error) {
	evs, err := wait(s.c, func(ctx context.Context) ([]*kernel.Event, error) { return s.log.Events(ctx, at) })
	out := make([]tailEvent, len(evs))
	for i, ev := range evs {
		out[i] = tailEvent{beat: ev.Beat, ev: ev}
	}
	return out, err
}

func (s *sessionTail) seed(before int64) (lua.LValue, error) {
	seed, err := wait(s.c, func(ctx context.Context) ([]*kernel.Event, error) {
		_, seed, err := s.log.Beats(ctx, 1, true)
		return seed, err
	})
	n := 0
	for n < len(seed) && seed[n].Seq < before {
		n++
	}
	return s.h.lazyList(seed[:n:n]), err
}

func (s *sessionTail) list(evs []tailEvent) lua.LValue {
	out := make([]*kernel.Event, len(evs))
	for i, ev := range evs {
		out[i] = ev.ev
	}
	return s.h.lazyList(out)
}

// listTail is cut from a list of a script. What is no event is passed over.
type listTail struct {
	c     *Call
	evs   []tailEvent
	kinds []string
}

func listTailOf(c *Call, t *lua.LTable) *listTail {
	out := &listTail{c: c}
	for i := 1; i <= t.MaxN(); i++ {
		ev, ok := t.RawGetInt(i).(*lua.LTable)
		if !ok {
			continue
		}
		kind, beat := kindAndBeat(c.L, ev)
		out.evs, out.kinds = append(out.evs, tailEvent{beat: beat, t: ev}), append(out.kinds, kind)
	}
	return out
}

func kindAndBeat(l *lua.LState, t *lua.LTable) (kind, beat string) {
	if m := mirrorOf(t); m != nil {
		if ev, ok := m.value.(*kernel.Event); ok {
			return ev.Kind, ev.Beat
		}
		t = look(l, t)
	}
	if beat = lua.LVAsString(t.RawGetString("beat")); beat == "" {
		if meta, ok := t.RawGetString("meta").(*lua.LTable); ok {
			beat = lua.LVAsString(look(l, meta).RawGetString("beat"))
		}
	}
	return lua.LVAsString(t.RawGetString("kind")), beat
}

func (s *listTail) spans(n int) ([]beatSpan, error) {
	var out []beatSpan
	at := map[string]int{}
	for i, ev := range s.evs {
		place := int64(i + 1)
		if j, known := at[ev.beat]; known {
			out[j].last = place
		} else if ev.beat != "" {
			at[ev.beat] = len(out)
			out = append(out, beatSpan{ev.beat, place, place})
		}
	}
	return out[max(0, len(out)-n):], nil
}

func (s *listTail) newest(kind string) (int64, lua.LValue, error) {
	for i := len(s.kinds); i > 0; i-- {
		if s.kinds[i-1] == kind {
			return int64(i), s.evs[i-1].t, nil
		}
	}
	return 0, lua.LNil, nil
}

func (s *listTail) from(at int64) ([]tailEvent, error) {
	return append([]tailEvent(nil), s.evs[at-1:]...), nil
}

func (s *listTail) seed(before int64) (lua.LValue, error) {
	n := 0
	for n < min(len(s.evs), int(before)-1) && s.evs[n].beat == "" {
		n++
	}
	return s.list(s.evs[:n]), nil
}

func (s *listTail) list(evs []tailEvent) lua.LValue {
	out := TagArray(s.c.L, s.c.L.CreateTable(len(evs), 0))
	for _, ev := range evs {
		out.Append(ev.t)
	}
	return out
}
