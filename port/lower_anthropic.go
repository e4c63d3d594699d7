package port

import (
	"encoding/json"
	"fmt"

	"github.com/knl-run/knl/port/internal/field"
)

// defaultMaxTokens is the completion that every Anthropic model can give; the
// wire has no default of its own.
const defaultMaxTokens = 4096

// anthropic writes a Messages body.
func (l *lowering) anthropic() (field.Map, error) {
	body := field.Map{"model": field.Quoted(l.conf.Model), "messages": nil}
	messages := make([]json.RawMessage, len(l.turns))
	for i, t := range l.turns {
		messages[i] = field.Map{"content": l.anthropicBlocks(t.parts), "role": field.Quoted(t.role)}.JSON()
	}
	body["messages"] = field.Array(messages)
	if len(l.system) > 0 {
		blocks := make([]json.RawMessage, len(l.system))
		for i, text := range l.system {
			blocks[i] = textBlock(text)
		}
		body["system"] = field.Array(blocks)
	}
	l.anthropicTools(body)
	return body, l.anthropicParams(body)
}

func (l *lowering) anthropicBlocks(parts []part) json.RawMessage {
	blocks := make([]json.RawMessage, len(parts))
	for i, p := range parts {
		blocks[i] = l.anthropicBlock(p)
	}
	return field.Array(blocks)
}

func (l *lowering) anthropicBlock(p part) json.RawMessage {
	switch p.kind {
	case ownPart:
		return p.raw
	case mediaPart:
		return anthropicMedia(p)
	case usePart:
		return field.Map{"id": field.Quoted(p.wire), "input": p.input, "name": field.Quoted(l.names.same(p.name)), "type": field.Quoted("tool_use")}.JSON()
	case resultPart:
		f := field.Map{"content": l.anthropicBlocks(p.content), "tool_use_id": field.Quoted(p.wire), "type": field.Quoted("tool_result")}
		if p.failed {
			f["is_error"] = json.RawMessage("true")
		}
		return f.JSON()
	}
	return textBlock(p.text)
}

// anthropicMedia answers an image, or a document with what it says of itself. The
// provider wants it said that text is text.
func anthropicMedia(p part) json.RawMessage {
	f := field.Map{"source": p.source, "type": field.Quoted(p.block)}
	if s, _ := p.origin(); s.Type == "text" && s.MediaType != "text/plain" {
		f["source"] = field.Map{"data": field.Quoted(s.Data), "media_type": field.Quoted("text/plain"), "type": field.Quoted("text")}.JSON()
	}
	if p.block != "document" {
		return f.JSON()
	}
	about := p.about()
	for key, text := range map[string]string{"title": about.Title, "context": about.Context} {
		if !blank(text) {
			f[key] = field.Quoted(text)
		}
	}
	if about.Citations.Kind() == '{' {
		f["citations"] = json.RawMessage(about.Citations)
	}
	return f.JSON()
}

func textBlock(text string) json.RawMessage {
	return field.Map{"text": field.Quoted(text), "type": field.Quoted("text")}.JSON()
}

// anthropicTools offers the tools. A history with calls needs tools even when
// none is offered now: then its own are named, and none may be called.
func (l *lowering) anthropicTools(body field.Map) {
	tools := l.tools
	if len(tools) == 0 {
		if tools = l.historic(); len(tools) > 0 {
			body["tool_choice"] = json.RawMessage(`{"type":"none"}`)
		}
	}
	if len(tools) == 0 {
		return
	}
	out := make([]json.RawMessage, len(tools))
	for i, t := range tools {
		f := field.Map{"input_schema": t.schema, "name": field.Quoted(l.names.same(t.name))}
		if t.description != "" {
			f["description"] = field.Quoted(t.description)
		}
		out[i] = f.JSON()
	}
	body["tools"] = field.Array(out)
	modes := map[string]string{"auto": "auto", "none": "none", "required": "any", "tool": "tool"}
	if mode, chosen := modes[l.choice.mode]; chosen {
		f := field.Map{"type": field.Quoted(mode)}
		if l.choice.mode == "tool" {
			f["name"] = field.Quoted(l.names.same(l.choice.name))
		}
		body["tool_choice"] = f.JSON()
	}
}

func (l *lowering) anthropicParams(body field.Map) error {
	c := l.conf
	for _, stop := range c.Stop {
		if blank(stop) {
			return fmt.Errorf("stop: got %q, want a stop sequence that is not only space: anthropic takes no other", stop)
		}
	}
	if c.Seed != nil {
		return fmt.Errorf("seed: got %d, want none: anthropic takes no seed", *c.Seed)
	}
	if len(c.Stop) > 0 {
		body["stop_sequences"] = field.Texts(c.Stop)
	}
	setNumber(body, "temperature", c.Temperature)
	setNumber(body, "top_p", c.TopP)
	if c.TopK > 0 {
		body["top_k"] = field.Whole(c.TopK)
	}
	output := field.Map{}
	if err := l.anthropicThinking(body, output); err != nil {
		return err
	}
	if err := anthropicFormat(c.ResponseFormat, output); err != nil {
		return err
	}
	if len(output) > 0 {
		body["output_config"] = output.JSON()
	}
	return nil
}

// anthropicThinking sets max_tokens, which has to hold the thinking, and the
// thinking. A provider refuses thinking with a forced tool, and a budget with a
// tool loop that it was not part of (after a change of the model, say): then
// the call goes without.
func (l *lowering) anthropicThinking(body, output field.Map) error {
	t, limit := l.conf.Thinking, l.conf.MaxTokens
	if limit == 0 {
		limit = defaultMaxTokens + t.BudgetTokens
	}
	body["max_tokens"] = field.Whole(limit)
	switch {
	case !t.On || l.choice.forces():
	case t.BudgetTokens == 0:
		body["thinking"] = json.RawMessage(`{"type":"adaptive"}`)
	case t.BudgetTokens < minThinking || t.BudgetTokens >= limit:
		return fmt.Errorf("thinking.budget_tokens: got %d, want at least %d and less than max_tokens %d", t.BudgetTokens, minThinking, limit)
	case l.startsThinking():
		body["thinking"] = field.Map{"budget_tokens": field.Whole(t.BudgetTokens), "type": field.Quoted("enabled")}.JSON()
	}
	if t.On && t.Effort != "" {
		output["effort"] = field.Quoted(t.Effort)
	}
	return nil
}

// minThinking is the smallest budget that Anthropic takes.
const minThinking = 1024

// startsThinking says whether an answer in the middle of a tool loop begins
// with the model's thinking. It does when there is no such answer.
func (l *lowering) startsThinking() bool {
	last := len(l.turns) - 1
	if last < 1 || l.turns[last].role != "user" || l.turns[last].parts[0].kind != resultPart {
		return true
	}
	return l.turns[last-1].parts[0].thinks()
}

// anthropicFormat turns the neutral response format, which is OpenAI's, round.
func anthropicFormat(raw json.RawMessage, output field.Map) error {
	if raw == nil {
		return nil
	}
	var f struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return fmt.Errorf("response_format: %w", err)
	}
	switch {
	case f.Type == "text":
		return nil
	case f.Type != "json_schema" || field.KindOf(f.JSONSchema.Schema) != '{':
		return fmt.Errorf("response_format: got type %q, want \"json_schema\" with json_schema.schema: anthropic takes no other", f.Type)
	}
	schema, err := closedSchema("response_format.json_schema.schema", f.JSONSchema.Schema)
	if err != nil {
		return err
	}
	output["format"] = field.Map{"schema": schema, "type": field.Quoted("json_schema")}.JSON()
	return nil
}

func setNumber(body field.Map, key string, v *float64) {
	if v != nil {
		body[key] = field.Number(*v)
	}
}
