package port

import (
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

// maxCacheMarks is how many cache_control marks a Messages body may carry.
const maxCacheMarks = 4

type messagesBody struct {
	Model      string           `json:"model"`
	MaxTokens  int64            `json:"max_tokens"`
	System     jsontext.Value   `json:"system"`
	Messages   []jsontext.Value `json:"messages"`
	Tools      []jsontext.Value `json:"tools"`
	ToolChoice *struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Thinking struct {
		Type string `json:"type"`
	} `json:"thinking"`
}

// messagesCheck walks a Messages body from its top to its end.
type messagesCheck struct {
	*pairing
	target Target
	body   messagesBody
	marks  int
	calls  bool // a tool_use or tool_result was seen
	first  string
	last   wireMessage
}

type wireMessage struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
	at      string
	blocks  []wireBlock
}

func checkAnthropic(t Target, raw []byte) error {
	c := &messagesCheck{pairing: newPairing(idLimits[Anthropic]), target: t}
	if err := decode("body", raw, &c.body); err != nil {
		return err
	}
	switch {
	case c.body.Model == "":
		return breaks(RuleForm, "model", "got nothing, want the name of a model")
	case c.body.MaxTokens < 1:
		return breaks(RuleForm, "max_tokens", "got %d, want at least 1", c.body.MaxTokens)
	case len(c.body.Messages) == 0:
		return breaks(RuleForm, "messages", "got none, want at least one")
	}
	steps := []func() error{c.system, c.tools, c.messages, c.closed, c.toolsNamed, c.toolChoice, c.thinkingLoop, c.cache, c.ending}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// system may be absent, text, or text blocks.
func (c *messagesCheck) system() error {
	if c.body.System == nil {
		return nil
	}
	m := wireMessage{Role: "system", Content: c.body.System}
	return c.content(&m, "system")
}

func (c *messagesCheck) messages() error {
	for i, raw := range c.body.Messages {
		m := wireMessage{at: fmt.Sprintf("messages[%d]", i)}
		if err := decode(m.at, raw, &m); err != nil {
			return err
		}
		if err := checkKeys(m.at, raw, "role", "content"); err != nil {
			return err
		}
		if err := checkTurn(m.at, m.Role, c.last.Role); err != nil {
			return err
		}
		if err := c.content(&m, m.at+".content"); err != nil {
			return err
		}
		if m.Role == "user" {
			if err := c.closed(); err != nil {
				return err
			}
		}
		if m.Role == "user" && i > 0 && i == len(c.body.Messages)-1 {
			c.first = firstOfLoop(c.last, m)
		}
		c.last = m
	}
	return nil
}

// checkTurn says whether role may follow the role before.
func checkTurn(at, role, before string) error {
	switch {
	case role == "system":
		return breaks(RuleSystem, at, "got a system message, want the system prompt before the conversation")
	case role != "user" && role != "assistant":
		return breaks(RuleRoles, at, "got the role %q, want user or assistant", role)
	case before == "" && role != "user":
		return breaks(RuleRoles, at, "got %s first, want user", role)
	case role == before:
		return breaks(RuleRoles, at, "got %s twice in a row, want the roles to alternate", role)
	}
	return nil
}

func (c *messagesCheck) content(m *wireMessage, at string) error {
	if m.Content.Kind() == '"' {
		var text string
		if err := decode(at, m.Content, &text); err != nil {
			return err
		}
		m.blocks = []wireBlock{{Type: "text", Text: &text}}
		return checkText(at, text)
	}
	var raws []jsontext.Value
	if m.Content.Kind() != '[' {
		return breaks(RuleForm, at, "got %s, want text or blocks", field.Got(m.Content))
	}
	if err := decode(at, m.Content, &raws); err != nil {
		return err
	}
	if len(raws) == 0 {
		return breaks(RuleText, at, "got no blocks, want at least one")
	}
	for j, raw := range raws {
		if err := c.block(m, fmt.Sprintf("%s[%d]", at, j), raw); err != nil {
			return err
		}
	}
	if last := m.blocks[len(m.blocks)-1]; m.Role == "assistant" && isThinking(last.Type) {
		return breaks(RuleThinking, at, "got %s as the last block of an answer, want something behind it", last.Type)
	}
	return nil
}

func (c *messagesCheck) block(m *wireMessage, at string, raw jsontext.Value) error {
	var b wireBlock
	if err := decode(at, raw, &b); err != nil {
		return err
	}
	if b.CacheControl != nil {
		c.marks++
	}
	if b.Provider != nil && b.Provider.Port != "" {
		return breaks(RuleForm, at, "got the key \"provider\", want it taken off")
	}
	if err := m.allows(at, b); err != nil {
		return err
	}
	m.blocks = append(m.blocks, b)
	switch b.Type {
	case "text":
		if b.Text == nil {
			return breaks(RuleText, at, "got no text")
		}
		return checkText(at, *b.Text)
	case "thinking":
		if b.Signature == "" && !c.target.Compatible {
			return breaks(RuleThinking, at, "got no signature, want the block as the model gave it")
		}
	case "tool_use":
		return c.use(at, b, raw)
	case "tool_result":
		return c.toolResult(m, at, b, raw)
	case "image", "document":
		return checkMedia(at, b)
	case "":
		return breaks(RuleForm, at, "got a block without a type")
	}
	return nil
}

// checkMedia wants a source that the provider can read.
func checkMedia(at string, b wireBlock) error {
	if !isMedia(b) {
		return breaks(RuleForm, at, "got %s with no source that can be read, want base64 with media_type and data, or url", b.Type)
	}
	if fault := (Target{Dialect: Anthropic}).mediaFault(b.Type, json.RawMessage(b.Source)); fault != "" {
		return breaks(RuleForm, at, "%s", fault)
	}
	return nil
}

// placed lists the roles that a block of our own may stand in. Other blocks are
// the provider's: it wrote them into an answer.
var placed = map[string]string{
	"text": "system user tool assistant", "image": "user tool", "document": "user tool",
	"tool_result": "user", "tool_use": "assistant",
}

func (m *wireMessage) allows(at string, b wireBlock) error {
	roles, ours := placed[b.Type]
	if !ours {
		roles = "assistant"
	}
	if containsWord(roles, m.Role) {
		return nil
	}
	rule := RuleForm
	if isThinking(b.Type) {
		rule = RuleThinking
	} else if b.Type == "tool_use" || b.Type == "tool_result" {
		rule = RulePairs
	}
	return breaks(rule, at, "got a %q block in a message of %s, want it in one of %s", b.Type, m.Role, roles)
}

func (c *messagesCheck) use(at string, b wireBlock, raw jsontext.Value) error {
	c.calls = true
	if b.Input.Kind() != '{' {
		return breaks(RuleForm, at, "got the input %s, want an object", orNothing(b.Input))
	}
	if err := checkKeys(at, raw, "type", "id", "name", "input", "cache_control"); err != nil {
		return err
	}
	return c.call(at, b.ID, b.Name)
}

func (c *messagesCheck) toolResult(m *wireMessage, at string, b wireBlock, raw jsontext.Value) error {
	c.calls = true
	if n := len(m.blocks); n > 1 && m.blocks[n-2].Type != "tool_result" {
		return breaks(RulePairs, at, "got a tool_result behind a %s block, want the results first", m.blocks[n-2].Type)
	}
	if err := checkKeys(at, raw, "type", "tool_use_id", "content", "is_error", "cache_control"); err != nil {
		return err
	}
	if b.Content != nil {
		inner := wireMessage{Role: "tool", Content: b.Content}
		if err := c.content(&inner, at+".content"); err != nil {
			return err
		}
	} else if b.IsError {
		return breaks(RuleText, at, "got an error without content, want a word about it")
	}
	return c.result(at, b.ToolUseID)
}

// tools checks the declared tools; toolsNamed wants them where calls stand.
func (c *messagesCheck) tools() error {
	seen := map[string]bool{}
	for i, raw := range c.body.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		var t struct {
			Type         string         `json:"type"`
			Name         string         `json:"name"`
			InputSchema  jsontext.Value `json:"input_schema"`
			CacheControl jsontext.Value `json:"cache_control"`
		}
		if err := decode(at, raw, &t); err != nil {
			return err
		}
		if t.CacheControl != nil {
			c.marks++
		}
		if t.Type != "" && t.Type != "custom" {
			continue
		}
		if err := declared(at, t.Name, t.InputSchema, seen); err != nil {
			return err
		}
		if fault := nameFault(t.InputSchema); fault != "" && !c.target.Compatible {
			return breaks(RuleTools, at, "%s", fault)
		}
	}
	return nil
}

func (c *messagesCheck) toolsNamed() error {
	if c.calls && len(c.body.Tools) == 0 {
		return breaks(RuleTools, "tools", "got none, want the tools of the calls in the messages")
	}
	return nil
}

func (c *messagesCheck) toolChoice() error {
	choice := c.body.ToolChoice
	switch {
	case choice == nil:
		return nil
	case len(c.body.Tools) == 0:
		return breaks(RuleTools, "tool_choice", "got one without tools")
	case !containsWord("auto any none tool", choice.Type):
		return breaks(RuleTools, "tool_choice", "got the type %q, want auto, any, none or tool", choice.Type)
	case containsWord("enabled adaptive", c.body.Thinking.Type) && containsWord("any tool", choice.Type):
		return breaks(RuleThinking, "tool_choice", "got %q with thinking, want auto or none", choice.Type)
	case choice.Type == "tool":
		return c.offers(choice.Name)
	}
	return nil
}

func (c *messagesCheck) offers(name string) error {
	for _, raw := range c.body.Tools {
		var t struct {
			Name string `json:"name"`
		}
		if decode("tools", raw, &t) == nil && t.Name == name {
			return nil
		}
	}
	return breaks(RuleTools, "tool_choice", "got the tool %q, want one of tools", name)
}

// firstOfLoop answers the first block of the answer that the results in next
// belong to, or nothing when next is no part of a tool loop.
func firstOfLoop(answer, next wireMessage) string {
	if len(next.blocks) == 0 || next.blocks[0].Type != "tool_result" {
		return ""
	}
	return answer.blocks[0].Type
}

func (c *messagesCheck) thinkingLoop() error {
	if c.body.Thinking.Type != "enabled" || c.first == "" || isThinking(c.first) {
		return nil
	}
	return breaks(RuleThinking, fmt.Sprintf("messages[%d]", len(c.body.Messages)-2), "got %s first in the answer of a tool loop, want thinking: it is enabled", c.first)
}

func (c *messagesCheck) cache() error {
	if c.marks > maxCacheMarks {
		return breaks(RuleCache, "body", "got %d cache_control marks, want at most %d", c.marks, maxCacheMarks)
	}
	return nil
}

func (c *messagesCheck) ending() error {
	if c.last.Role != "assistant" {
		return nil
	}
	if !c.target.Prefill || c.body.Thinking.Type != "" && c.body.Thinking.Type != "disabled" {
		return breaks(RuleLast, c.last.at, "got the assistant's as the last message, want the user's: the model takes no prefill")
	}
	if last := c.last.blocks[len(c.last.blocks)-1]; last.Text != nil && trimmedRight(*last.Text) != *last.Text {
		return breaks(RuleLast, c.last.at, "got a prefill that ends with space")
	}
	return nil
}
