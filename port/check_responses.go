package port

import (
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

type responsesBody struct {
	Model        string           `json:"model"`
	Input        []jsontext.Value `json:"input"`
	Instructions *string          `json:"instructions"`
	Store        jsontext.Value   `json:"store"`
	Tools        []responsesTool  `json:"tools"`
	ToolChoice   jsontext.Value   `json:"tool_choice"`
}

type responsesTool struct {
	Type       string         `json:"type"`
	Name       string         `json:"name"`
	Parameters jsontext.Value `json:"parameters"`
}

// responsesItem is an item of the input, with the keys of every type.
type responsesItem struct {
	Type      string         `json:"type"`
	Role      string         `json:"role"`
	Content   jsontext.Value `json:"content"`
	CallID    string         `json:"call_id"`
	Name      string         `json:"name"`
	Arguments string         `json:"arguments"`
	Output    jsontext.Value `json:"output"`
	Encrypted string         `json:"encrypted_content"`
	at        string
}

// itemKeys lists the keys of the items that a client writes itself.
var itemKeys = map[string][]string{
	"message":              {"type", "role", "content", "phase", "id", "status"},
	"function_call":        {"type", "call_id", "name", "arguments", "id", "status"},
	"function_call_output": {"type", "call_id", "output", "id", "status"},
}

// responsesCheck walks a Responses body from its top to its end.
type responsesCheck struct {
	*pairing
	body    responsesBody
	before  string // who spoke before: "user", "results", "assistant"
	thought string // where reasoning stands that has no item behind it yet
}

func checkResponses(t Target, raw []byte) error {
	c := &responsesCheck{pairing: newPairing(idLimits[Responses])}
	if err := decode("body", raw, &c.body); err != nil {
		return err
	}
	switch {
	case c.body.Model == "":
		return breaks(RuleForm, "model", "got nothing, want the name of a model")
	case len(c.body.Input) == 0:
		return breaks(RuleForm, "input", "got none, want at least one item")
	}
	if c.body.Instructions != nil {
		if err := checkText("instructions", *c.body.Instructions); err != nil {
			return err
		}
	}
	if err := c.tools(); err != nil {
		return err
	}
	for i, raw := range c.body.Input {
		if err := c.item(i, raw); err != nil {
			return err
		}
	}
	return c.ending(t)
}

func (c *responsesCheck) item(i int, raw jsontext.Value) error {
	it := responsesItem{at: fmt.Sprintf("input[%d]", i)}
	if err := decode(it.at, raw, &it); err != nil {
		return err
	}
	if it.Type == "" && it.Role != "" {
		it.Type = "message"
	}
	keys, written := itemKeys[it.Type]
	if !written && it.Type != "reasoning" && !containsWord(strings.Join(hosted, " "), it.Type) {
		return breaks(RuleForm, it.at, "got an item of type %q, which the provider does not know", it.Type)
	}
	if written {
		if err := checkKeys(it.at, raw, keys...); err != nil {
			return err
		}
	}
	if err := c.follows(it); err != nil {
		return err
	}
	switch it.Type {
	case "message":
		return c.message(it)
	case "function_call":
		return c.functionCall(it)
	case "function_call_output":
		if err := c.result(it.at, it.CallID); err != nil {
			return err
		}
		return c.content(it.at+".output", it.Output, "input_text input_image input_file")
	case "reasoning":
		return c.reasoning(it)
	}
	return nil
}

// follows holds the order of the items: the user begins and speaks once,
// reasoning has an item of its answer behind it, and open calls are answered
// before anything else.
func (c *responsesCheck) follows(it responsesItem) error {
	speaker := "assistant"
	switch {
	case it.Type == "function_call_output":
		speaker = "results"
	case it.Type == "message" && it.Role != "assistant":
		speaker = it.Role
	}
	switch {
	case c.thought != "" && speaker != "assistant":
		return c.thoughtless()
	case c.before == "" && speaker == "assistant":
		return breaks(RuleRoles, it.at, "got an answer first, want the user to begin")
	case c.before == "user" && speaker == "user":
		return breaks(RuleRoles, it.at, "got a second message of the user, want the roles to alternate")
	case speaker == "user" || speaker == "assistant" && c.before != "assistant":
		if err := c.closed(); err != nil {
			return err
		}
	}
	c.thought, c.before = "", speaker
	return nil
}

func (c *responsesCheck) thoughtless() error {
	return breaks(RuleThinking, c.thought, "got reasoning without the item of the answer that belongs to it")
}

func (c *responsesCheck) message(it responsesItem) error {
	types := "input_text input_image input_file"
	switch it.Role {
	case "user":
	case "assistant":
		types = "output_text refusal"
	default:
		return breaks(RuleRoles, it.at, "got the role %q, want user or assistant", it.Role)
	}
	return c.content(it.at+".content", it.Content, types)
}

func (c *responsesCheck) functionCall(it responsesItem) error {
	if raw := jsontext.Value(it.Arguments); raw.Kind() != '{' || !raw.IsValid() {
		return breaks(RuleForm, it.at, "got the arguments %q, want the text of a JSON object", it.Arguments)
	}
	return c.call(it.at, it.CallID, it.Name)
}

// reasoning that is not stored with the provider is what it carries.
func (c *responsesCheck) reasoning(it responsesItem) error {
	c.thought = it.at
	if string(c.body.Store) == "false" && it.Encrypted == "" {
		return breaks(RuleThinking, it.at, "got reasoning without encrypted_content, and nothing is stored to find it by")
	}
	return nil
}

// content wants text, or parts of the given types, and none of it blank.
func (c *responsesCheck) content(at string, raw jsontext.Value, types string) error {
	if raw.Kind() == '"' {
		var text string
		if err := decode(at, raw, &text); err != nil {
			return err
		}
		return checkText(at, text)
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if raw.Kind() != '[' {
		return breaks(RuleForm, at, "got %s, want text or parts", field.Got(raw))
	}
	if err := decode(at, raw, &parts); err != nil {
		return err
	}
	if len(parts) == 0 {
		return breaks(RuleText, at, "got no parts, want at least one")
	}
	for j, p := range parts {
		here := fmt.Sprintf("%s[%d]", at, j)
		if !containsWord(types, p.Type) {
			return breaks(RuleForm, here, "got a %q part, want one of %s", p.Type, types)
		}
		if strings.HasSuffix(p.Type, "_text") && (p.Text == nil || blank(*p.Text)) {
			return breaks(RuleText, here, "got blank text, want text that is not only space")
		}
	}
	return nil
}

func (c *responsesCheck) tools() error {
	if c.body.Tools != nil && len(c.body.Tools) == 0 {
		return breaks(RuleTools, "tools", "got an empty list, want tools or no such key")
	}
	seen := map[string]bool{}
	for i, t := range c.body.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if t.Type != "function" {
			return breaks(RuleTools, at, "got the type %q, want function", t.Type)
		}
		if err := declared(at, t.Name, t.Parameters, seen); err != nil {
			return err
		}
	}
	raw := c.body.ToolChoice
	switch {
	case raw == nil:
		return nil
	case len(seen) == 0:
		return breaks(RuleTools, "tool_choice", "got one without tools")
	case raw.Kind() == '"' && containsWord(`"auto" "none" "required"`, string(raw)):
		return nil
	}
	var one responsesTool
	if raw.Kind() != '{' || jsonv2.Unmarshal(raw, &one) != nil || !seen[one.Name] {
		return breaks(RuleTools, "tool_choice", "got %s, want auto, none, required or one of tools", raw)
	}
	return nil
}

func (c *responsesCheck) ending(t Target) error {
	switch {
	case c.thought != "":
		return c.thoughtless()
	case c.closed() != nil:
		return c.closed()
	case c.before == "assistant" && !t.Prefill:
		at := fmt.Sprintf("input[%d]", len(c.body.Input)-1)
		return breaks(RuleLast, at, "got the assistant's as the last item, want the user's: the model takes no prefill")
	}
	return nil
}
