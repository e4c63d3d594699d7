package kernel

import (
	"context"

	"github.com/knl-run/knl/kernel/store"
)

// tail is the end of a log that a handle keeps decoded, so that a beat reads
// what the last one left behind and not the whole log.
//
//	I3 events are the records first…first+len(events)-1, the last one the head
//	I4 unless strange, groups are the last len(groups) rows of the group index
type tail struct {
	first   int64
	events  []*Event
	groups  []store.Group
	strange bool   // an event came whose beat may be older than groups
	need    int64  // the lowest seq that reads asked for in this round
	before  int64  // and in the round before it
	round   int    // events added in this round
	minted  string // the beat that this handle begins: known to be new
}

const (
	tailSlack = 512 // events kept beyond what reads ask for
	tailRound = 512 // events after which a new round of reads begins
)

func (t *tail) reset(first int64) { *t = tail{first: first, need: first, before: first} }

func (t *tail) add(ev *Event) {
	t.events = append(t.events, ev)
	if ev.Beat != "" && !t.strange {
		t.index(ev)
	}
	if t.round++; t.round > tailRound {
		t.before, t.need, t.round = t.need, ev.Seq, 0
	}
	if extra := min(t.need, t.before) - t.first - tailSlack; extra > tailSlack {
		t.events = append([]*Event(nil), t.events[extra:]...)
		t.first += extra
	}
}

// index keeps groups true to I4 over an event with a beat.
func (t *tail) index(ev *Event) {
	n := len(t.groups)
	switch {
	case n > 0 && t.groups[n-1].ID == ev.Beat:
	case ev.Beat == t.minted:
		t.minted = "" // from here on it is as old as any
		t.groups = append(t.groups, store.Group{ID: ev.Beat, First: ev.Seq})
		if extra := len(t.groups) - tailSlack; extra > tailSlack {
			t.groups = append([]store.Group(nil), t.groups[extra:]...)
		}
	default:
		t.strange = true
	}
}

// since answers the decoded events from seq on.
func (t *tail) since(from int64) []*Event {
	if i := from - t.first; i < int64(len(t.events)) {
		return t.events[max(i, 0):len(t.events):len(t.events)]
	}
	return nil
}

// reach extends the tail back to seq from.
func (s *Session) reach(ctx context.Context, from int64) error {
	from = max(from, 1)
	if from < s.tail.first {
		older, err := s.k.events(ctx, s.id, from, s.tail.first-1)
		if err != nil {
			return err
		}
		s.tail.events = append(older, s.tail.events...)
		s.tail.first = from
	}
	s.tail.need = min(s.tail.need, from)
	return nil
}

// Events answers the events with seq ≥ from, in order.
func (s *Session) Events(ctx context.Context, from int64) ([]*Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return nil, wrap("events", err)
	}
	if err := s.reach(ctx, from); err != nil {
		return nil, wrap("events", err)
	}
	return s.tail.since(from), nil
}

// Tail answers the last n events.
func (s *Session) Tail(ctx context.Context, n int64) ([]*Event, error) {
	length, err := s.Len(ctx)
	if err != nil || n <= 0 {
		return nil, err
	}
	evs, err := s.Events(ctx, max(1, length-n+1))
	return evs[max(0, int64(len(evs))-n):], err // more may have come in between
}

// Beats answers the last n beats, oldest first, each with the events that
// carry its id; with fromSeed also the events before the session's first beat.
// n ≤ 0 means all. It reads O(n) beats.
func (s *Session) Beats(ctx context.Context, n int, fromSeed bool) ([]BeatRecord, []*Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	beats, err := s.beats(ctx, n)
	if err != nil || !fromSeed {
		return beats, nil, wrap("beats", err)
	}
	seed, err := s.seed(ctx)
	return beats, seed, wrap("beats", err)
}

func (s *Session) beats(ctx context.Context, n int) ([]BeatRecord, error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	groups, err := s.groups(ctx, n)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	if err := s.reach(ctx, groups[0].First); err != nil {
		return nil, err
	}
	return sorted(s.tail.since(groups[0].First), groups), nil
}

// sorted puts events to the beats they belong to.
func sorted(events []*Event, groups []store.Group) []BeatRecord {
	out, at := make([]BeatRecord, len(groups)), make(map[string]int, len(groups))
	for i, g := range groups {
		at[g.ID], out[i].ID = i, g.ID
	}
	for from := 0; from < len(events); {
		to := from + 1
		for to < len(events) && events[to].Beat == events[from].Beat {
			to++
		}
		if i, ok := at[events[from].Beat]; ok && out[i].Events == nil {
			out[i].Events = events[from:to:to] // nearly always all of them
		} else if ok {
			out[i].Events = append(out[i].Events, events[from:to]...)
		}
		from = to
	}
	return out
}

// groups answers the last n rows of the group index, from memory when it can.
func (s *Session) groups(ctx context.Context, n int) ([]store.Group, error) {
	t := &s.tail
	if n > 0 && !t.strange && len(t.groups) >= n {
		return t.groups[len(t.groups)-n:], nil
	}
	rows, err := s.k.store.Groups(ctx, s.id, n)
	if err == nil {
		t.groups, t.strange = rows, false
	}
	return rows, err
}

// newest is the newest event of a kind among the first seen events of a log.
type newest struct {
	ev   *Event // nil: none
	seen int64
}

// Newest answers the newest event of a kind, nil when there is none. The handle
// remembers how far it has looked: a kind that is asked for again costs what was
// recorded since.
func (s *Session) Newest(ctx context.Context, kind string) (*Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return nil, wrap("newest", err)
	}
	was := s.newest[kind]
	ev, err := s.lookBack(ctx, kind, was.seen)
	if err != nil {
		return nil, wrap("newest", err)
	}
	if ev == nil {
		ev = was.ev
	}
	if s.newest == nil {
		s.newest = map[string]newest{}
	}
	s.newest[kind] = newest{ev, s.head.Seq}
	return ev, nil
}

// lookBack finds the newest event of a kind behind seq after, from the end: in
// memory, then on disk in steps.
func (s *Session) lookBack(ctx context.Context, kind string, after int64) (*Event, error) {
	evs := s.tail.since(after + 1)
	for i := len(evs) - 1; i >= 0; i-- {
		if evs[i].Kind == kind {
			return evs[i], nil
		}
	}
	for to := s.tail.first - 1; to > after; to -= tailSlack {
		var found *store.Record
		for r, err := range s.k.store.Records(ctx, s.id, max(after+1, to-tailSlack+1), to) {
			if err != nil {
				return nil, err
			}
			if kindOf(r) == kind {
				found = &r
			}
		}
		if found != nil {
			return s.k.event(ctx, *found)
		}
	}
	return nil, nil
}

// seed answers the events before the first beat.
func (s *Session) seed(ctx context.Context) ([]*Event, error) {
	to := s.st.First - 1
	if to < 0 { // no beat yet: all of it is seed
		to = s.head.Seq
	}
	if to == 0 {
		return nil, nil
	}
	switch {
	case s.tail.first == 1:
		return s.tail.events[:to:to], nil
	case int64(len(s.sown)) == to:
		return s.sown, nil
	}
	var err error
	s.sown, err = s.k.events(ctx, s.id, 1, to)
	return s.sown, err
}

// event answers one recorded event.
func (s *Session) event(ctx context.Context, seq int64) (*Event, error) {
	if i := seq - s.tail.first; i >= 0 && i < int64(len(s.tail.events)) {
		return s.tail.events[i], nil
	}
	evs, err := s.k.events(ctx, s.id, seq, seq)
	if err != nil || len(evs) == 0 {
		return nil, err
	}
	return evs[0], nil
}
