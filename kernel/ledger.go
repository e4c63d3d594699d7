package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/knl-run/knl/kernel/store"
)

// state is what the kernel knows of a session without reading its log: the
// fold of every record up to the head, laid beside the head in the same write.
//
//	I1 state = fold(apply, records 1…head)      checked by [Check]
type state struct {
	Scope   string `json:"scope"`
	Owner   string `json:"owner"`
	Parent  string `json:"parent,omitempty"`
	Opened  int64  `json:"opened"`           // ms
	Closed  int64  `json:"closed,omitempty"` // ms; 0 while open
	Epoch   int64  `json:"epoch"`            // of the driver; an open is 1, each resume adds 1
	Refund  bool   `json:"refund,omitempty"`
	Granted bool   `json:"granted,omitempty"` // a ledger exists
	Balance int64  `json:"balance,omitempty"`
	Tag     string `json:"tag,omitempty"`   // of the latest grant
	Held    int64  `json:"held,omitempty"`  // reserved by hand and not settled
	First   int64  `json:"first,omitempty"` // seq of the first event with a beat
	Beats   int64  `json:"beats,omitempty"` // that the kernel has begun
	Calls   int    `json:"calls,omitempty"` // model calls that were answered or failed
	Open    string `json:"open,omitempty"`  // the beat that has not ended
	Pending int    `json:"pending,omitempty"`
}

// noteData is the union of the fields that state reads from kernel events.
type noteData struct {
	ScopeID, Owner, Parent, Tag, Child string
	Amount, Reserved, Returned, Epoch  int64
	Refund                             bool
}

// apply moves the state over one event.
//
//	I2 balance = max(0, …) over the ledger kinds in order; without a grant
//	   nothing moves
func (st *state) apply(ev *Event) {
	if st.First == 0 && ev.Beat != "" {
		st.First = ev.Seq
	}
	switch ev.Kind {
	case LLMResponse, LLMCallFailed:
		st.Calls++
		st.answered(ev)
	case LLMRequest, ToolCall:
		st.begun(ev)
	case ToolResult:
		if st.Open != "" && ev.Beat == st.Open {
			if st.Pending--; st.Pending <= 0 {
				st.Open, st.Pending = "", 0
			}
		}
	case BeatInterrupted:
		st.Open, st.Pending = "", 0
	default:
		if _, ours := reserved[ev.Kind]; ours {
			st.note(ev)
		}
	}
}

// begun opens a beat: by the kernel's own request, which alone has a hash, or
// by a call that is run again.
func (st *state) begun(ev *Event) {
	if ev.Beat == "" {
		return
	}
	switch {
	case ev.Kind == LLMRequest && fieldOf(ev.Data, "hash") != nil:
		st.Open, st.Pending = ev.Beat, 0
		st.Beats++
	case ev.Kind == ToolCall && string(fieldOf(ev.Data, "rerun")) == "true":
		st.Open, st.Pending = ev.Beat, 1
	}
}

func (st *state) answered(ev *Event) {
	if st.Open == "" || ev.Beat != st.Open {
		return
	}
	st.Pending = len(ev.fold().calls)
	if ev.Kind == LLMCallFailed || st.Pending == 0 || ev.fold().refused {
		st.Open, st.Pending = "", 0
	}
}

func (st *state) note(ev *Event) {
	d := ev.note()
	switch ev.Kind {
	case SessionOpened:
		st.Scope, st.Owner, st.Parent, st.Refund = d.ScopeID, d.Owner, d.Parent, d.Refund
		st.Opened, st.Epoch = ev.EpochMS, 1
	case SessionClosed:
		st.Closed = ev.EpochMS
		st.move(-d.Returned)
	case DriverChanged:
		st.Epoch = d.Epoch
	case BudgetGranted:
		st.Granted, st.Tag = true, d.Tag
		st.move(d.Amount)
	case BudgetReserved:
		st.move(-d.Amount)
		if ev.Beat == "" && d.Child == "" {
			st.Held = d.Amount
		}
	case BudgetSpent:
		st.move(-d.Amount)
	case BudgetSettled:
		st.move(d.Reserved - d.Amount)
		if ev.Beat == "" {
			st.Held = 0
		}
	case BudgetReturned:
		st.move(d.Amount)
	}
}

func (st *state) move(n int64) {
	if !st.Granted {
		return
	}
	if n > math.MaxInt64-st.Balance { // more than can be counted stays at the most
		n = math.MaxInt64 - st.Balance
	}
	st.Balance = max(0, st.Balance+n)
}

// note reads a kernel event. A field of another type reads as absent.
func (ev *Event) note() (d noteData) {
	_ = eachField(ev.Data, func(name string, v json.RawMessage) bool {
		switch name {
		case "scope_id":
			d.ScopeID = textOf(v)
		case "owner":
			d.Owner = textOf(v)
		case "parent":
			d.Parent = textOf(v)
		case "tag":
			d.Tag = textOf(v)
		case "child":
			d.Child = textOf(v)
		case "refund":
			d.Refund = string(v) == "true"
		case "amount":
			d.Amount = wholeOf(v)
		case "reserved":
			d.Reserved = wholeOf(v)
		case "returned":
			d.Returned = wholeOf(v)
		case "epoch":
			d.Epoch = wholeOf(v)
		}
		return true
	})
	return d
}

func (st *state) encode() []byte {
	b, err := json.Marshal(st)
	if err != nil {
		panic("BUG: session state does not encode: " + err.Error())
	}
	return b
}

func decodeState(id string, b []byte) (st state, err error) {
	if err := json.Unmarshal(b, &st); err != nil {
		return st, fmt.Errorf("session %s: head state: %w: %w", id, err, store.ErrCorrupt)
	}
	return st, nil
}

// ledgerEvent makes an event of one of the ledger kinds.
func (st *state) ledgerEvent(kind, beat string, fields map[string]any) *Event {
	fields["scope_id"] = st.Scope
	if st.Tag != "" && fields["tag"] == nil {
		fields["tag"] = st.Tag
	}
	return kernelEvent(kind, beat, fields)
}

// kernelEvent makes an event from plain values; a nil value is left out.
func kernelEvent(kind, beat string, fields map[string]any) *Event {
	raw := make(map[string]json.RawMessage, len(fields))
	for name, v := range fields {
		switch v := v.(type) {
		case nil:
		case json.RawMessage:
			raw[name] = v
		case string:
			raw[name] = quote(v)
		case int64:
			raw[name] = strconv.AppendInt(nil, v, 10)
		case bool:
			raw[name] = strconv.AppendBool(nil, v)
		default:
			b, err := json.Marshal(v)
			if err != nil {
				panic("BUG: " + kind + "." + name + " does not encode: " + err.Error())
			}
			raw[name] = b
		}
	}
	return madeEvent(kind, beat, appendObject(nil, raw))
}

func madeEvent(kind, beat string, data json.RawMessage) *Event {
	return &Event{Kind: kind, Beat: beat, Meta: json.RawMessage("{}"), Data: data, sound: true}
}

// Reserve asks the ledger for n units. Without a grant it answers true and
// records nothing. Otherwise the answer is decided and recorded in one write:
// budget_reserved, or budget_refused and false with the tag of the grant.
func (s *Session) Reserve(ctx context.Context, n int64) (ok bool, tag string, err error) {
	if err := whole("reserve", n); err != nil {
		return false, "", err
	}
	_, err = s.drive(ctx, "reserve", barrier, func(st *state) ([]*Event, error) {
		var ev *Event
		ok, tag, ev = st.reserve(n, "")
		if ev == nil {
			return nil, nil
		}
		return []*Event{ev}, nil
	})
	return ok, tag, err
}

// reserve decides over n units; ev is nil when there is no ledger.
func (st *state) reserve(n int64, beat string) (ok bool, tag string, ev *Event) {
	switch {
	case !st.Granted:
		return true, "", nil
	case st.Balance >= n:
		return true, "", st.ledgerEvent(BudgetReserved, beat, map[string]any{"amount": n})
	}
	fields := map[string]any{"amount": n, "remaining": st.Balance}
	return false, st.Tag, st.ledgerEvent(BudgetRefused, beat, fields)
}

// Spend takes n units without asking; the balance stops at zero. Without a
// grant it records nothing.
func (s *Session) Spend(ctx context.Context, n int64) error {
	if err := whole("spend", n); err != nil {
		return err
	}
	_, err := s.drive(ctx, "spend", barrier, func(st *state) ([]*Event, error) {
		if !st.Granted {
			return nil, nil
		}
		return []*Event{st.ledgerEvent(BudgetSpent, "", map[string]any{"amount": n})}, nil
	})
	return err
}

// Settle says what the last reservation made by hand has cost: the difference
// moves back to the balance, or out of it, never below zero.
func (s *Session) Settle(ctx context.Context, n int64) error {
	if err := whole("settle", n); err != nil {
		return err
	}
	_, err := s.drive(ctx, "settle", barrier, func(st *state) ([]*Event, error) {
		switch {
		case !st.Granted:
			return nil, nil
		case st.Held == 0:
			return nil, faultf(Validation, "settle", "no reservation is open: call reserve first")
		}
		return []*Event{st.ledgerEvent(BudgetSettled, "", map[string]any{"reserved": st.Held, "amount": n})}, nil
	})
	return err
}

// Remaining answers the balance; ok is false when nothing was ever granted.
func (s *Session) Remaining(ctx context.Context) (n int64, ok bool, err error) {
	st, err := s.now(ctx, "remaining")
	return st.Balance, st.Granted, err
}

// Exhausted says whether a grant exists and nothing is left of it.
func (s *Session) Exhausted(ctx context.Context) (bool, error) {
	st, err := s.now(ctx, "exhausted")
	return st.Granted && st.Balance <= 0, err
}

func whole(method string, n int64) error {
	if n < 0 {
		return faultf(Validation, method, "got %d, want a whole number ≥ 0", n)
	}
	return nil
}
