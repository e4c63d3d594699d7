package luabind

import (
	"encoding/json"
	"slices"
	"strings"
)

// The answers to tools/call, resources/read and prompts/get are read here and not
// by the SDK: what the server was asked for has happened, so nothing odd in its
// answer loses the rest of it.

// mcpToolAnswer is what a tool answered. Its structured content is as it came,
// with every digit of large numbers.
type mcpToolAnswer struct {
	blocks     []block
	structured json.RawMessage // nil: none
	failed     bool
}

// readToolAnswer reads any result of tools/call.
func readToolAnswer(raw json.RawMessage) *mcpToolAnswer {
	f := fieldsOf(raw)
	a := &mcpToolAnswer{blocks: blocksOf(f.content("content", raw)), structured: f["structuredContent"]}
	if string(a.structured) == "null" {
		a.structured = nil
	}
	a.failed = slices.Contains([]string{"true", `"true"`, "1"}, string(f["isError"]))
	return a
}

// besideContent are fields of results that say nothing without the content.
var besideContent = []string{"_meta", "isError", "structuredContent", "resultType", "description"}

// content answers the field of a result that holds what was asked for, or the one
// of the first version of the protocol. Where there is none, that is the result,
// unless it says nothing.
func (f fields) content(name string, result json.RawMessage) json.RawMessage {
	for _, name := range []string{name, "toolResult"} {
		if f[name] != nil {
			return f[name]
		}
	}
	for key := range f {
		if !slices.Contains(besideContent, key) {
			return result
		}
	}
	if f != nil {
		return nil
	}
	return result
}

// result answers what a tool's handler does: the text when there is only one,
// else the blocks; the structured value where there are none.
func (a *mcpToolAnswer) result() (json.RawMessage, error) {
	switch {
	case len(a.blocks) == 0 && a.structured != nil:
		return a.structured, nil
	case len(a.blocks) == 0:
		return json.RawMessage(`""`), nil
	case len(a.blocks) == 1 && a.blocks[0].Type == "text":
		return json.Marshal(a.blocks[0].Text)
	}
	return json.Marshal(a.blocks)
}

// failure answers the text of a failed call.
func (a *mcpToolAnswer) failure() string {
	var texts []string
	for _, b := range a.blocks {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) == 0 && a.structured != nil {
		return string(a.structured)
	}
	if len(texts) == 0 {
		return "the tool says that it failed, and not why"
	}
	return strings.Join(texts, "\n")
}

// readContents reads any result of resources/read; a part that does not say of
// which resource it is is of the one that was asked for.
func readContents(raw json.RawMessage, uri string) (parts []mcpContents) {
	for _, one := range elementsOf(fieldsOf(raw).content("contents", raw)) {
		f := fieldsOf(one)
		part := mcpContents{URI: f.text("uri"), MIMEType: f.text("mimeType")}
		if part.URI == "" {
			part.URI = uri
		}
		if data, _, err := bytesIn(f.text("blob")); f.has("blob") && err == nil {
			bytes := string(data)
			part.Bytes = &bytes
		} else {
			text := f.partText(one)
			part.Text = &text
		}
		parts = append(parts, part)
	}
	return parts
}

// partText answers the text of a part of a resource that came as raw.
func (f fields) partText(raw json.RawMessage) string {
	if text, ok := textIn(raw); ok {
		return text
	}
	if f.has("text") || !f.has("blob") && f["uri"] != nil {
		return f.anyText("text")
	}
	return unknownBlock("part", raw).Text
}

type mcpPromptAnswer struct {
	Description string             `json:"description,omitempty"`
	Messages    []mcpPromptMessage `json:"messages"`
}

type mcpPromptMessage struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// readPromptAnswer reads any result of prompts/get. What has no role is the
// user's, whose words prompts are.
func readPromptAnswer(raw json.RawMessage) *mcpPromptAnswer {
	f := fieldsOf(raw)
	a := &mcpPromptAnswer{Description: f.text("description"), Messages: []mcpPromptMessage{}}
	for _, one := range elementsOf(f.content("messages", raw)) {
		m, content := fieldsOf(one), one
		if m.has("content") {
			content = m["content"]
		}
		role := m.text("role")
		if role == "" {
			role = "user"
		}
		a.Messages = append(a.Messages, mcpPromptMessage{role, blocksOf(content)})
	}
	return a
}
