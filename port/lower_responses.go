package port

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

// itemSlot is the Field of a block that was an output item of Responses: a
// model's reasoning, or what a tool of the provider's did.
const itemSlot = "item"

// hosted are the output items of the provider's own tools that may go back in
// a later input and need nothing beside them.
var hosted = []string{"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools", "compaction"}

// fitsResponses says whether the block is an item that the provider takes back.
// With nothing stored on its side, reasoning is only what it carries encrypted.
func (b wireBlock) fitsResponses() bool {
	if b.Type == "text" {
		return b.Provider.Phase != "" && b.Text != nil && !blank(*b.Text)
	}
	var item struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Encrypted string `json:"encrypted_content"`
	}
	if b.Provider.Field != itemSlot || jsonv2.Unmarshal([]byte(b.Provider.Raw), &item) != nil {
		return false
	}
	if b.Type == "thinking" {
		return item.Type == "reasoning" && item.ID != "" && item.Encrypted != ""
	}
	return item.Type == b.Type && containsWord(strings.Join(hosted, " "), b.Type)
}

// responses writes a body of the Responses API that leaves nothing stored with
// the provider: the log is the only state.
func (l *lowering) responses() (field.Map, error) {
	var items []json.RawMessage
	for _, t := range l.turns {
		if t.role == "assistant" {
			items = append(items, l.answerItems(t.parts)...)
		} else {
			items = append(items, userItems(t.parts)...)
		}
	}
	body := field.Map{"input": field.Array(items), "model": field.Quoted(l.conf.Model), "store": json.RawMessage("false")}
	if len(l.system) > 0 {
		body["instructions"] = field.Quoted(strings.Join(l.system, joint))
	}
	l.responsesTools(body)
	return body, l.responsesParams(body)
}

// answerItems keeps the order: reasoning belongs to the item behind it.
func (l *lowering) answerItems(parts []part) []json.RawMessage {
	var out []json.RawMessage
	for _, p := range parts {
		switch p.kind {
		case ownPart:
			out = append(out, p.raw)
		case textPart:
			m := field.Map{"content": field.Quoted(p.text), "role": field.Quoted("assistant"), "type": field.Quoted("message")}
			if p.phase != "" {
				m["phase"] = field.Quoted(p.phase)
			}
			out = append(out, m.JSON())
		case usePart:
			out = append(out, field.Map{
				"arguments": field.Quoted(string(p.input)), "call_id": field.Quoted(p.wire),
				"name": field.Quoted(l.names.same(p.name)), "type": field.Quoted("function_call"),
			}.JSON())
		}
	}
	return out
}

func userItems(parts []part) []json.RawMessage {
	var out []json.RawMessage
	var rest []part
	for _, p := range parts {
		if p.kind == resultPart {
			out = append(out, outputItem(p))
		} else {
			rest = append(rest, p)
		}
	}
	if len(rest) > 0 {
		out = append(out, field.Map{"content": inputContent(rest), "role": field.Quoted("user"), "type": field.Quoted("message")}.JSON())
	}
	return out
}

func outputItem(p part) json.RawMessage {
	content := append([]part(nil), p.content...)
	switch {
	case p.failed && content[0].kind == textPart:
		content[0].text = "error: " + content[0].text
	case p.failed:
		content = append([]part{{kind: textPart, text: "error:"}}, content...)
	}
	return field.Map{"call_id": field.Quoted(p.wire), "output": inputContent(content), "type": field.Quoted("function_call_output")}.JSON()
}

// inputContent answers the content of an item of Responses.
func inputContent(parts []part) json.RawMessage { return contentOf(parts, inputText, inputMedia) }

func inputText(text string) json.RawMessage {
	return field.Map{"text": field.Quoted(text), "type": field.Quoted("input_text")}.JSON()
}

func inputMedia(p part) json.RawMessage {
	s, url := p.origin()
	switch {
	case p.block == "image":
		return field.Map{"detail": field.Quoted("auto"), "image_url": field.Quoted(url), "type": field.Quoted("input_image")}.JSON()
	case s.Type == "base64":
		return field.Map{"file_data": field.Quoted(url), "filename": p.about().filename(s.MediaType), "type": field.Quoted("input_file")}.JSON()
	case s.Type == "text":
		return inputText(p.about().written(s.Data))
	}
	return field.Map{"file_url": field.Quoted(url), "type": field.Quoted("input_file")}.JSON()
}

// responsesTools turns off the strict schemas that the provider has as its
// default: they refuse what every other one takes.
func (l *lowering) responsesTools(body field.Map) {
	if len(l.tools) == 0 {
		return
	}
	out := make([]json.RawMessage, len(l.tools))
	for i, t := range l.tools {
		fn := field.Map{
			"name": field.Quoted(l.names.same(t.name)), "parameters": t.schema,
			"strict": json.RawMessage("false"), "type": field.Quoted("function"),
		}
		if t.description != "" {
			fn["description"] = field.Quoted(t.description)
		}
		out[i] = fn.JSON()
	}
	body["tools"] = field.Array(out)
	switch l.choice.mode {
	case "":
	case "tool":
		body["tool_choice"] = field.Map{"name": field.Quoted(l.names.same(l.choice.name)), "type": field.Quoted("function")}.JSON()
	default:
		body["tool_choice"] = field.Quoted(l.choice.mode)
	}
}

func (l *lowering) responsesParams(body field.Map) error {
	c := l.conf
	switch {
	case c.TopK > 0:
		return fmt.Errorf("top_k: got %d, want none: the Responses API takes no top_k", c.TopK)
	case c.Seed != nil:
		return fmt.Errorf("seed: got %d, want none: the Responses API takes no seed", *c.Seed)
	case len(c.Stop) > 0:
		return fmt.Errorf("stop: got %q, want none: the Responses API takes no stop sequence", c.Stop[0])
	}
	setNumber(body, "temperature", c.Temperature)
	setNumber(body, "top_p", c.TopP)
	if c.MaxTokens > 0 {
		body["max_output_tokens"] = field.Whole(c.MaxTokens)
	}
	if effort := c.Thinking.effort(); effort != "" {
		body["reasoning"] = field.Map{"effort": field.Quoted(effort)}.JSON()
	}
	if c.ResponseFormat == nil {
		return nil
	}
	format, err := responsesFormat(formatWithItems(c.ResponseFormat))
	body["text"] = field.Map{"format": format}.JSON()
	return err
}

// responsesFormat spells a response format of Chat Completions as Responses
// does: what stands under json_schema there stands beside the type here.
func responsesFormat(raw json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Type   string         `json:"type"`
		Schema jsontext.Value `json:"json_schema"`
	}
	if err := jsonv2.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("response_format: want { type, json_schema? }: %w", err)
	}
	if in.Type != "json_schema" {
		return raw, nil
	}
	out := field.Map{}
	if in.Schema.Kind() != '{' || json.Unmarshal(in.Schema, &out) != nil || out["name"] == nil || out["schema"] == nil {
		return nil, fmt.Errorf("response_format.json_schema: got %s, want { name, schema }", field.Got(in.Schema))
	}
	out["type"] = field.Quoted("json_schema")
	return out.JSON(), nil
}
