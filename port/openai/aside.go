package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// aside is what a server writes beside a call, or beside its function, and wants
// back with it: Gemini refuses a call that returns without its signature.
//
//	extra_content             Gemini: { google = { thought_signature } }
//	provider_specific_fields  LiteLLM: { thought_signature }
//
// A call that another model made has none of its own, and Gemini has a word for that.
// Nothing else of a call is kept, for most servers refuse a member that they do not
// know, among them some that write it.
type aside struct {
	Extra  json.RawMessage `json:"extra_content,omitempty"`
	Fields json.RawMessage `json:"provider_specific_fields,omitempty"`
}

// grow takes what a later piece of the call says.
func (a *aside) grow(more aside) {
	if isSet(more.Extra) {
		a.Extra = more.Extra
	}
	if isSet(more.Fields) {
		a.Fields = more.Fields
	}
}

// lay puts what there is where it stood.
func (a *aside) lay(call field.Map) {
	for key, value := range map[string]json.RawMessage{"extra_content": a.Extra, "provider_specific_fields": a.Fields} {
		if isSet(value) {
			call[key] = value
		}
	}
}

// asides are the two of a call, as the bag of its block has them in "raw".
type asides struct {
	aside
	Function aside `json:"function"`
}

// take takes what a piece of the call says.
func (a *asides) take(p callPiece) {
	a.grow(p.aside)
	a.Function.grow(p.Function.aside)
}

// raw answers the JSON text of both; empty: there is nothing beside the call.
func (a *asides) raw() string {
	call, function := field.Map{}, field.Map{}
	a.lay(call)
	if a.Function.lay(function); len(function) > 0 {
		call["function"] = function.JSON()
	}
	if len(call) == 0 {
		return ""
	}
	return string(call.JSON())
}

// usedBlock is what of a call's block says whose it is.
type usedBlock struct {
	Type     string `json:"type"`
	Provider struct {
		Port  string `json:"port"`
		Model string `json:"model"`
		Raw   string `json:"raw"`
	} `json:"provider"`
}

// aside answers what stood beside a call of m's own model.
func (m *model) aside(b usedBlock) (a asides) {
	raw := []byte(b.Provider.Raw)
	if b.Provider.Port == m.server.dialect.name && b.Provider.Model == m.conf.Model && field.Sound(raw) {
		_ = field.Lenient(raw, &a)
	}
	return a
}

// unsigned is the signature that Google has for a call that none of its models made, or
// another one.
const unsigned = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// isGemini says whether a model refuses a call without a signature: of Google's own
// server, or of a gateway that is spoken to as to it.
func (m *model) isGemini() bool {
	d := m.server.dialect
	return strings.Contains(strings.ToLower(m.conf.Model), "gemini") && (d.provider == "Google" || d.name == "vllm" && d.provider == "")
}

// sign gives the first call of an answer the signature that Gemini wants there, where
// another model made it.
func (m *model) sign(calls []asides) {
	if len(calls) > 0 && calls[0].raw() == "" && m.isGemini() {
		calls[0].Extra = json.RawMessage(unsigned)
	}
}

// asides answers what stood beside each call of the history, in their order; nil
// where nothing stood beside any.
func (m *model) asides(messages []json.RawMessage) (list []asides) {
	found := false
	for _, raw := range messages {
		if !bytes.Contains(raw, []byte("tool_use")) {
			continue // most messages are not read
		}
		var said struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &said) != nil || said.Role != "assistant" || field.KindOf(said.Content) != '[' {
			continue
		}
		calls := m.asidesIn(said.Content)
		m.sign(calls)
		for _, a := range calls {
			found = found || a.raw() != ""
		}
		list = append(list, calls...)
	}
	if !found {
		return nil
	}
	return list
}

// asidesIn answers what stood beside each call of an answer.
func (m *model) asidesIn(content json.RawMessage) (list []asides) {
	blocks, _ := field.Elements(content)
	for _, block := range blocks {
		var b usedBlock
		if field.Lenient(block, &b) && b.Type == "tool_use" {
			list = append(list, m.aside(b))
		}
	}
	return list
}

// giveBack lays beside the calls of a body what stood beside them. Lower keeps their
// number and their order, and their ids only where those are legal. A history with
// calls that it reads as something else gets nothing back, rather than the wrong thing.
func (m *model) giveBack(body field.Map, req *kernel.Request) {
	left := m.asides(req.Messages)
	if left == nil || m.responses {
		return
	}
	messages, _ := field.Elements(body["messages"])
	for i, raw := range messages {
		said := field.Map{}
		if json.Unmarshal(raw, &said) != nil || said["tool_calls"] == nil {
			continue
		}
		calls, _ := field.Elements(said["tool_calls"])
		if len(calls) > len(left) {
			return
		}
		for k, call := range calls {
			calls[k] = left[k].beside(call)
		}
		left = left[len(calls):]
		said["tool_calls"] = field.Array(calls)
		messages[i] = said.JSON()
	}
	if len(left) == 0 {
		body["messages"] = field.Array(messages)
	}
}

// beside answers a call of a body with what stood beside it.
func (a *asides) beside(raw json.RawMessage) json.RawMessage {
	if a.raw() == "" {
		return raw
	}
	call, function := field.Map{}, field.Map{}
	if json.Unmarshal(raw, &call) != nil || json.Unmarshal(call["function"], &function) != nil {
		panic("BUG: a lowered call has no function: " + string(raw))
	}
	a.lay(call)
	a.Function.lay(function)
	call["function"] = function.JSON()
	return call.JSON()
}
