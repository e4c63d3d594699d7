package port

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// turn is a message with its content taken apart.
type turn struct {
	role  string // "user" or "assistant"
	parts []part
}

// partKind says what a part is and which of its fields count.
type partKind int

const (
	textPart   partKind = iota // text
	mediaPart                  // block: "image" or "document"; source; raw: the block, for what a document says of itself
	usePart                    // id, name, input
	resultPart                 // id, content, failed
	ownPart                    // raw: a block of the target itself, sent as it came; slot: where it goes
)

type part struct {
	kind    partKind
	at      string // where it stood: "messages[2].content[0]"
	text    string
	block   string
	source  json.RawMessage
	id      string // the kernel's
	wire    string // what pair makes of it
	name    string
	input   json.RawMessage
	content []part
	failed  bool
	raw     json.RawMessage
	slot    string // of a message of Chat Completions: the field that raw is
	phase   string // of a text: what Responses calls it
}

// wireBlock is a content block as the neutral form and the Anthropic wire spell it.
type wireBlock struct {
	Type         string         `json:"type"`
	Text         *string        `json:"text"`
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Input        jsontext.Value `json:"input"`
	ToolUseID    string         `json:"tool_use_id"`
	Content      jsontext.Value `json:"content"`
	IsError      bool           `json:"is_error"`
	Source       jsontext.Value `json:"source"`
	Thinking     string         `json:"thinking"`
	Signature    string         `json:"signature"`
	CacheControl jsontext.Value `json:"cache_control"`
	Provider     *bag           `json:"provider"`
}

// bag says whose block it is. A port puts it into the blocks that mean
// something to one model alone; it may add keys of its own.
type bag struct {
	Port  string `json:"port"`
	Model string `json:"model"`
	Field string `json:"field"` // of the OpenAI dialects: what the block was on the wire
	Raw   string `json:"raw"`   // the JSON text that it was there
	Phase string `json:"phase"` // of a text of Responses
}

// UnmarshalJSON implements json.Unmarshaler. A member of a provider's own block
// that is called like a bag is none.
func (b *bag) UnmarshalJSON(raw []byte) error {
	type plain bag
	_ = json.Unmarshal(raw, (*plain)(b))
	return nil
}

// kept says whether a block of Messages stands in its bag: the log could not hold
// it as it came.
func (b *bag) kept() bool { return b.Raw != "" && b.Field == "" }

func (l *lowering) readMessages(req *kernel.Request) error {
	if req.System != nil && field.KindOf(req.System) != 'n' {
		l.system = texts(l.parts(req.System, "system", "system"))
	}
	for i, raw := range req.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		var m struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		}
		if err := jsonv2.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("%s: got %s, want { role, content }: %w", at, field.Got(raw), err)
		}
		parts := l.parts(json.RawMessage(m.Content), m.Role, at+".content")
		switch m.Role {
		case "user", "assistant":
			l.turns = append(l.turns, turn{m.Role, parts})
		case "system":
			l.system = append(l.system, texts(parts)...)
		default:
			roles := []string{"user", "assistant", "system"}
			return fmt.Errorf("%s.role: got %q%s, want one of %s", at, m.Role, field.Near(m.Role, roles), field.List(roles))
		}
	}
	return nil
}

func texts(parts []part) []string {
	var out []string
	for _, p := range parts {
		if p.kind == textPart {
			out = append(out, p.text)
		}
	}
	return out
}

// parts takes content apart and leaves out what is blank. Content that is
// neither text nor blocks stands as its JSON text, so that no value in a log
// ends a conversation.
func (l *lowering) parts(content json.RawMessage, role, at string) []part {
	switch {
	case content == nil || field.KindOf(content) == 'n':
		return nil
	case field.KindOf(content) != '[':
		return said(content, at)
	}
	list, _ := field.Elements(content)
	var out []part
	for j, raw := range list {
		out = append(out, l.part(raw, role, fmt.Sprintf("%s[%d]", at, j))...)
	}
	if role == "assistant" {
		return withoutLastThoughts(out)
	}
	return out
}

// said answers a value as text: a string as it is, another one as JSON.
func said(raw json.RawMessage, at string) []part {
	text := string(raw)
	if field.KindOf(raw) == '"' {
		text = ""
		_ = json.Unmarshal(raw, &text)
	}
	if blank(text) {
		return nil
	}
	return []part{{kind: textPart, at: at, text: text}}
}

// part answers a block, or nothing for one that has no place in the target.
func (l *lowering) part(raw json.RawMessage, role, at string) []part {
	var b wireBlock
	if field.KindOf(raw) != '{' || jsonv2.Unmarshal(raw, &b) != nil {
		return said(legible(raw), at)
	}
	switch {
	case b.Type == "tool_use":
		return []part{{kind: usePart, at: at, id: b.ID, name: b.Name, input: object(b.Input)}}
	case b.Type == "tool_result":
		return []part{{kind: resultPart, at: at, id: b.ToolUseID, content: l.resultContent(b, at), failed: b.IsError}}
	case role == "assistant" && l.owns(b):
		return l.own(b, raw, at)
	case b.Type == "text" && b.Text != nil:
		return said(field.Quoted(*b.Text), at)
	case role == "assistant":
		return nil
	}
	if block, source := media(raw); source != nil {
		if fault := l.target.mediaFault(block, source); fault != "" {
			return said(unsent(block, fault), at)
		}
		return []part{{kind: mediaPart, at: at, block: block, source: source, raw: raw}}
	}
	return said(legible(raw), at)
}

// owns says whether the target's own model said the block, which then goes
// back byte for byte.
func (l *lowering) owns(b wireBlock) bool {
	if b.Provider == nil || b.Provider.Port != l.target.port() || b.Provider.Model != l.conf.Model {
		return false
	}
	switch l.target.Dialect {
	case OpenAI:
		return b.fitsChat()
	case Responses:
		return b.fitsResponses()
	}
	return b.whole(l.target)
}

// own answers a block that the target's own model said.
func (l *lowering) own(b wireBlock, raw json.RawMessage, at string) []part {
	p := part{kind: ownPart, at: at, block: b.Type, slot: b.Provider.Field, raw: json.RawMessage(b.Provider.Raw)}
	switch {
	case l.target.Dialect == Anthropic:
		if !b.Provider.kept() {
			p.raw, p.slot = unbagged(raw), ""
		}
	case b.Type == "text":
		p = part{kind: textPart, at: at, text: *b.Text, phase: b.Provider.Phase}
	case p.slot != detailsSlot && p.slot != itemSlot:
		p.raw = field.Quoted(b.Thinking)
	}
	return []part{p}
}

// whole says whether a provider takes its own block back: thinking that was cut
// has no signature yet, where the model signs, and media are not for answers.
func (b wireBlock) whole(t Target) bool {
	if b.Provider.kept() { // a provider may write what no provider takes back
		return jsontext.Value(b.Provider.Raw).IsValid()
	}
	switch b.Type {
	case "text":
		return b.Text != nil && !blank(*b.Text)
	case "thinking":
		return b.Signature != "" || t.Compatible && b.Thinking != ""
	case "", "image", "document":
		return false
	}
	return true
}

// resultContent fills an empty result, which is a normal one, with a word.
func (l *lowering) resultContent(b wireBlock, at string) []part {
	content := l.parts(json.RawMessage(b.Content), "tool", at+".content")
	for i, p := range content {
		if p.kind == usePart || p.kind == resultPart {
			content[i] = part{kind: textPart, at: p.at, text: string(b.Content)}
		}
	}
	if len(content) == 0 {
		return []part{{kind: textPart, at: at, text: emptyResult}}
	}
	return content
}

// withoutLastThoughts cuts the thinking at the end of an answer, which no
// provider takes back: the answer was cut while the model was thinking.
func withoutLastThoughts(parts []part) []part {
	for len(parts) > 0 && parts[len(parts)-1].thinks() {
		parts = parts[:len(parts)-1]
	}
	return parts
}

func (p part) thinks() bool {
	return p.kind == ownPart && isThinking(p.block)
}

func isThinking(block string) bool { return block == "thinking" || block == "redacted_thinking" }

// unbagged answers a block without its bag, every other byte as it was.
func unbagged(raw json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	_ = field.Each(raw, func(key string, value json.RawMessage) error {
		if key == "provider" {
			return nil
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, field.Quoted(key)...), ':'), value...)
		return nil
	}, "block")
	return append(b, '}')
}

// object answers the arguments of a call as the object that a provider wants:
// arguments that could not be read stand in it as they came.
func object(input jsontext.Value) json.RawMessage {
	input = bytes.TrimSpace(input)
	switch {
	case len(input) == 0 || input.Kind() == 'n':
		return json.RawMessage(`{}`)
	case input.Kind() != '{':
		return field.Map{"arguments": json.RawMessage(input)}.JSON()
	}
	return json.RawMessage(input)
}

// blank says whether a provider would call a text empty. Space is what Go or
// Python trims.
func blank(s string) bool { return trimmedRight(s) == "" }
