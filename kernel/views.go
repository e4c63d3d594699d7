package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// ViewOptions bound a view.
type ViewOptions struct {
	Sessions []string // read these sessions; nil: the handle's own
	Limit    int      // rows; 0: all
}

// BeatRow is one beat of [Session.BeatsView].
type BeatRow struct {
	Session string `json:"session"`
	Beat    string `json:"beat"`
	SeqFrom int64  `json:"seq_from"`
	SeqTo   int64  `json:"seq_to"`
	Kinds   string `json:"kinds"` // joined by commas, in log order
	// Window is what the fold said of the log it left out, when it said something.
	Window json.RawMessage `json:"window,omitempty"`
}

// PairRow is one answered tool call.
type PairRow struct {
	Session string `json:"session"`
	Beat    string `json:"beat,omitempty"`
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
}

// LedgerRow is one move of a ledger.
type LedgerRow struct {
	Session  string `json:"session"`
	Seq      int64  `json:"seq"`
	Kind     string `json:"kind"`
	Amount   int64  `json:"amount"`
	Reserved int64  `json:"reserved,omitempty"` // of budget_settled: what Amount takes the place of
	Tag      string `json:"tag,omitempty"`
	Beat     string `json:"beat,omitempty"`
	Child    string `json:"child,omitempty"`
}

// UsageRow sums what the model calls of a session used.
type UsageRow struct {
	Session    string `json:"session"`
	Calls      int64  `json:"calls"`
	Input      int64  `json:"input_tokens"`
	Output     int64  `json:"output_tokens"`
	Thinking   int64  `json:"thinking_tokens"`
	CacheRead  int64  `json:"cache_read_tokens"`
	CacheWrite int64  `json:"cache_write_tokens"`
}

// SessionRow is one session of a store.
type SessionRow struct {
	Session   string `json:"session"`
	Parent    string `json:"parent,omitempty"`
	Owner     string `json:"owner"`
	Events    int64  `json:"events"`
	Calls     int    `json:"calls"`
	Epoch     int64  `json:"epoch"`
	OpenedMS  int64  `json:"opened_epoch_ms"`
	ClosedMS  *int64 `json:"closed_epoch_ms,omitempty"`
	Remaining *int64 `json:"remaining,omitempty"`
	Tag       string `json:"tag,omitempty"`
	OpenBeat  string `json:"open_beat,omitempty"` // a beat that has not ended
}

// TreeRow is one session of a tree, parents before their children.
type TreeRow struct {
	SessionRow
	Depth        int      `json:"depth"`
	OpenChildren []string `json:"open_children"`
}

// Where is a filter over events. A list that is nil bounds nothing, an empty one
// names nothing.
type Where struct {
	Kinds    []string
	Beats    []string
	From, To int64    // seq; 0: no bound, a To below: no event
	Sessions []string // nil: the session that is asked
	Limit    int      // rows; 0: all
	Match    func(stream string, ev *Event) (bool, error)
}

// Row is an event with the session it belongs to.
type Row struct {
	Session string
	Event   *Event
}

// Scan answers the events that w names, by session and seq. truncated says
// that the limit cut the answer short.
func (s *Session) Scan(ctx context.Context, w Where) (rows []Row, truncated bool, err error) {
	truncated, err = s.each(ctx, "scan", w, func(id string, ev *Event) bool {
		rows = append(rows, Row{id, ev})
		return true
	})
	return rows, truncated, err
}

// each calls yield with every event that w names; it answers true when the
// limit ended it early.
func (s *Session) each(ctx context.Context, method string, w Where, yield func(string, *Event) bool) (bool, error) {
	if w.Sessions == nil {
		w.Sessions = []string{s.id}
	}
	if w.To < 0 {
		return false, nil
	}
	n := 0
	for _, id := range w.Sessions {
		for r, err := range s.k.store.Records(ctx, id, max(w.From, 1), w.To) {
			if err != nil {
				return false, wrap(method, err)
			}
			if w.Beats != nil && !slices.Contains(w.Beats, r.Group) {
				continue
			}
			ev, err := s.k.event(ctx, r)
			if err != nil {
				return false, wrap(method, err)
			}
			ok, err := w.match(id, ev)
			if err != nil {
				return false, err
			}
			if !ok {
				continue
			}
			if w.Limit > 0 && n == w.Limit {
				return true, nil
			}
			if n++; !yield(id, ev) {
				return false, nil
			}
		}
	}
	return false, nil
}

func (w *Where) match(id string, ev *Event) (bool, error) {
	if w.Kinds != nil && !slices.Contains(w.Kinds, ev.Kind) {
		return false, nil
	}
	if w.Match == nil {
		return true, nil
	}
	return w.Match(id, ev)
}

// limited cuts rows at the limit of a view.
func limited[T any](rows []T, o ViewOptions) ([]T, bool) {
	if o.Limit > 0 && len(rows) > o.Limit {
		return rows[:o.Limit], true
	}
	return rows, false
}

// BeatsView answers one row a beat, by first seq.
func (s *Session) BeatsView(ctx context.Context, o ViewOptions) ([]BeatRow, bool, error) {
	var rows []BeatRow
	var kinds [][]string
	at := map[string]int{}
	_, err := s.each(ctx, "beats", Where{Sessions: o.Sessions}, func(id string, ev *Event) bool {
		if ev.Beat == "" {
			return true
		}
		i, ok := at[id+"\x00"+ev.Beat]
		if !ok {
			i = len(rows)
			at[id+"\x00"+ev.Beat] = i
			rows, kinds = append(rows, BeatRow{Session: id, Beat: ev.Beat, SeqFrom: ev.Seq}), append(kinds, nil)
		}
		rows[i].SeqTo = ev.Seq
		if w := fieldOf(ev.Data, "window"); ev.Kind == LLMRequest && w != nil && w[0] == '{' { // a caller's own may be anything
			rows[i].Window = w
		}
		kinds[i] = append(kinds[i], ev.Kind)
		return true
	})
	for i := range rows {
		rows[i].Kinds = strings.Join(kinds[i], ",")
	}
	out, cut := limited(rows, o)
	return out, cut, err
}

// PairsView answers one row a tool call that has a result, by the seq of the
// call; a call and its result belong to one beat.
func (s *Session) PairsView(ctx context.Context, o ViewOptions) ([]PairRow, bool, error) {
	pairs, err := s.pairs(ctx, "tool_pairs", o)
	var rows []PairRow
	for _, p := range pairs {
		if p.result != nil {
			p.row.OK = string(fieldOf(p.result.Data, "ok")) == "true"
			rows = append(rows, p.row)
		}
	}
	out, cut := limited(rows, o)
	return out, cut, err
}

// OpenCallsView answers one row a tool call without a result.
func (s *Session) OpenCallsView(ctx context.Context, o ViewOptions) ([]PairRow, bool, error) {
	pairs, err := s.pairs(ctx, "open_calls", o)
	var rows []PairRow
	for _, p := range pairs {
		if p.result == nil {
			rows = append(rows, p.row)
		}
	}
	out, cut := limited(rows, o)
	return out, cut, err
}

type pair struct {
	row    PairRow
	result *Event
}

func (s *Session) pairs(ctx context.Context, method string, o ViewOptions) ([]*pair, error) {
	var out []*pair
	open := map[string]*pair{}
	_, err := s.each(ctx, method, Where{Sessions: o.Sessions, Kinds: []string{ToolCall, ToolResult}}, func(id string, ev *Event) bool {
		callID := textOf(fieldOf(ev.Data, "call_id"))
		key := id + "\x00" + ev.Beat + "\x00" + callID
		if ev.Kind == ToolCall {
			p := &pair{row: PairRow{Session: id, Beat: ev.Beat, CallID: callID, Name: textOf(fieldOf(ev.Data, "name"))}}
			if string(fieldOf(ev.Data, "rerun")) == "true" && open[key] != nil {
				open[key].result = nil // the run it repeats was interrupted
				return true
			}
			out, open[key] = append(out, p), p
		} else if p := open[key]; p != nil && p.result == nil {
			p.result = ev
		}
		return true
	})
	return out, err
}

// LedgerView answers one row a move of the ledger.
func (s *Session) LedgerView(ctx context.Context, o ViewOptions) ([]LedgerRow, bool, error) {
	var rows []LedgerRow
	kinds := []string{BudgetGranted, BudgetReserved, BudgetRefused, BudgetSpent, BudgetSettled, BudgetReturned}
	cut, err := s.each(ctx, "ledger", Where{Sessions: o.Sessions, Kinds: kinds, Limit: o.Limit}, func(id string, ev *Event) bool {
		d := ev.note()
		rows = append(rows, LedgerRow{id, ev.Seq, ev.Kind, d.Amount, d.Reserved, d.Tag, ev.Beat, d.Child})
		return true
	})
	return rows, cut, err
}

// UsageView answers one row a session that had an answer, in the order of the
// sessions asked for.
func (s *Session) UsageView(ctx context.Context, o ViewOptions) ([]UsageRow, bool, error) {
	var rows []UsageRow
	_, err := s.each(ctx, "usage", Where{Sessions: o.Sessions, Kinds: []string{LLMResponse}}, func(id string, ev *Event) bool {
		if len(rows) == 0 || rows[len(rows)-1].Session != id {
			rows = append(rows, UsageRow{Session: id})
		}
		row := &rows[len(rows)-1]
		var u UsageRow
		_ = json.Unmarshal(fieldOf(ev.Data, "usage"), &u) // a counter of another type counts 0
		row.Calls++
		row.Input, row.Output, row.Thinking = row.Input+u.Input, row.Output+u.Output, row.Thinking+u.Thinking
		row.CacheRead, row.CacheWrite = row.CacheRead+u.CacheRead, row.CacheWrite+u.CacheWrite
		return true
	})
	out, cut := limited(rows, o)
	return out, cut, err
}

// Sessions lists the sessions of the store, those after a given id, at most
// limit; limit ≤ 0 means all.
func (k *Kernel) Sessions(ctx context.Context, after string, limit int) ([]SessionRow, error) {
	infos, err := k.store.Streams(ctx, after, limit)
	if err != nil {
		return nil, wrap("sessions", err)
	}
	rows := make([]SessionRow, 0, len(infos))
	for _, in := range infos {
		st, err := decodeState(in.Stream, in.Head.State)
		if err != nil {
			return rows, wrap("sessions", err)
		}
		rows = append(rows, st.row(in.Stream, in.Head.Seq))
	}
	return rows, nil
}

func (st *state) row(id string, events int64) SessionRow {
	r := SessionRow{Session: id, Parent: st.Parent, Owner: st.Owner, Events: events, Calls: st.Calls,
		Epoch: st.Epoch, OpenedMS: st.Opened, Tag: st.Tag, OpenBeat: st.Open}
	if st.Closed > 0 {
		r.ClosedMS = &st.Closed
	}
	if st.Granted {
		r.Remaining = &st.Balance
	}
	return r
}

// Tree answers a session and all below it, each parent before its children,
// siblings by opening time and id.
func (k *Kernel) Tree(ctx context.Context, id string) ([]TreeRow, error) {
	var rows []TreeRow
	seen := map[string]bool{}
	var walk func(id string, depth int) (*state, error)
	walk = func(id string, depth int) (*state, error) {
		head, st, err := k.load(ctx, "tree", id)
		if err != nil || seen[id] {
			return &st, err
		}
		seen[id] = true
		at := len(rows)
		rows = append(rows, TreeRow{SessionRow: st.row(id, head.Seq), Depth: depth, OpenChildren: []string{}})
		children, err := k.store.Children(ctx, id)
		if err != nil {
			return nil, wrap("tree", err)
		}
		for _, child := range children {
			cst, err := walk(child, depth+1)
			if err != nil {
				return nil, err
			}
			if cst.Closed == 0 {
				rows[at].OpenChildren = append(rows[at].OpenChildren, child)
			}
		}
		return &st, nil
	}
	_, err := walk(id, 0)
	return rows, err
}
