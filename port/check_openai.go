package port

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

type chatBody struct {
	Model      string           `json:"model"`
	Messages   []jsontext.Value `json:"messages"`
	Tools      []chatTool       `json:"tools"`
	ToolChoice jsontext.Value   `json:"tool_choice"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string         `json:"name"`
		Parameters jsontext.Value `json:"parameters"`
	} `json:"function"`
}

type chatTurn struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	ToolCallID string         `json:"tool_call_id"`
	ToolCalls  []chatCall     `json:"tool_calls"`
	at         string
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	} `json:"function"`
}

// chatCheck walks a Chat Completions body from its top to its end.
type chatCheck struct {
	*pairing
	body   chatBody
	before string // the role before, system left out
	last   string // the role of the last message
}

func checkOpenAI(t Target, raw []byte) error {
	c := &chatCheck{pairing: newPairing(idLimits[OpenAI])}
	if err := decode("body", raw, &c.body); err != nil {
		return err
	}
	switch {
	case c.body.Model == "":
		return breaks(RuleForm, "model", "got nothing, want the name of a model")
	case len(c.body.Messages) == 0:
		return breaks(RuleForm, "messages", "got none, want at least one")
	}
	if err := c.tools(); err != nil {
		return err
	}
	for i, raw := range c.body.Messages {
		if err := c.message(i, raw); err != nil {
			return err
		}
	}
	return c.ending(t)
}

func (c *chatCheck) message(i int, raw jsontext.Value) error {
	m := chatTurn{at: fmt.Sprintf("messages[%d]", i)}
	if err := decode(m.at, raw, &m); err != nil {
		return err
	}
	c.last = m.Role
	switch m.Role {
	case "system", "developer":
		if i > 0 {
			return breaks(RuleSystem, m.at, "got a %s message, want it first", m.Role)
		}
		return c.content(m, "text")
	case "tool":
		c.before = m.Role
		if err := checkKeys(m.at, raw, "role", "content", "tool_call_id"); err != nil {
			return err
		}
		if err := c.result(m.at, m.ToolCallID); err != nil {
			return err
		}
		return c.content(m, "text")
	}
	if err := c.closed(); err != nil {
		return err
	}
	return c.turn(m, raw)
}

func (c *chatCheck) turn(m chatTurn, raw jsontext.Value) error {
	if err := checkTurn(m.at, m.Role, c.before); err != nil {
		return err
	}
	c.before = m.Role
	if m.Role == "user" {
		if err := checkKeys(m.at, raw, "role", "content", "name"); err != nil {
			return err
		}
		return c.content(m, "text image_url file input_audio")
	}
	if err := checkKeys(m.at, raw, "role", "content", "tool_calls", "name", "refusal", "audio", reasoningSlot, contentSlot, detailsSlot); err != nil {
		return err
	}
	return c.answer(m)
}

// answer wants text or calls, and none of either that is empty.
func (c *chatCheck) answer(m chatTurn) error {
	if m.ToolCalls != nil && len(m.ToolCalls) == 0 {
		return breaks(RulePairs, m.at, "got an empty tool_calls, want calls or no such key")
	}
	for k, call := range m.ToolCalls {
		if err := c.toolCall(fmt.Sprintf("%s.tool_calls[%d]", m.at, k), call); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 && (m.Content == nil || m.Content.Kind() == 'n') {
		return nil
	}
	return c.content(m, "text refusal")
}

func (c *chatCheck) toolCall(at string, call chatCall) error {
	if call.Type != "function" {
		return breaks(RuleForm, at, "got the type %q, want function", call.Type)
	}
	var arguments string
	if call.Function.Arguments.Kind() == '"' {
		if err := decode(at, call.Function.Arguments, &arguments); err != nil {
			return err
		}
	}
	if raw := jsontext.Value(arguments); raw.Kind() != '{' || !raw.IsValid() {
		return breaks(RuleForm, at, "got the arguments %s, want the text of a JSON object", orNothing(call.Function.Arguments))
	}
	return c.call(at, call.ID, call.Function.Name)
}

// content wants text, or parts of the given types, and none of it blank.
func (c *chatCheck) content(m chatTurn, types string) error {
	at := m.at + ".content"
	if m.Content.Kind() == '"' {
		var text string
		if err := decode(at, m.Content, &text); err != nil {
			return err
		}
		return checkText(at, text)
	}
	if m.Content.Kind() != '[' {
		return breaks(RuleForm, at, "got %s, want text or parts", field.Got(m.Content))
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := decode(at, m.Content, &parts); err != nil {
		return err
	}
	if len(parts) == 0 {
		return breaks(RuleText, at, "got no parts, want at least one")
	}
	for j, p := range parts {
		here := fmt.Sprintf("%s[%d]", at, j)
		if !containsWord(types, p.Type) {
			return breaks(RuleForm, here, "got a %q part in a message of %s, want one of %s", p.Type, m.Role, types)
		}
		if p.Type == "text" && (p.Text == nil || blank(*p.Text)) {
			return breaks(RuleText, here, "got blank text, want text that is not only space")
		}
	}
	return nil
}

func (c *chatCheck) tools() error {
	if c.body.Tools != nil && len(c.body.Tools) == 0 {
		return breaks(RuleTools, "tools", "got an empty list, want tools or no such key")
	}
	seen := map[string]bool{}
	for i, t := range c.body.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if t.Type != "function" {
			return breaks(RuleTools, at, "got the type %q, want function", t.Type)
		}
		if err := declared(at, t.Function.Name, t.Function.Parameters, seen); err != nil {
			return err
		}
	}
	return c.toolChoice(seen)
}

func (c *chatCheck) toolChoice(offered map[string]bool) error {
	const at = "tool_choice"
	raw := c.body.ToolChoice
	switch {
	case raw == nil:
		return nil
	case len(offered) == 0:
		return breaks(RuleTools, at, "got one without tools")
	case raw.Kind() == '"' && containsWord(`"auto" "none" "required"`, strings.TrimSpace(string(raw))):
		return nil
	case raw.Kind() != '{':
		return breaks(RuleTools, at, "got %s, want auto, none, required or a function", raw)
	}
	var one chatTool
	if err := decode(at, raw, &one); err != nil {
		return err
	}
	if !offered[one.Function.Name] {
		return breaks(RuleTools, at, "got the tool %q, want one of tools", one.Function.Name)
	}
	return nil
}

func (c *chatCheck) ending(t Target) error {
	switch {
	case c.closed() != nil:
		return c.closed()
	case c.before == "":
		return breaks(RuleRoles, "messages", "got no user message, want one")
	case c.last == "assistant" && !t.Prefill:
		at := fmt.Sprintf("messages[%d]", len(c.body.Messages)-1)
		return breaks(RuleLast, at, "got the assistant's as the last message, want the user's: the model takes no prefill")
	}
	return nil
}

func containsWord(words, word string) bool {
	for _, w := range strings.Fields(words) {
		if w == word {
			return true
		}
	}
	return false
}
