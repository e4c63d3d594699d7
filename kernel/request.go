package kernel

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/knl-run/knl/kernel/store"
)

// A request repeats nearly all of the request before it, and what is new in it
// mostly stands in the log already. So llm_request does not hold the request
// but how to make it again:
//
//	hash      of the request, hex; see Request.Hash
//	base      seq of the request this one is written against; absent: none
//	messages  list of {"keep":[from,count]} of the base's messages,
//	          {"events":[seq,…]} the message that rule 1 makes of these events,
//	          {"message":{…}} itself
//	rule      1: the fold's message of one msg_user, one llm_response, or the
//	          tool_results of one reply
//	rest      {"seq":n} another llm_request that holds the same members besides
//	          messages, or {"fields":{…}} themselves
//	window    what the fold said of the log it left out; absent: nothing
//
//	I5 the request rebuilt from its record has the recorded hash
const foldRule = 1

// ruleMessage is rule 1.
func ruleMessage(events []*Event) json.RawMessage {
	if len(events) == 1 {
		return events[0].fold().message
	}
	b := []byte(`{"content":[`)
	for i, ev := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, ev.fold().block...)
	}
	return append(b, `],"role":"user"}`...)
}

// Request rebuilds the request of a beat whole and verifies its hash.
func (s *Session) Request(ctx context.Context, beat string) (*Request, error) {
	const method = "request"
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return nil, wrap(method, err)
	}
	ev, err := s.requestOf(ctx, beat)
	if err != nil {
		return nil, wrap(method, err)
	}
	if ev == nil {
		return nil, faultf(Validation, method, "session %s has no request of a beat %q", s.id, beat)
	}
	req, err := s.rebuild(ctx, ev)
	return req, wrap(method, err)
}

// requestOf finds the request of a beat; nil when there is none.
func (s *Session) requestOf(ctx context.Context, beat string) (*Event, error) {
	first, err := s.k.store.FindGroup(ctx, s.id, beat)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for r, err := range s.k.store.Records(ctx, s.id, first, s.head.Seq) {
		if err != nil {
			return nil, err
		}
		if r.Group != beat {
			continue
		}
		ev, err := s.k.event(ctx, r)
		if err != nil {
			return nil, err
		}
		if ev.Kind == LLMRequest && fieldOf(ev.Data, "hash") != nil {
			return ev, nil
		}
	}
	return nil, nil
}

// recipeData is llm_request's data as rebuild reads it.
type recipeData struct {
	Hash     string `json:"hash"`
	Base     int64  `json:"base"`
	Rule     int    `json:"rule"`
	Messages []struct {
		Keep    []int           `json:"keep"`
		Events  []int64         `json:"events"`
		Message json.RawMessage `json:"message"`
	} `json:"messages"`
	Rest struct {
		Seq    int64           `json:"seq"`
		Fields json.RawMessage `json:"fields"`
	} `json:"rest"`
}

func readRecipe(ev *Event) (*recipeData, error) {
	d := &recipeData{}
	if err := json.Unmarshal(ev.Data, d); err != nil {
		return nil, fmt.Errorf("record %d: request: %w: %w", ev.Seq, err, store.ErrCorrupt)
	}
	if d.Rule != foldRule {
		return nil, fmt.Errorf("record %d: request is written by rule %d, this knl knows rule %d: use a newer knl", ev.Seq, d.Rule, foldRule)
	}
	return d, nil
}

// rebuild walks back to a request without a base, or to the one rebuilt last,
// and makes each one up to ev.
func (s *Session) rebuild(ctx context.Context, ev *Event) (*Request, error) {
	var chain []*recipeData
	var messages []json.RawMessage
	for at := ev; ; {
		d, err := readRecipe(at)
		if err != nil {
			return nil, err
		}
		chain = append(chain, d)
		if d.Base == 0 || d.Base >= at.Seq {
			break
		}
		if d.Base == s.cookedSeq {
			messages = s.cooked
			break
		}
		if at, err = s.requestAt(ctx, d.Base); err != nil {
			return nil, err
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		next, err := s.cook(ctx, chain[i], messages)
		if err != nil {
			return nil, err
		}
		messages = next
	}
	req, err := s.finish(ctx, ev, chain[0], messages)
	if err == nil {
		s.cookedSeq, s.cooked = ev.Seq, messages
	}
	return req, err
}

func (s *Session) requestAt(ctx context.Context, seq int64) (*Event, error) {
	ev, err := s.event(ctx, seq)
	if err != nil {
		return nil, err
	}
	if ev == nil || ev.Kind != LLMRequest {
		return nil, fmt.Errorf("record %d: want an llm_request: %w", seq, store.ErrCorrupt)
	}
	return ev, nil
}

// cook makes the messages of one recipe from those of its base.
func (s *Session) cook(ctx context.Context, d *recipeData, base []json.RawMessage) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for i, op := range d.Messages {
		switch {
		case op.Message != nil:
			out = append(out, op.Message)
		case len(op.Keep) == 2 && op.Keep[0] >= 0 && op.Keep[1] >= 0 && op.Keep[0]+op.Keep[1] <= len(base):
			out = append(out, base[op.Keep[0]:op.Keep[0]+op.Keep[1]]...)
		case len(op.Events) > 0:
			evs := make([]*Event, len(op.Events))
			for j, seq := range op.Events {
				ev, err := s.event(ctx, seq)
				if err != nil {
					return nil, err
				}
				if ev == nil {
					return nil, fmt.Errorf("record %d is missing: %w", seq, store.ErrCorrupt)
				}
				evs[j] = ev
			}
			out = append(out, ruleMessage(evs))
		default:
			return nil, fmt.Errorf("request messages[%d] cannot be read: %w", i, store.ErrCorrupt)
		}
	}
	return out, nil
}

func (s *Session) finish(ctx context.Context, ev *Event, d *recipeData, messages []json.RawMessage) (*Request, error) {
	rest := d.Rest.Fields
	if rest == nil {
		holder, err := s.requestAt(ctx, d.Rest.Seq)
		if err != nil {
			return nil, err
		}
		h, err := readRecipe(holder)
		if err != nil {
			return nil, err
		}
		rest = h.Rest.Fields
	}
	fields, err := objectFields(rest)
	if err != nil {
		return nil, fmt.Errorf("record %d: request rest: %w: %w", ev.Seq, err, store.ErrCorrupt)
	}
	fields["messages"] = joinArray(messages)
	req, err := ParseRequest(appendObject(nil, fields))
	if err != nil {
		return nil, fmt.Errorf("record %d: %w: %w", ev.Seq, err, store.ErrCorrupt)
	}
	if hash := req.Hash(); hex.EncodeToString(hash[:]) != d.Hash {
		return nil, fmt.Errorf("record %d: rebuilt request has hash %x, want %.12s: %w", ev.Seq, hash[:6], d.Hash, store.ErrCorrupt)
	}
	return req, nil
}
