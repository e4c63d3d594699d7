package kernel

import (
	"context"
	"encoding/json"
	"time"
)

// LLM answers one request. An adapter of a provider implements it; see package
// port. Call must honour ctx, make one attempt, and answer either an Answer or
// an error, which is a *CallError where the adapter can say more than
// "unknown". It must not keep or change req.
type LLM interface {
	Call(ctx context.Context, req *Request, opts CallOptions) (*Answer, error)
}

// LLMFunc makes a function an LLM.
type LLMFunc func(ctx context.Context, req *Request, opts CallOptions) (*Answer, error)

// Call calls f.
func (f LLMFunc) Call(ctx context.Context, req *Request, opts CallOptions) (*Answer, error) {
	return f(ctx, req, opts)
}

// CallOptions is what a call is told besides its request.
type CallOptions struct {
	Beat     string
	Session  string
	Deadline time.Time   // zero: none
	OnDelta  func(Delta) // nil: nobody listens; called from the calling goroutine
}

// Delta is a piece of a streamed answer, for display only: what counts is the
// Answer.
type Delta struct {
	Kind string // "text" or "thinking"
	Text string
}

// Request is what a model is asked, in the neutral form: messages of content
// blocks as the Anthropic Messages API spells them; adapters translate. Every
// raw value is canonical JSON (see [Canonical]).
type Request struct {
	Messages   []json.RawMessage          // objects {"content": text | [block…], "role": "user"|"assistant"}
	System     json.RawMessage            // text or blocks; nil: none
	Tools      []json.RawMessage          // objects {"description"?, "input_schema"?, "name"}, sorted by name
	HasTools   bool                       // the device has a tools map, perhaps an empty one
	ToolChoice json.RawMessage            // nil: the provider's default
	Params     json.RawMessage            // object of sampling parameters; nil: none
	Extra      map[string]json.RawMessage // what a filter added; kept, hashed, and the adapter's to read
}

// Answer is what a model said.
type Answer struct {
	Refused       bool            // the model or a filter declined; no tool of it runs
	RefusalKind   string          // "model" or "content_filter", when Refused
	RefusalDetail string          // the provider's words, when it gave any
	Content       json.RawMessage // array of blocks {"type": "text"|"tool_use"|…}
	Usage         Usage
	StopReason    string // one of StopReasons, or "" when the provider gave none
}

// Usage counts the tokens of one call in disjoint counters.
type Usage struct {
	Input      int64 // prompt tokens that were neither read from nor written to a cache
	Output     int64 // completion tokens, thinking included
	Thinking   int64 // those of Output that were thinking
	CacheRead  int64
	CacheWrite int64
}

// StopReasons lists the stop reasons that end a call properly. Another word is
// an error of kind unknown: an unknown ending is never taken for a good one.
var StopReasons = []string{"end_turn", "tool_use", "stop_sequence", "max_tokens", "pause_turn", "refusal"}
