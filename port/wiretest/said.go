package wiretest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// piece is a message, an item or a block, with the keys of every wire form.
type piece struct {
	Type, Role, Text, Name, Arguments string
	Content, Output, Input            json.RawMessage
	Failed                            bool `json:"is_error"`
	Calls                             []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// conversation grows by what each side says.
type conversation struct {
	said []string
	open string // who may go on in the last text
}

// Said answers the conversation that a model call holds, piece by piece and the
// same for every wire form: "user: …", "assistant: …", "call NAME: ARGUMENTS" and
// "result: …", where "error: " stands before the text of a result that failed.
// Texts of one side that follow each other are one. The system prompt, ids and
// what a model thought are left out.
func (r Request) Said() []string {
	var body struct{ Messages, Input []piece }
	_ = json.Unmarshal(r.Body, &body)
	var c conversation
	for _, p := range append(body.Messages, body.Input...) {
		c.take(p.Role, p)
	}
	return c.said
}

func (c *conversation) take(role string, p piece) {
	switch {
	case p.Type == "function_call", p.Type == "tool_use":
		c.call(p.Name, p.Arguments+string(p.Input))
	case p.Type == "function_call_output", p.Type == "tool_result", role == "tool":
		c.result(p)
	case p.Type == "text", p.Type == "input_text", p.Type == "output_text":
		c.text(role, p.Text)
	case p.Role == "user", p.Role == "assistant":
		for _, part := range parts(p.Content) {
			c.take(role, part)
		}
		for _, call := range p.Calls {
			c.call(call.Function.Name, call.Function.Arguments)
		}
	}
}

func (c *conversation) text(role, text string) {
	if c.open == role {
		c.said[len(c.said)-1] += "\n\n" + text
		return
	}
	c.said, c.open = append(c.said, role+": "+text), role
}

func (c *conversation) call(name, arguments string) {
	var b bytes.Buffer
	if json.Compact(&b, []byte(arguments)) == nil {
		arguments = b.String()
	}
	c.said, c.open = append(c.said, "call "+name+": "+arguments), ""
}

func (c *conversation) result(p piece) {
	var texts []string
	for _, part := range append(parts(p.Content), parts(p.Output)...) {
		texts = append(texts, part.Text)
	}
	text := strings.Join(texts, "\n\n")
	if p.Failed {
		text = "error: " + text
	}
	c.said, c.open = append(c.said, "result: "+text), ""
}

// parts answers a content that is a text, or a list, as a list.
func parts(content json.RawMessage) []piece {
	var list []piece
	if one := (piece{Type: "text"}); json.Unmarshal(content, &one.Text) == nil && one.Text != "" {
		return []piece{one}
	}
	_ = json.Unmarshal(content, &list)
	return list
}
