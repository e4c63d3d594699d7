package main

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// drive is a session that the run opened or resumed, and what its log says of
// the run so far.
type drive struct {
	session *kernel.Session

	mu      sync.Mutex
	next    int64 // the first seq that was not read
	beats   int64
	in, out int64 // tokens
	left    int64 // the balance
	granted bool  // there is one
	closed  bool
	model   time.Time         // when the call in flight was made; zero: none
	calls   map[string]string // tools that run, by call id
	since   time.Time         // when the oldest of them began
}

// drives notes a session that a script opened or resumed.
func (h *host) drives(s *kernel.Session, resumed bool) {
	d := &drive{session: s, next: 1, calls: map[string]string{}}
	if resumed { // what a resume itself recorded is no beat
		if n, err := s.Len(context.Background()); err == nil {
			d.next = n + 1
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known[s.ID()] {
		h.known[s.ID()] = true
		h.driven = append(h.driven, d)
	}
}

// drivenNow answers the sessions of the run so far, in the order of their
// openings, so a parent stands before its children.
func (h *host) drivenNow() []*drive {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.driven[:len(h.driven):len(h.driven)]
}

// told are the kinds that say how a run gets on.
var told = []string{
	kernel.LLMRequest, kernel.LLMResponse, kernel.LLMCallFailed, kernel.ToolCall, kernel.ToolResult, kernel.SessionClosed,
}

// catchUp reads what was recorded since. What a store cannot say any more stays
// as it was: a run may end because of it.
func (d *drive) catchUp(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rows, _, err := d.session.Scan(ctx, kernel.Where{From: d.next, Kinds: told})
	if err != nil {
		return
	}
	for _, r := range rows {
		d.next = r.Event.Seq + 1
		d.take(r.Event)
	}
	if n, granted, err := d.session.Remaining(ctx); err == nil {
		d.left, d.granted = n, granted
	}
}

// toldData is what is read of an event's data; a member of another type counts
// as none.
type toldData struct {
	Usage  kernel.UsageRow `json:"usage"`
	CallID string          `json:"call_id"`
	Name   string          `json:"name"`
}

func (d *drive) take(ev *kernel.Event) {
	var data toldData
	_ = json.Unmarshal(ev.Data, &data)
	switch at := time.UnixMilli(ev.EpochMS); ev.Kind {
	case kernel.LLMRequest:
		d.beats++
		d.model = at
	case kernel.LLMResponse:
		u := data.Usage
		d.in, d.out = d.in+u.Input+u.CacheRead+u.CacheWrite, d.out+u.Output
		d.model = time.Time{}
	case kernel.LLMCallFailed:
		d.model = time.Time{}
	case kernel.ToolCall:
		if len(d.calls) == 0 {
			d.since = at
		}
		d.calls[data.CallID] = data.Name
	case kernel.ToolResult:
		delete(d.calls, data.CallID)
	case kernel.SessionClosed:
		d.closed, d.model = true, time.Time{}
		clear(d.calls)
	}
}

// tally sums what the run recorded.
type tally struct {
	sessions []string
	beats    int64
	in, out  int64    // tokens
	left     []string // balances of the sessions without a parent
}

func (h *host) tally(ctx context.Context) tally {
	over, end := context.WithCancel(ctx)
	end()
	ctx = store.Within(ctx, over) // a store that does not answer holds nobody up here
	t := tally{sessions: []string{}}
	for _, d := range h.drivenNow() {
		d.catchUp(ctx)
		t.sessions = append(t.sessions, d.session.ID())
		t.beats, t.in, t.out = t.beats+d.beats, t.in+d.in, t.out+d.out
		if d.granted && d.session.Parent() == "" && len(t.left) < 4 {
			t.left = append(t.left, strconv.FormatInt(d.left, 10))
		}
	}
	return t
}
