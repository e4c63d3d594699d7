package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/knl-run/knl/kernel/store"
)

// Resume says how a session is taken up again.
type Resume struct {
	Grant *Grant          // added to what is left
	Meta  json.RawMessage // labels of the driver_changed event
}

// Interrupted is a beat that its driver did not live to end.
type Interrupted struct {
	Beat      string
	Stage     string // "call": no answer was recorded; "tools": calls were open
	OpenCalls []OpenCall
}

// OpenCall is a tool call without a result of its own.
type OpenCall struct {
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Started bool   `json:"started"` // its handler may have run
}

// Resume takes over the driving of a session: in one write it raises the
// driver epoch, so that every older handle is fenced, closes the calls of a
// beat that was interrupted, and adds a grant. Nothing is run again; see
// [Rerun]. A session that has ended cannot be resumed.
func (k *Kernel) Resume(ctx context.Context, id string, r Resume) (*Session, error) {
	const method = "resume"
	if r.Grant != nil {
		if err := whole(method, r.Grant.Amount); err != nil {
			return nil, err
		}
	}
	meta, err := k.stampMeta(r.Meta)
	if err != nil {
		return nil, faultf(Validation, method, "meta: %s", err)
	}
	var p *part
	err = again(ctx, method, func() error {
		head, st, err := k.load(ctx, method, id)
		switch {
		case err != nil:
			return err
		case st.Closed > 0:
			return faultf(Closed, method, "session %s has ended: open a new one", id)
		case st.Owner == "system":
			return faultf(Validation, method, "session %s is owned by system and not resumed", id)
		}
		p = &part{id: id, head: head, st: st}
		changed := kernelEvent(DriverChanged, "", map[string]any{"epoch": st.Epoch + 1})
		changed.Meta = meta
		p.events = []*Event{changed}
		closing, err := k.interruption(ctx, id, &st)
		if err != nil {
			return err
		}
		p.events = append(p.events, closing...)
		if r.Grant != nil {
			p.events = append(p.events, r.Grant.event(st.Scope))
		}
		return k.apply(ctx, barrier, p)
	})
	if err != nil {
		return nil, err
	}
	return k.handle(id, p.head, p.st, p.events), nil
}

// interruption answers the events that record that the open beat of a session
// was interrupted: a result for each open call, and beat_interrupted.
func (k *Kernel) interruption(ctx context.Context, id string, st *state) ([]*Event, error) {
	beat := st.Open
	if beat == "" {
		return nil, nil
	}
	first, err := k.store.FindGroup(ctx, id, beat)
	if err != nil {
		return nil, err
	}
	evs, err := k.events(ctx, id, first, 0)
	if err != nil {
		return nil, err
	}
	stage, open := openCalls(slices.DeleteFunc(evs, func(ev *Event) bool { return ev.Beat != beat }))
	var out []*Event
	for _, c := range open {
		out = append(out, kernelEvent(ToolResult, beat, map[string]any{
			"call_id": c.CallID, "ok": false, "interrupted": true, "result": interruptionOf(c)}))
	}
	if open == nil {
		open = []OpenCall{}
	}
	return append(out, kernelEvent(BeatInterrupted, beat, map[string]any{
		"beat": beat, "stage": stage, "open_calls": open})), nil
}

func interruptionOf(c OpenCall) string {
	if c.Started {
		return interruptedText
	}
	return "the run ended before this call was started: it did not take effect"
}

// openCalls answers how far a beat came and which of its calls have no result.
func openCalls(events []*Event) (stage string, open []OpenCall) {
	stage = "call"
	var order []string
	names, started, closed := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, ev := range events {
		switch ev.Kind {
		case LLMResponse:
			stage, order = "tools", ev.fold().calls
			_ = eachItem(fieldOf(ev.Data, "content"), func(_ int, b json.RawMessage) {
				names[textOf(fieldOf(b, "id"))] = textOf(fieldOf(b, "name"))
			})
		case ToolCall: // the first run, or one more
			id := textOf(fieldOf(ev.Data, "call_id"))
			started[id], closed[id] = true, false
		case ToolResult:
			closed[ev.fold().callID] = true
		}
	}
	for _, id := range order {
		if !closed[id] {
			open = append(open, OpenCall{CallID: id, Name: names[id], Started: started[id]})
		}
	}
	return stage, open
}

// Interrupted answers the beat that was interrupted when it is still the last
// one, with the calls that nothing has run again since; nil when there is none.
func (s *Session) Interrupted(ctx context.Context) (*Interrupted, error) {
	last, err := s.begunLast(ctx)
	if err != nil || last == nil {
		return nil, err
	}
	var in *Interrupted
	for _, ev := range last.Events {
		switch ev.Kind {
		case BeatInterrupted:
			var d struct {
				Stage string     `json:"stage"`
				Open  []OpenCall `json:"open_calls"`
			}
			if err := json.Unmarshal(ev.Data, &d); err != nil {
				return nil, wrap("interrupted", fmt.Errorf("record %d: %w: %w", ev.Seq, err, store.ErrCorrupt))
			}
			if in == nil {
				in = &Interrupted{Beat: ev.Beat, Stage: d.Stage}
			}
			for _, c := range d.Open {
				in.drop(c.CallID)
				in.OpenCalls = append(in.OpenCalls, c)
			}
		case ToolResult:
			if fd := ev.fold(); fd.rerun {
				in.drop(fd.callID)
			}
		}
	}
	return in, nil
}

// begunLast answers the newest beat that the kernel began, nil when there is none.
// A caller may have put the label of another on events since.
func (s *Session) begunLast(ctx context.Context) (*BeatRecord, error) {
	for n := 1; ; n *= 8 {
		beats, _, err := s.Beats(ctx, n, false)
		if err != nil {
			return nil, err
		}
		for i := len(beats) - 1; i >= 0; i-- {
			if beats[i].begun() {
				return &beats[i], nil
			}
		}
		if len(beats) < n {
			return nil, nil
		}
	}
}

func (r *BeatRecord) begun() bool {
	return slices.ContainsFunc(r.Events, func(ev *Event) bool {
		return ev.Kind == LLMRequest && fieldOf(ev.Data, "hash") != nil
	})
}

func (in *Interrupted) drop(id string) {
	if in == nil {
		return
	}
	for i, c := range in.OpenCalls {
		if c.CallID == id {
			in.OpenCalls = append(in.OpenCalls[:i:i], in.OpenCalls[i+1:]...)
			return
		}
	}
}

// Rerun runs a call of the interrupted beat again and records its result in
// place of the interruption. Its tool must be declared idempotent, or the call
// must never have been started. The Outcome's Reply has the one call.
func Rerun(ctx context.Context, s *Session, d *Device, callID string) Outcome {
	b := &beat{s: s, d: d}
	if out, ok := b.enter(ctx, "rerun"); !ok {
		return out
	}
	defer b.leave()
	err := b.ready("rerun")
	var c *Call
	if err == nil {
		c, err = b.interruptedCall(callID)
	}
	switch {
	case b.ctx.Err() != nil:
		return b.stop("rerun")
	case err != nil:
		return stateFailed(err)
	}
	return b.rerun(c)
}

// interruptedCall finds a call that may be run again.
func (b *beat) interruptedCall(callID string) (*Call, error) {
	const method = "rerun"
	in, err := b.s.Interrupted(b.ctx)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return nil, faultf(Validation, method, "the last beat of session %s was not interrupted", b.s.id)
	}
	b.id = in.Beat
	for _, open := range in.OpenCalls {
		if open.CallID != callID {
			continue
		}
		tool, ok := b.d.Tools[open.Name]
		switch {
		case !ok:
			return nil, faultf(Validation, method, "call %s is of tool %q, which the device does not have", callID, open.Name)
		case open.Started && !tool.Idempotent:
			return nil, faultf(Refused, method, "call %s of %q may have taken effect already and the tool is not declared idempotent", callID, open.Name)
		}
		return b.recordedCall(open)
	}
	return nil, faultf(Validation, method, "beat %s has no open call %q", in.Beat, callID)
}

// recordedCall reads a call's arguments back from its reply.
func (b *beat) recordedCall(open OpenCall) (*Call, error) {
	last, err := b.s.begunLast(b.ctx)
	if err != nil || last == nil {
		return nil, err
	}
	for _, ev := range last.Events {
		if ev.Kind != LLMResponse {
			continue
		}
		var c *Call
		_ = eachItem(fieldOf(ev.Data, "content"), func(_ int, block json.RawMessage) {
			if textOf(fieldOf(block, "id")) == open.CallID {
				c = &Call{ID: open.CallID, Name: open.Name, Args: fieldOf(block, "input"), Block: block}
			}
		})
		if c != nil {
			return c, nil
		}
	}
	return nil, wrap("rerun", errors.Join(fmt.Errorf("call %s is not in its reply", open.CallID), store.ErrCorrupt))
}

func (b *beat) rerun(c *Call) Outcome {
	b.reply = &Reply{Beat: b.id, Content: json.RawMessage("[]"), Tools: []ToolRun{}}
	if why, bad := b.d.refuses(c); bad {
		return failed(StageConf, &Detail{Message: "rerun: " + why.text})
	}
	call := b.callEvent(c)
	call.Data = withField(call.Data, "rerun", json.RawMessage("true"))
	b.queue = []*Event{call}
	if err := b.write(barrier); err != nil {
		return stateFailed(err)
	}
	result, err := b.d.handle(b.ctx, b.s, b.id, c)
	if b.unfinished(err) {
		if werr := b.interrupt("rerun"); werr != nil {
			return b.lost(werr)
		}
		return b.stop("rerun")
	}
	ev, run := b.resultEvent(c, result, err, map[string]any{"rerun": true})
	b.queue, b.reply.Tools = []*Event{ev}, []ToolRun{run}
	if err := b.write(lazy); err != nil {
		return b.lost(err)
	}
	return Outcome{Status: StatusOK, Reply: b.reply}
}
