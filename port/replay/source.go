package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/knl-run/knl/kernel"
)

// source is one recorded session.
type source struct {
	id      string
	session *kernel.Session
	calls   []*call                    // answered and failed ones, in log order
	results map[string]json.RawMessage // data of the last tool_result of a call id
	open    bool                       // the last request has no answer
	taken   bool                       // a session of the new run plays it
	refused int64                      // what the ledger did not grant behind the last call
	said    json.RawMessage            // the last message of the call that was played last
}

// call is one recorded model call.
type call struct {
	beat   string
	hash   string // of its request; "" when a caller recorded the answer
	failed bool
	data   json.RawMessage // of llm_response or llm_call_failed
	played bool
	sizes  sizes
	was    *kernel.Request // once it was rebuilt
}

// load reads the recorded tree once; r.mu is held.
func (r *Replay) load(ctx context.Context) error {
	if r.tree != nil {
		return nil
	}
	rows, err := r.kernel.Tree(ctx, r.root)
	if err != nil {
		return err
	}
	tree := make([]*source, len(rows))
	for i, row := range rows {
		if tree[i], err = r.read(ctx, row.Session); err != nil {
			return err
		}
	}
	r.tree = tree
	return nil
}

// kinds are what a replay reads.
var kinds = []string{kernel.LLMRequest, kernel.LLMResponse, kernel.LLMCallFailed, kernel.ToolResult, kernel.BudgetReserved, kernel.BudgetRefused}

func (r *Replay) read(ctx context.Context, id string) (*source, error) {
	session, err := r.kernel.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, _, err := session.Scan(ctx, kernel.Where{Kinds: kinds})
	if err != nil {
		return nil, err
	}
	s := &source{id: id, session: session, results: map[string]json.RawMessage{}}
	asked := map[string]*call{} // by beat, while nothing answers them
	for _, row := range rows {
		s.add(row.Event, asked)
	}
	for _, c := range asked {
		s.open = s.open || c.hash != ""
	}
	return s, nil
}

func (s *source) add(ev *kernel.Event, asked map[string]*call) {
	var d struct {
		Hash   string `json:"hash"`
		CallID string `json:"call_id"`
		Amount int64  `json:"amount"`
		Window window `json:"window"`
	}
	_ = json.Unmarshal(ev.Data, &d) // a caller's event may have other types there
	switch ev.Kind {
	case kernel.BudgetRefused:
		s.refused = d.Amount
	case kernel.BudgetReserved:
		clear(asked) // an older one was interrupted
		asked[ev.Beat] = &call{sizes: sizes{reserved: d.Amount}}
	case kernel.LLMRequest:
		if d.Hash != "" {
			c := &call{hash: d.Hash, sizes: sizes{window: d.Window}}
			if paid := asked[ev.Beat]; paid != nil {
				c.sizes.reserved = paid.sizes.reserved
			}
			clear(asked)
			asked[ev.Beat] = c
		}
	case kernel.ToolResult:
		s.results[d.CallID] = ev.Data
	default:
		c := asked[ev.Beat]
		if c == nil {
			c = &call{}
		}
		c.beat, c.failed, c.data = ev.Beat, ev.Kind == kernel.LLMCallFailed, ev.Data
		s.calls, s.refused = append(s.calls, c), 0
		delete(asked, ev.Beat)
	}
}

// request rebuilds what a recorded call asked.
func (s *source) request(ctx context.Context, c *call) (*kernel.Request, error) {
	if c.hash == "" || c.was != nil {
		return c.was, nil
	}
	was, err := s.session.Request(ctx, c.beat)
	c.was = was
	return was, err
}

// next answers the first call that was not played, or nil.
func (s *source) next() *call {
	for _, c := range s.calls {
		if !c.played {
			return c
		}
	}
	return nil
}

// callData is the data of llm_response and llm_call_failed.
type callData struct {
	Content    json.RawMessage `json:"content"`
	StopReason string          `json:"stop_reason"`
	Usage      struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		Thinking   int64 `json:"thinking_tokens"`
		CacheRead  int64 `json:"cache_read_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
	} `json:"usage"`
	Refusal *struct {
		Kind   string `json:"kind"`
		Detail string `json:"detail"`
	} `json:"refusal"`
	Error      string  `json:"error"`
	Kind       string  `json:"kind"`
	Retryable  bool    `json:"retryable"`
	RetryAfter float64 `json:"retry_after"`
	Status     int     `json:"status"`
}

// outcome answers what the call came to; its text is shown as one delta.
func (c *call) outcome(show func(kernel.Delta)) (*kernel.Answer, error) {
	var d callData
	if err := json.Unmarshal(c.data, &d); err != nil {
		return nil, unknown("replay: the recorded answer of beat %s cannot be read: %s", c.beat, err)
	}
	if c.failed {
		return nil, &kernel.CallError{Kind: kernel.CallKind(d.Kind), Message: d.Error, RetryAfter: d.RetryAfter, Status: d.Status, Retry: &d.Retryable}
	}
	u := d.Usage
	a := &kernel.Answer{Content: d.Content, StopReason: d.StopReason,
		Usage: kernel.Usage{Input: u.Input, Output: u.Output, Thinking: u.Thinking, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}}
	if d.Refusal != nil {
		a.Refused, a.RefusalKind, a.RefusalDetail = true, d.Refusal.Kind, d.Refusal.Detail
	}
	if show != nil {
		stream(d.Content, show)
	}
	return a, nil
}

func stream(content json.RawMessage, show func(kernel.Delta)) {
	var blocks []struct{ Type, Text, Thinking string }
	_ = json.Unmarshal(content, &blocks) // what is no block has nothing to show
	for _, b := range blocks {
		if text := b.Text + b.Thinking; (b.Type == "text" || b.Type == "thinking") && text != "" {
			show(kernel.Delta{Kind: b.Type, Text: text})
		}
	}
}

// plain lists the members of a tool_result that are no mark.
var plain = map[string]bool{"call_id": true, "ok": true, "result": true, "rerun": true}

// toolOutcome answers a tool_result as the handler of its call would have.
func toolOutcome(data json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("replay: a recorded result cannot be read: %w", err)
	}
	if string(fields["ok"]) == "true" {
		return fields["result"], nil
	}
	e := &kernel.ToolError{}
	if json.Unmarshal(fields["result"], &e.Text) != nil {
		e.Text = strings.TrimSpace(string(fields["result"]))
	}
	for name, v := range fields {
		if !plain[name] && string(v) == "true" {
			e.Mark = name
		}
	}
	return nil, e
}
