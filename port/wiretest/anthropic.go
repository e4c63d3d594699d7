package wiretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"

	"github.com/knl-run/knl/port"
)

// messagesKeys lists what a Messages body may hold in the version of the wire
// that the official client speaks. The knobs of sampling are none of it.
var messagesKeys = words("cache_control container diagnostics inference_geo max_tokens messages metadata model output_config service_tier speed stop_sequences stream system thinking tool_choice tools")

// samplingKeys come on top in the versions of the wire before.
var samplingKeys = words("temperature top_k top_p")

// countKeys lists what a body of count_tokens may hold.
var countKeys = words("cache_control messages model output_config speed system thinking tool_choice tools")

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.Fields(s) {
		out[word] = true
	}
	return out
}

func mountAnthropic(s *Server, mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	mux.HandleFunc("GET /v1/models", s.list)
	mux.HandleFunc("GET /v1/models/{id}", s.one)
}

// messages answers one call of the Messages API.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	target := s.target(port.Anthropic)
	req, ok := s.keep(r, func(body []byte) error {
		if err := known(body, messagesKeys, older(r, body)); err != nil {
			return err
		}
		return port.Check(target, body)
	})
	switch {
	case !ok:
		return
	case refusedAnthropic(s, w, r, req):
		return
	}
	var in struct {
		Model  string
		Stream bool
	}
	_ = json.Unmarshal(req.Body, &in)
	reply, ok := s.next(r, req)
	switch {
	case !ok:
		anthropicFault(s, w, &Reply{}, http.StatusInternalServerError, "api_error", "no reply is left")
	case reply.Raw != "":
		s.whole(w, reply, max(reply.Status, http.StatusOK), []byte(reply.Raw))
	case reply.failed(), reply.Error != "" && !in.Stream:
		anthropicFault(s, w, reply, max(reply.Status, http.StatusOK), reply.Error, reply.Say)
	case in.Stream:
		s.streamMessage(s.open(w, r, reply), in.Model)
	default:
		s.whole(w, reply, http.StatusOK, marshal(message(reply, in.Model)))
	}
}

// older answers the keys that the version a request names still has, and that a model
// of another provider takes in every version.
func older(r *http.Request, body []byte) map[string]bool {
	var in struct{ Model string }
	_ = json.Unmarshal(body, &in)
	if r.Header.Get("anthropic-version") < "2026-10-21" || !strings.Contains(in.Model, "claude") {
		return samplingKeys
	}
	return nil
}

// known refuses a key that is in none of keys.
func known(body []byte, keys ...map[string]bool) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return fmt.Errorf("body: not JSON: %w", err)
	}
	var strange []string
	for key := range top {
		found := false
		for _, k := range keys {
			found = found || k[key]
		}
		if !found {
			strange = append(strange, key)
		}
	}
	if len(strange) > 0 {
		sort.Strings(strange)
		return fmt.Errorf("%s: extra inputs are not permitted", strange[0])
	}
	return nil
}

// refusedAnthropic answers a call without a key, or with a body that breaks a
// rule, as the provider does.
func refusedAnthropic(s *Server, w http.ResponseWriter, r *http.Request, req Request) bool {
	switch {
	case r.Header.Get("anthropic-version") == "":
		anthropicFault(s, w, &Reply{}, http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
	case r.Header.Get("x-api-key") == "" && r.Header.Get("authorization") == "":
		anthropicFault(s, w, &Reply{}, http.StatusUnauthorized, "authentication_error", "x-api-key header is required")
	case req.Fault != nil:
		anthropicFault(s, w, &Reply{}, http.StatusBadRequest, "invalid_request_error", req.Fault.Error())
	default:
		return false
	}
	return true
}

// fault is the body of a failure.
func fault(kind, message string) map[string]any {
	return map[string]any{"type": "error", "request_id": "req_1", "error": map[string]any{"type": kind, "message": message}}
}

func anthropicFault(s *Server, w http.ResponseWriter, r *Reply, status int, kind, message string) {
	s.whole(w, r, status, marshal(fault(kind, message)))
}

// message is a whole answer.
func message(r *Reply, model string) map[string]any {
	content := make([]any, len(r.Blocks))
	for i, b := range r.Blocks {
		content[i] = b.anthropic()
	}
	return map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": r.anthropicStop(), "stop_sequence": nil, "stop_details": r.stopDetails(), "usage": r.Usage.orSome().anthropic(),
	}
}

func (r *Reply) anthropicStop() string {
	switch {
	case r.Stop != "":
		return r.Stop
	case r.Refuse != "":
		return "refusal"
	case r.calls():
		return "tool_use"
	}
	return "end_turn"
}

// stopDetails says why a model declined; Say is the explanation of a classifier.
func (r *Reply) stopDetails() any {
	if r.Refuse != "" {
		return map[string]any{"type": "refusal", "category": nil, "explanation": r.Refuse}
	}
	if r.Stop != "refusal" || r.Say == "" {
		return nil
	}
	return map[string]any{"type": "refusal", "category": "cyber", "explanation": r.Say}
}

// anthropic answers a block as a whole answer holds it. A call whose input is
// no JSON stands there as text, which is a lie that no client survives unless
// it looks.
func (b *Block) anthropic() any {
	switch {
	case b.Raw != nil:
		return b.Raw
	case b.Thinking != "" || b.Signature != "":
		return map[string]any{"type": "thinking", "thinking": b.Thinking, "signature": b.Signature}
	case b.Name != "":
		out := map[string]any{"type": "tool_use", "name": b.Name, "input": json.RawMessage(b.Input), "caller": map[string]any{"type": "direct"}}
		if b.ID != "" {
			out["id"] = b.ID
		}
		if b.Input == "" {
			out["input"] = map[string]any{}
		} else if !json.Valid([]byte(b.Input)) {
			out["input"] = b.Input
		}
		return out
	}
	return map[string]any{"type": "text", "text": b.Text, "citations": nil}
}

func (u Usage) anthropic() map[string]any {
	return map[string]any{
		"input_tokens": u.Input, "output_tokens": u.Output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
		"output_tokens_details": map[string]any{"thinking_tokens": u.Thinking}, "service_tier": "standard",
	}
}

// streamMessage answers a call as the provider streams it.
func (s *Server) streamMessage(st *stream, model string) {
	r := st.reply
	start := message(&Reply{Usage: r.Usage}, model)
	start["stop_reason"] = nil
	usage := r.Usage.orSome().anthropic()
	usage["output_tokens"], usage["output_tokens_details"] = 1, nil
	start["usage"] = usage
	st.event("message_start", map[string]any{"message": start})
	st.event("ping", map[string]any{})
	for i := range r.Blocks {
		st.block(i, &r.Blocks[i])
	}
	switch {
	case r.Never:
		st.forever("ping", marshal(map[string]any{"type": "ping"}))
		return
	case r.Error != "":
		st.send("error", marshal(fault(r.Error, r.Say)))
		return
	case r.Quiet:
		return
	}
	delta := map[string]any{"stop_reason": r.anthropicStop(), "stop_sequence": nil, "stop_details": r.stopDetails()}
	st.event("message_delta", map[string]any{"delta": delta, "usage": r.Usage.orSome().anthropic()})
	st.event("message_stop", map[string]any{})
}

// event sends data under the name that is its type too.
func (st *stream) event(name string, data map[string]any) {
	data["type"] = name
	st.send(name, marshal(data))
}

// block sends the events of one block.
func (st *stream) block(i int, b *Block) {
	start, deltas := b.anthropic(), []map[string]any(nil)
	switch {
	case b.Raw != nil:
	case b.Thinking != "" || b.Signature != "":
		start = map[string]any{"type": "thinking", "thinking": "", "signature": ""}
		for _, piece := range st.reply.chunks(b.Thinking) {
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": piece})
		}
		deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": b.Signature})
	case b.Name != "":
		start.(map[string]any)["input"] = map[string]any{}
		for _, piece := range st.reply.chunks(b.Input) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
	default:
		start = map[string]any{"type": "text", "text": ""}
		for _, piece := range st.reply.chunks(b.Text) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": piece})
		}
	}
	st.event("content_block_start", map[string]any{"index": i, "content_block": start})
	for _, d := range deltas {
		st.event("content_block_delta", map[string]any{"index": i, "delta": d})
	}
	st.event("content_block_stop", map[string]any{"index": i})
}

// countTokens answers what [Server.Counts] set.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	target := s.target(port.Anthropic)
	req, ok := s.keep(r, func(body []byte) error {
		if err := known(body, countKeys); err != nil {
			return err
		}
		return port.Check(target, withLimit(body))
	})
	if !ok || refusedAnthropic(s, w, r, req) {
		return
	}
	s.mu.Lock()
	n, counter := s.tokens, s.counter
	s.mu.Unlock()
	if counter != nil {
		n = counter(req)
	}
	s.whole(w, &Reply{}, http.StatusOK, marshal(map[string]any{"input_tokens": n}))
}

// withLimit answers a body of count_tokens as a Messages body, which says how
// long the completion may be.
func withLimit(body []byte) []byte {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil {
		return body
	}
	top["max_tokens"] = json.RawMessage("1")
	return marshal(top)
}
