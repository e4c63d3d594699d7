package kernel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	Call     int         // model calls this session made before this one, failed ones included
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

	// Window is what the fold says of the part of the log that it left out: an
	// object of at most 4 KiB, recorded beside the request and no part of it. Only
	// that of the fold's own answer counts; nil: it says nothing.
	Window json.RawMessage
}

// requestNames lists the members that a request has of its own.
var requestNames = []string{"messages", "tools", "system", "tool_choice", "params"}

// owned answers r with lists of its own and no space around its values: what
// made r may use its lists again. The bytes of the values are shared, and
// nobody changes them.
func (r *Request) owned() *Request {
	own := *r
	own.Messages, own.Tools, own.Extra = trimmed(r.Messages), trimmed(r.Tools), maps.Clone(r.Extra)
	own.System, own.ToolChoice, own.Params = trim(r.System), trim(r.ToolChoice), trim(r.Params)
	for name, v := range own.Extra {
		own.Extra[name] = trim(v)
	}
	return &own
}

func trimmed(items []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	for i, it := range items {
		out[i] = trim(it)
	}
	return out
}

// trim answers nil for a value that has no bytes.
func trim(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return nil
	}
	return raw
}

// check says why r is no request, apart from its messages.
func (r *Request) check(rest json.RawMessage) error {
	for name, v := range r.Extra {
		switch {
		case slices.Contains(requestNames, name):
			return fmt.Errorf("request.%s: got it twice, want it as the request's own and not among Extra", name)
		case v == nil:
			return fmt.Errorf("request.%s: got nothing, want a JSON value", name)
		}
	}
	if r.Params != nil && r.Params[0] != '{' {
		return fmt.Errorf("request.params: got %s, want an object", typeOf(r.Params))
	}
	if err := strict(rest, deepest); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	return nil
}

// maxWindow bounds what a fold says of the log it left out. It is recorded with
// every request, so it must not grow with the log.
const maxWindow = 4 << 10

// admitWindow answers a fold's Window as it is recorded.
func admitWindow(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	if len(raw) > maxWindow {
		return nil, fmt.Errorf("window: got %d bytes, want at most %d: name the newest beats that were left out, and say that there are more", len(raw), maxWindow)
	}
	clean, _, err := admit(raw)
	if err != nil {
		return nil, fmt.Errorf("window: %w", err)
	}
	return clean, nil
}

// deepest is the nesting that the reader of stored requests takes.
const deepest = 10000

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

// fields answers the members of the request besides its messages.
func (r *Request) fields() map[string]json.RawMessage {
	f := maps.Clone(r.Extra)
	if f == nil {
		f = map[string]json.RawMessage{}
	}
	if r.System != nil {
		f["system"] = r.System
	}
	if r.HasTools {
		f["tools"] = joinArray(r.Tools)
	}
	if r.ToolChoice != nil {
		f["tool_choice"] = r.ToolChoice
	}
	if r.Params != nil {
		f["params"] = r.Params
	}
	return f
}

// Canonical answers the request as one JSON object with sorted keys: the same
// log gives the same bytes in any process.
func (r *Request) Canonical() json.RawMessage {
	f := r.fields()
	f["messages"] = joinArray(r.Messages)
	return appendObject(nil, f)
}

// Size answers the length of Canonical in bytes, without making it.
func (r *Request) Size() int {
	n := len(appendObject(nil, r.fields())) + len(`"messages":[],`) + max(0, len(r.Messages)-1)
	for _, m := range r.Messages {
		n += len(m)
	}
	if n > 0 && len(r.fields()) == 0 {
		n-- // no comma between members
	}
	return n
}

// Hash answers the SHA-256 of Canonical with each message in it replaced by the
// SHA-256 of its own bytes, in hex and in quotes. So what a beat hashes is what
// is new in its request, not the whole conversation.
func (r *Request) Hash() [32]byte {
	sums := make([]sum, len(r.Messages))
	for i, m := range r.Messages {
		sums[i] = sha256.Sum256(m)
	}
	return r.hash(r.fields(), sums)
}

// sum is the SHA-256 of a message.
type sum = [sha256.Size]byte

// hash is Hash over members and sums that are made already.
func (r *Request) hash(fields map[string]json.RawMessage, sums []sum) (of sum) {
	h := sha256.New()
	put := func(b []byte) { _, _ = h.Write(b) } // it never fails
	sep := byte('{')
	for _, name := range slices.Sorted(maps.Keys(withMessages(fields))) {
		put(append(appendQuoted([]byte{sep}, name), ':'))
		sep = ','
		if name == "messages" {
			put(quotedSums(sums))
		} else {
			put(fields[name])
		}
	}
	put([]byte{'}'})
	h.Sum(of[:0])
	return of
}

// quotedSums answers sums as a JSON array.
func quotedSums(sums []sum) []byte {
	b := append(make([]byte, 0, 2+len(sums)*(3+2*sha256.Size)), '[')
	for i := range sums {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(hex.AppendEncode(append(b, '"'), sums[i][:]), '"')
	}
	return append(b, ']')
}

// withMessages answers members with a place for the messages among them.
func withMessages(fields map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(fields)
	all["messages"] = nil
	return all
}

// ParseRequest reads a request back from its JSON object, as Canonical writes
// it or as a script's fold or filter answers it.
func ParseRequest(raw json.RawMessage) (*Request, error) {
	fields, err := objectFields(raw)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	r := &Request{}
	if fields["messages"] == nil {
		return nil, errors.New("request.messages: got nothing, want an array")
	}
	if r.Messages, err = messageList(fields["messages"]); err != nil {
		return nil, err
	}
	if tools := fields["tools"]; tools != nil {
		r.HasTools = true
		if err := eachItem(tools, func(_ int, v json.RawMessage) { r.Tools = append(r.Tools, v) }); err != nil {
			return nil, fmt.Errorf("request.tools: %w", err)
		}
	}
	r.System, r.ToolChoice, r.Params = fields["system"], fields["tool_choice"], fields["params"]
	for _, known := range requestNames {
		delete(fields, known)
	}
	if len(fields) > 0 {
		r.Extra = fields
	}
	return r, nil
}

func messageList(raw json.RawMessage) (out []json.RawMessage, err error) {
	if len(raw) == 2 && raw[0] == '{' { // an empty table of a script
		return nil, nil
	}
	bad := error(nil)
	err = eachItem(raw, func(i int, m json.RawMessage) {
		if m[0] != '{' && bad == nil {
			bad = fmt.Errorf("request.messages[%d]: got %s, want an object", i, typeOf(m))
		}
		out = append(out, m)
	})
	if err != nil {
		return nil, fmt.Errorf("request.messages: %w", err)
	}
	return out, bad
}
