package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// BeatOptions are what one beat is told besides its device.
type BeatOptions struct {
	OnDelta    func(Delta)
	Deadline   time.Time       // zero: none
	ToolChoice json.RawMessage // nil: the provider's default
	Params     json.RawMessage // object; nil: none
}

// Beat makes one model call and runs the tools it asks for, in these steps:
//
//  1. fold the log, filter the request, ask what it costs;
//  2. record budget_reserved and llm_request in one write and wait for the
//     disk; a ledger that does not cover the cost records budget_refused and
//     stops here;
//  3. call the model once;
//  4. record llm_response, or llm_call_failed, and what the call has cost;
//  5. decide over all its tool calls, then run them; a tool_call is on disk
//     before the handler of a tool whose effects are not "read".
//
// It makes one attempt of everything and never answers a Go error. Beats of
// one session take turns; a beat inside a tool of the same session is refused.
func Beat(ctx context.Context, s *Session, d *Device, o BeatOptions) Outcome {
	b := &beat{s: s, d: d, o: o}
	if out, ok := b.enter(ctx, "beat"); !ok {
		return out
	}
	defer b.leave()
	b.id = s.k.mint()
	return b.run()
}

// beat is one beat under way.
type beat struct {
	s        *Session
	d        *Device
	o        BeatOptions
	id       string
	ctx      context.Context
	cancel   context.CancelFunc
	req      *Request
	reserved int64  // 0: no ledger
	unit     string // the tag of the ledger
	call     int    // model calls before this one
	reply    *Reply
	answer   *Answer
	calls    []*Call
	shut     map[int]closing // calls that do not run, by index
	queue    []*Event        // decided and not yet written
	mended   int             // characters of the reply that the door replaced
	halted   bool            // cancelled or past the deadline while tools ran
}

func (b *beat) run() Outcome {
	if out, ok := b.ask(); !ok {
		if b.ctx.Err() != nil {
			return b.stop("beat")
		}
		return out
	}
	if out, ok := b.begin(); !ok {
		return out
	}
	answer, err := b.callModel()
	if err != nil {
		return b.failCall(err)
	}
	if err := b.take(answer); KindOf(err) != "" {
		return b.lost(err)
	} else if err != nil {
		return b.failCall(err)
	}
	return b.finish()
}

// ask makes the request: fold, options, filters.
func (b *beat) ask() (Outcome, bool) {
	if err := b.ready("beat"); err != nil {
		return stateFailed(err), false
	}
	req, err := guard(func() (*Request, error) { return b.d.Fold(b.ctx, b.s, b.d) })
	switch {
	case KindOf(err) != "":
		return stateFailed(err), false
	case err != nil:
		return raised(StageConf, "fold", err), false
	case req == nil:
		return failed(StageConf, &Detail{Message: "fold: answered nothing, want a request"}), false
	}
	window, err := admitWindow(req.Window)
	if err != nil {
		return raised(StageConf, "fold", err), false
	}
	if b.o.ToolChoice != nil || b.o.Params != nil {
		own := *req
		own.ToolChoice, own.Params = b.o.ToolChoice, b.o.Params
		req = &own
	}
	for i, filter := range b.d.Filters {
		what := filterName(i)
		next, err := guard(func() (*Request, error) { return filter(b.ctx, req) })
		if err != nil {
			return raised(StageFilter, what, err), false
		}
		if next == nil {
			return failed(StageFilter, &Detail{Message: what + ": answered nothing, want a request"}), false
		}
		req = next
	}
	b.req = req.owned()
	b.req.Window = window
	b.req.hide(b.s.k.mask)
	return Outcome{}, true
}

func filterName(i int) string { return fmt.Sprintf("filters[%d]", i+1) }

// price asks what the beat reserves.
func (b *beat) price() (int64, *Outcome) {
	if b.d.Cost == nil {
		return 1, nil
	}
	n, err := guard(func() (int64, error) { return b.d.Cost(b.ctx, b.req) })
	var out Outcome
	switch {
	case err != nil:
		out = raised(StageConf, "cost", err)
	case n < 1:
		out = failed(StageConf, &Detail{Message: fmt.Sprintf("cost: got %d, want a whole number ≥ 1", n)})
	default:
		return n, nil
	}
	return 0, &out
}

// begin reserves the cost and records the request.
func (b *beat) begin() (Outcome, bool) {
	n, out := b.price()
	if b.ctx.Err() != nil {
		return b.stop("beat"), false
	}
	if out != nil {
		return *out, false
	}
	s := b.s
	var next *sentRequest
	var covered bool
	var tag string
	var broken error
	_, err := s.drive(context.WithoutCancel(b.ctx), "beat", barrier, func(st *state) ([]*Event, error) {
		var held, ev *Event
		b.call, b.reserved, b.unit = st.Calls, 0, st.Tag
		if covered, tag, held = st.reserve(n, b.id); !covered {
			held.Beat = ""
			return []*Event{held}, nil
		}
		var evs []*Event
		if held != nil {
			b.reserved = n
			evs = append(evs, held)
		}
		ev, next, broken = s.recipe(b.req, b.id, s.head.Seq+1+int64(len(evs)))
		if broken != nil {
			return nil, nil
		}
		s.tail.minted = b.id
		return append(evs, ev), nil
	})
	switch {
	case err != nil:
		return stateFailed(err), false
	case broken != nil:
		return b.brokenRequest(broken), false
	case !covered:
		return Stopped("budget", tag), false
	}
	s.mu.Lock()
	s.last = next
	s.mu.Unlock()
	return Outcome{}, true
}

// brokenRequest answers that the last function over the request made what is
// none.
func (b *beat) brokenRequest(err error) Outcome {
	if n := len(b.d.Filters); n > 0 {
		return raised(StageFilter, filterName(n-1), err)
	}
	return raised(StageConf, "fold", err)
}

// stop answers why a beat ended before or during its work though nothing
// failed: its deadline, or its caller.
func (b *beat) stop(what string) Outcome {
	if errors.Is(context.Cause(b.ctx), errDeadline) {
		return Stopped("deadline", "")
	}
	return failed(StageCall, &Detail{Kind: string(Cancelled), Message: what + ": " + context.Cause(b.ctx).Error(), Err: context.Cause(b.ctx)})
}

func (b *beat) callModel() (*Answer, error) {
	opts := CallOptions{Beat: b.id, Session: b.s.id, Call: b.call, Deadline: b.o.Deadline, OnDelta: b.o.OnDelta}
	answer, err := guard(func() (*Answer, error) { return b.d.LLM.Call(b.ctx, b.req, opts) })
	if err != nil && !opts.Deadline.IsZero() && !time.Now().Before(opts.Deadline) {
		<-b.ctx.Done() // the model's timer was quicker than the context's
	}
	switch {
	case err == nil && answer == nil:
		return nil, &CallError{Kind: Unknown, Message: "the llm answered nothing"}
	case err != nil && b.ctx.Err() != nil:
		return nil, &CallError{Kind: Cancelled, Message: context.Cause(b.ctx).Error()}
	}
	return answer, err
}

// failCall records why the call gave no answer.
func (b *beat) failCall(err error) Outcome {
	d := &Detail{Kind: string(Unknown), Message: err.Error(), Err: err}
	var ce *CallError
	if errors.As(err, &ce) {
		d.Message = ce.Message
		d.provider(ce)
	}
	if t, ok := err.(Tracer); ok {
		d.Traceback = t.Traceback()
	}
	fields := map[string]any{"error": firstBytes(d.Message, maxResult), "kind": d.Kind, "retryable": d.Retryable}
	if d.RetryAfter > 0 {
		fields["retry_after"] = d.RetryAfter
	}
	if d.Status > 0 {
		fields["status"] = d.Status
	}
	if b.reply != nil { // it was paid for: what could be read of it stays
		fields["answer"] = b.reply.Content
	}
	b.queue = append(b.queue, kernelEvent(LLMCallFailed, b.id, fields))
	if werr := b.write(lazy); werr != nil {
		sd := stateDetail(werr)
		sd.Cause = d.Message
		return failed(StageState, sd)
	}
	if errors.Is(context.Cause(b.ctx), errDeadline) {
		return Stopped("deadline", "")
	}
	return failed(StageCall, d)
}

// finish records the reply, settles, and runs the tools.
func (b *beat) finish() Outcome {
	b.queue = append(b.queue, b.response())
	var conf *Outcome
	if b.d.Settle != nil && b.reserved > 0 {
		conf = b.settle()
	}
	if b.answer.Refused {
		if err := b.write(lazy); err != nil {
			return b.lost(err)
		}
		if conf != nil {
			return *conf
		}
		return Outcome{Status: StatusRefused, Reason: b.reply.RefusalKind, Reply: b.reply}
	}
	var unknown *Outcome
	switch {
	case conf != nil:
		b.shutAll("not_run", "the beat ended before this call ran")
	case !knownStop(b.answer.StopReason):
		unknown = b.unknownStop()
	case b.answer.StopReason == "max_tokens":
		b.shutAll("truncated", "the reply was cut by the output limit before it was complete, so nothing of it ran: answer again, in smaller steps")
	default:
		conf = b.decide()
	}
	if err := b.runTools(); err != nil {
		return b.lost(err)
	}
	switch {
	case conf != nil:
		return *conf
	case unknown != nil:
		return *unknown
	case b.halted:
		return b.stop("tools")
	}
	return Outcome{Status: StatusOK, Reply: b.reply}
}

// lost answers that the reply or a result could not be recorded; the reply
// goes along, for it was paid for.
func (b *beat) lost(err error) Outcome {
	d := stateDetail(err)
	d.Reply = b.reply
	return failed(StageState, d)
}

func (b *beat) unknownStop() *Outcome {
	b.shutAll("not_run", "the reply ended in a way that is not known, so nothing of it ran")
	out := failed(StageCall, &Detail{Kind: string(Unknown), Reply: b.reply,
		Message: fmt.Sprintf("stop reason %q is not one of %v", b.answer.StopReason, StopReasons)})
	return &out
}

func knownStop(reason string) bool {
	return reason == "" || slices.Contains(StopReasons, reason)
}

// settle queues what the beat has cost.
func (b *beat) settle() *Outcome {
	n, err := guard(func() (int64, error) { return b.d.Settle(b.ctx, b.req, b.answer) })
	var out Outcome
	switch {
	case err != nil:
		out = raised(StageConf, "settle", err)
	case n < 0:
		out = failed(StageConf, &Detail{Message: fmt.Sprintf("settle: got %d, want a whole number ≥ 0", n)})
	default:
		st := state{Scope: b.s.scope, Tag: b.unit}
		b.queue = append(b.queue, st.ledgerEvent(BudgetSettled, b.id, map[string]any{"reserved": b.reserved, "amount": n}))
		return nil
	}
	return &out
}

// write records what is queued.
func (b *beat) write(f flush) error {
	evs := b.queue
	if len(evs) == 0 {
		return nil
	}
	_, err := b.s.drive(context.WithoutCancel(b.ctx), "beat", f, func(*state) ([]*Event, error) { return evs, nil })
	if err == nil {
		b.queue = nil
	}
	return err
}

// guard runs a caller's function; a Go panic in it becomes an error.
func guard[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			if e, ok := r.(error); ok {
				err = fmt.Errorf("panic: %w", e)
			}
		}
	}()
	return fn()
}
