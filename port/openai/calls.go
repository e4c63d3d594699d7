package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

// callPiece is a tool call, or a piece of one.
type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // text; some write the object
	} `json:"function"`
}

// arguments answers the text of the arguments.
func (p *callPiece) arguments() string {
	var text string
	if raw := p.Function.Arguments; field.KindOf(raw) == '"' {
		_ = json.Unmarshal(raw, &text)
	} else if isSet(raw) {
		text = string(raw)
	}
	return text
}

// call is a tool call that grows.
type call struct {
	index     int // -1: the server numbers none
	id, name  string
	arguments strings.Builder
}

// calls are the tool calls of an answer, in the order in which they began.
type calls struct{ list []*call }

// take adds a piece to the call that it belongs to.
func (c *calls) take(p callPiece) {
	arguments := p.arguments()
	one := c.find(p, arguments)
	if one == nil {
		one = &call{index: -1, id: p.ID, name: p.Function.Name}
		if p.Index != nil {
			one.index = *p.Index
		}
		c.list = append(c.list, one)
		one.arguments.WriteString(arguments)
		return
	}
	if one.id == "" {
		one.id = p.ID
	}
	if name := p.Function.Name; name != one.name && one.arguments.Len() == 0 {
		one.name += name // a name in pieces; one that is repeated is the same
	}
	one.arguments.WriteString(arguments)
}

// find answers the call that a piece belongs to, nil for a new one. The index
// says it where there is one, the id where there is none, and the order where
// there is neither. A server that numbers every call 0, or none, begins a new one
// with another id, or with a name behind arguments that are complete.
func (c *calls) find(p callPiece, arguments string) *call {
	var found *call
	for _, one := range c.list {
		switch {
		case p.Index != nil && one.index == *p.Index, p.Index == nil && p.ID != "" && one.id == p.ID:
			found = one
		}
	}
	if found == nil && p.Index == nil && p.ID == "" && len(c.list) > 0 {
		found = c.list[len(c.list)-1]
	}
	switch {
	case found == nil:
	case p.ID != "" && found.id != "" && found.id != p.ID && p.Function.Name != "":
		return nil
	case p.Function.Name != "" && p.ID == "" && arguments != "" && found.complete():
		return nil
	}
	return found
}

func (c *call) complete() bool {
	raw := jsontext.Value(c.arguments.String())
	return raw.Kind() == '{' && raw.IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// block answers the call in the neutral form. Arguments that are no JSON stand
// in it as their text, and the kernel closes the call for it.
func (c *call) block(a *asked) json.RawMessage {
	block := field.Map{
		"input": inputOf(c.arguments.String()), "name": field.Quoted(a.names.Name(c.name)), "type": field.Quoted("tool_use"),
	}
	if c.id != "" {
		block["id"] = field.Quoted(c.id)
	}
	return block.JSON()
}

func inputOf(arguments string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(arguments))
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return json.RawMessage("{}")
	case jsontext.Value(raw).IsValid(jsontext.AllowInvalidUTF8(true)):
		return raw
	}
	return field.Quoted(arguments)
}
