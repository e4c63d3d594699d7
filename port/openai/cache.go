package openai

import (
	"encoding/json"
	"strings"

	"github.com/knl-run/knl/port/internal/field"
	"github.com/knl-run/knl/port/internal/wire"
)

// OpenAI keeps what prompts begin with unasked, and so do most servers. Claude, where
// openrouter hands it on, keeps a prompt up to a mark, as at home, and takes four:
//
//	system    the system prompt, and the tools that stand before it
//	last      the end of what the user and the tools said last: written now
//	before    the end of what they said before that: read now
//
// A filter that sets cache_control on the body lets the provider set the marks, and
// then no other is set. port/anthropic says why these places.

// isClaude says whether openrouter hands the calls on to Claude.
func (m *model) isClaude() bool {
	return m.server.dialect.name == "openrouter" && strings.Contains(strings.ToLower(m.conf.Model), "anthropic/")
}

// mark sets the marks of a body whose model keeps nothing without.
func (m *model) mark(body field.Map) {
	if !m.isClaude() || m.conf.NoCache || body["cache_control"] != nil {
		return
	}
	list, _ := field.Elements(body["messages"])
	messages := make([]field.Map, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &messages[i]); err != nil {
			panic("BUG: a lowered message is no object: " + err.Error())
		}
	}
	is := func(i int, role string) bool { return string(messages[i]["role"]) == `"`+role+`"` }
	places := wire.Ends(len(messages), 2, func(i int) bool { return is(i, "user") || is(i, "tool") })
	if len(messages) > 0 && is(0, "system") {
		places = append(places, 0)
	}
	for _, i := range places {
		markText(messages[i])
		list[i] = messages[i].JSON()
	}
	body["messages"] = field.Array(list)
}

// markText marks the last text of a message, which stands in a part for that.
func markText(message field.Map) {
	parts, err := field.Elements(message["content"])
	if err != nil {
		parts = []json.RawMessage{textBlock(field.Plain(message["content"]))}
	}
	for k := len(parts) - 1; k >= 0; k-- {
		part := field.Map{}
		if json.Unmarshal(parts[k], &part) == nil && string(part["type"]) == `"text"` {
			part["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
			parts[k] = part.JSON()
			break
		}
	}
	message["content"] = field.Array(parts)
}
