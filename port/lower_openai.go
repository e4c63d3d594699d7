package port

import (
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

// joint stands between texts that become one.
const joint = "\n\n"

// openai writes a Chat Completions body.
func (l *lowering) openai() (field.Map, error) {
	var messages []json.RawMessage
	if len(l.system) > 0 {
		messages = append(messages, chatMessage("system", field.Quoted(strings.Join(l.system, joint))))
	}
	for _, t := range l.turns {
		if t.role == "assistant" {
			messages = append(messages, l.chatAnswer(t.parts))
		} else {
			messages = append(messages, chatUser(t.parts)...)
		}
	}
	body := field.Map{"model": field.Quoted(l.conf.Model), "messages": field.Array(messages)}
	l.chatTools(body)
	l.chatParams(body)
	return body, nil
}

func chatMessage(role string, content json.RawMessage) json.RawMessage {
	return field.Map{"content": content, "role": field.Quoted(role)}.JSON()
}

func (l *lowering) chatAnswer(parts []part) json.RawMessage {
	m := field.Map{"role": field.Quoted("assistant")}
	if said := texts(parts); len(said) > 0 {
		m["content"] = field.Quoted(strings.Join(said, joint))
	}
	var calls []json.RawMessage
	for _, p := range parts {
		if p.kind == usePart {
			fn := field.Map{"arguments": field.Quoted(string(p.input)), "name": field.Quoted(l.names.same(p.name))}
			calls = append(calls, field.Map{"function": fn.JSON(), "id": field.Quoted(p.wire), "type": field.Quoted("function")}.JSON())
		}
	}
	if len(calls) > 0 {
		m["tool_calls"] = field.Array(calls)
	}
	chatThoughts(m, parts)
	return m.JSON()
}

// The fields of a chat message that hold what a model thought. Which one a
// server writes differs, and it reads the one that it writes.
const (
	reasoningSlot = "reasoning"
	contentSlot   = "reasoning_content"
	detailsSlot   = "reasoning_details" // a list, kept as JSON text in the bag
)

// fitsChat says whether the block is what a chat message said beside its text.
func (b wireBlock) fitsChat() bool {
	if b.Type != "thinking" {
		return false
	}
	switch b.Provider.Field {
	case reasoningSlot, contentSlot:
		return b.Thinking != ""
	case detailsSlot:
		raw := jsontext.Value(b.Provider.Raw)
		return raw.Kind() == '[' && raw.IsValid()
	}
	return false
}

// chatThoughts gives a message back what was thought in it.
func chatThoughts(m field.Map, parts []part) {
	var details []json.RawMessage
	said := map[string]string{}
	for _, p := range parts {
		switch {
		case p.kind != ownPart:
		case p.slot == detailsSlot:
			list, _ := field.Elements(p.raw)
			details = append(details, list...)
		default:
			var text string
			_ = json.Unmarshal(p.raw, &text)
			said[p.slot] += text
		}
	}
	for slot, text := range said {
		m[slot] = field.Quoted(text)
	}
	if len(details) > 0 {
		m[detailsSlot] = field.Array(details)
	}
}

// chatUser answers the tool messages and then the user message of one turn. A
// tool message holds text alone, so images follow in the user's.
func chatUser(parts []part) []json.RawMessage {
	var out []json.RawMessage
	var rest []part
	for _, p := range parts {
		if p.kind != resultPart {
			rest = append(rest, p)
		}
	}
	var shown []part
	for _, p := range parts {
		if p.kind != resultPart {
			continue
		}
		text, media := chatResult(p)
		out = append(out, field.Map{"content": field.Quoted(text), "role": field.Quoted("tool"), "tool_call_id": field.Quoted(p.wire)}.JSON())
		if len(media) > 0 {
			shown = append(append(shown, part{kind: textPart, text: "Shown by the call " + p.wire + ":"}), media...)
		}
	}
	if rest = append(shown, rest...); len(rest) > 0 {
		out = append(out, chatMessage("user", chatContent(rest)))
	}
	return out
}

// chatResult answers the text of a result and what cannot be text.
func chatResult(p part) (string, []part) {
	said := texts(p.content)
	var media []part
	for _, c := range p.content {
		if c.kind == mediaPart {
			media = append(media, c)
		}
	}
	if len(media) > 0 {
		said = append(said, "(shown in the next user message)")
	}
	text := strings.Join(said, joint)
	if p.failed {
		text = "error: " + text
	}
	return text, media
}

// chatContent answers the content of a message of Chat Completions.
func chatContent(parts []part) json.RawMessage { return contentOf(parts, textBlock, chatMedia) }

// contentOf answers text where it can, which every server takes, and parts where
// it must, as text and media write them.
func contentOf(parts []part, text func(string) json.RawMessage, media func(part) json.RawMessage) json.RawMessage {
	var items []json.RawMessage
	plain := true
	for _, p := range parts {
		if p.kind != mediaPart {
			items = append(items, text(p.text))
			continue
		}
		if about := p.about(); p.isFile() && !blank(about.Context) {
			items = append(items, text(about.Context))
		}
		items, plain = append(items, media(p)), false
	}
	if plain {
		return field.Quoted(strings.Join(texts(parts), joint))
	}
	return field.Array(items)
}

// about is what a document says of itself beside its source.
type about struct {
	Title     string         `json:"title"`
	Context   string         `json:"context"`
	Citations jsontext.Value `json:"citations"`
}

func (p part) about() (a about) {
	_ = jsonv2.Unmarshal(p.raw, &a)
	return a
}

// origin answers the source of a medium, and its URL, which may hold the bytes.
func (p part) origin() (s mediaSource, url string) {
	_ = jsonv2.Unmarshal(p.source, &s)
	if s.Type == "base64" {
		return s, "data:" + s.MediaType + ";base64," + s.Data
	}
	return s, s.URL
}

// isFile says whether a medium is a document that is no text.
func (p part) isFile() bool {
	s, _ := p.origin()
	return p.block == "document" && s.Type != "text"
}

// written answers a document of text with what it says of itself before it.
func (a about) written(data string) string {
	var texts []string
	for _, text := range []string{a.Title, a.Context, data} {
		if !blank(text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, joint)
}

// filename answers what a file is called. The provider reads from the end of a name
// what is in it.
func (a about) filename(mediaType string) json.RawMessage {
	name := a.Title
	if blank(name) {
		name = "document"
	}
	if ending := fileEnding(mediaType); !strings.HasSuffix(strings.ToLower(name), ending) {
		name += ending
	}
	return field.Quoted(name)
}

// chatMedia answers an image or document part. A document that the wire has no
// form for stands as the text that names it.
func chatMedia(p part) json.RawMessage {
	s, url := p.origin()
	switch {
	case p.block == "image":
		return field.Map{"image_url": field.Map{"url": field.Quoted(url)}.JSON(), "type": field.Quoted("image_url")}.JSON()
	case s.Type == "base64":
		file := field.Map{"file_data": field.Quoted(url), "filename": p.about().filename(s.MediaType)}
		return field.Map{"file": file.JSON(), "type": field.Quoted("file")}.JSON()
	case s.Type == "text":
		return textBlock(p.about().written(s.Data))
	}
	return textBlock(about{Title: p.about().Title}.written("Document: " + url))
}

func (l *lowering) chatTools(body field.Map) {
	if len(l.tools) == 0 {
		return
	}
	out := make([]json.RawMessage, len(l.tools))
	for i, t := range l.tools {
		fn := field.Map{"name": field.Quoted(l.names.same(t.name)), "parameters": t.schema}
		if t.description != "" {
			fn["description"] = field.Quoted(t.description)
		}
		out[i] = field.Map{"function": fn.JSON(), "type": field.Quoted("function")}.JSON()
	}
	body["tools"] = field.Array(out)
	switch l.choice.mode {
	case "":
	case "tool":
		fn := field.Map{"name": field.Quoted(l.names.same(l.choice.name))}
		body["tool_choice"] = field.Map{"function": fn.JSON(), "type": field.Quoted("function")}.JSON()
	default:
		body["tool_choice"] = field.Quoted(l.choice.mode)
	}
}

func (l *lowering) chatParams(body field.Map) {
	c := l.conf
	setNumber(body, "temperature", c.Temperature)
	setNumber(body, "top_p", c.TopP)
	if c.MaxTokens > 0 {
		body["max_completion_tokens"] = field.Whole(c.MaxTokens)
	}
	if c.TopK > 0 {
		body["top_k"] = field.Whole(c.TopK)
	}
	if c.Seed != nil {
		body["seed"] = field.Whole(*c.Seed)
	}
	if len(c.Stop) > 0 {
		body["stop"] = field.Texts(c.Stop)
	}
	if c.ResponseFormat != nil {
		body["response_format"] = formatWithItems(c.ResponseFormat)
	}
	if effort := c.Thinking.effort(); effort != "" {
		body["reasoning_effort"] = field.Quoted(effort)
	}
}

// effort answers what OpenAI calls an effort; empty: nothing is asked.
func (t Thinking) effort() string {
	switch {
	case t.Off:
		return "none"
	case t.On && t.Effort == "":
		return "medium"
	case t.On:
		return t.Effort
	}
	return ""
}
