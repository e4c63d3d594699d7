package luabind

import (
	"context"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

// tailLog is what a tail is cut from. Places count from 1.
type tailLog interface {
	// spans answers the last n beats, oldest first, fewer when there are no more.
	spans(n int) ([]beatSpan, error)
	// newest answers the newest event of a kind before a seq (0: of all) and its
	// seq, 0 for none.
	newest(kind string, before int64) (int64, lua.LValue, error)
	// behind answers the first place behind a seq.
	behind(seq int64) int64
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
	events      []tailEvent
}

// tailEvent is an event of the kernel or a table that a script made.
type tailEvent struct {
	kind, beat string
	ev         *kernel.Event
	t          *lua.LTable
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
		out[i] = beatSpan{b.ID, b.Events[0].Seq, b.Events[len(b.Events)-1].Seq, tailEvents(b.Events)}
	}
	return out, err
}

func tailEvents(evs []*kernel.Event) []tailEvent {
	out := make([]tailEvent, len(evs))
	for i, ev := range evs {
		out[i] = tailEvent{kind: ev.Kind, beat: ev.Beat, ev: ev}
	}
	return out
}

func (s *sessionTail) newest(kind string, before int64) (int64, lua.LValue, error) {
	ev, err := wait(s.c, func(ctx context.Context) (*kernel.Event, error) {
		ev, err := s.log.Newest(ctx, kind)
		if err == nil && ev != nil && before > 0 && ev.Seq >= before {
			ev, err = olderThan(ctx, s.log, kind, before)
		}
		return ev, err
	})
	if ev == nil {
		return 0, lua.LNil, err
	}
	return ev.Seq, s.h.event(ev), err
}

// olderThan looks for the newest event of a kind before a seq, from there back.
func olderThan(ctx context.Context, log kernel.Log, kind string, before int64) (*kernel.Event, error) {
	for step := int64(256); before > 1; step *= 2 {
		from := max(1, before-step)
		evs, err := log.Events(ctx, from)
		if err != nil {
			return nil, err
		}
		for i := min(before-from, int64(len(evs))) - 1; i >= 0; i-- {
			if evs[i].Kind == kind {
				return evs[i], nil
			}
		}
		before = from
	}
	return nil, nil
}

func (s *sessionTail) behind(seq int64) int64 { return seq + 1 }

func (s *sessionTail) from(at int64) ([]tailEvent, error) {
	evs, err := wait(s.c, func(ctx context.Context) ([]*kernel.Event, error) { return s.log.Events(ctx, at) })
	return tailEvents(evs), err
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

// listTail is cut from what knl.fold takes: a list of events, of beat records and
// of such lists. What is no event is passed over.
type listTail struct {
	c   *Call
	evs []tailEvent
}

func listTailOf(c *Call, t *lua.LTable) *listTail {
	out := &listTail{c: c}
	out.add(t, 0)
	return out
}

// add gathers the events of a list, depth lists down.
func (s *listTail) add(t *lua.LTable, depth int) {
	for i := 1; i <= t.MaxN() && depth < maxDepth; i++ {
		of, ok := t.RawGetInt(i).(*lua.LTable)
		if !ok {
			continue
		}
		if m := mirrorOf(of); m != nil {
			if _, ok := m.value.(*kernel.Event); ok {
				s.evs = append(s.evs, listed(s.c.L, of))
				continue
			}
		}
		own := look(s.c.L, of)
		if own.RawGetString("kind") != lua.LNil {
			s.evs = append(s.evs, listed(s.c.L, of))
		} else if record, ok := own.RawGetString("events").(*lua.LTable); ok {
			s.add(look(s.c.L, record), depth+1)
		} else {
			s.add(own, depth+1)
		}
	}
}

// seq answers the seq of the event at index i, its place when it has none.
func (s *listTail) seq(i int) int64 {
	if ev := s.evs[i].ev; ev != nil {
		return ev.Seq
	}
	if n, ok := whole(look(s.c.L, s.evs[i].t).RawGetString("seq")); ok && n > 0 {
		return n
	}
	return int64(i + 1)
}

// listed reads a table of a list: the kernel's event that it stands for, or what
// a script wrote.
func listed(l *lua.LState, t *lua.LTable) tailEvent {
	if m := mirrorOf(t); m != nil {
		if ev, ok := m.value.(*kernel.Event); ok {
			return tailEvent{ev.Kind, ev.Beat, ev, t}
		}
	}
	own := look(l, t)
	beat := lua.LVAsString(own.RawGetString("beat"))
	if meta, ok := own.RawGetString("meta").(*lua.LTable); ok && beat == "" {
		beat = lua.LVAsString(look(l, meta).RawGetString("beat"))
	}
	return tailEvent{kind: lua.LVAsString(own.RawGetString("kind")), beat: beat, t: t}
}

func (s *listTail) spans(n int) ([]beatSpan, error) {
	var out []beatSpan
	at := map[string]int{}
	for i, ev := range s.evs {
		place := int64(i + 1)
		if j, known := at[ev.beat]; known {
			out[j].last, out[j].events = place, append(out[j].events, ev)
		} else if ev.beat != "" {
			at[ev.beat] = len(out)
			out = append(out, beatSpan{ev.beat, place, place, []tailEvent{ev}})
		}
	}
	return out[max(0, len(out)-n):], nil
}

func (s *listTail) newest(kind string, before int64) (int64, lua.LValue, error) {
	for i := len(s.evs) - 1; i >= 0; i-- {
		if n := s.seq(i); s.evs[i].kind == kind && (before == 0 || n < before) {
			return n, s.evs[i].t, nil
		}
	}
	return 0, lua.LNil, nil
}

func (s *listTail) behind(seq int64) int64 {
	for i := len(s.evs) - 1; i >= 0 && seq > 0; i-- {
		if s.seq(i) <= seq {
			return int64(i + 2)
		}
	}
	return 1
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
