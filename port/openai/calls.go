package openai

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/knl-run/knl/port/internal/field"
)

// callPiece is a tool call, or a piece of one.
type callPiece struct {
	Index    json.RawMessage `json:"index"` // a number; some write it as text
	ID       json.RawMessage `json:"id"`    // text; some write a number
	Function function        `json:"function"`
}

// function is what a call is of.
type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // text; some write the object
}

// plain answers the text that a value is: a string's own, a number's digits.
func plain(raw json.RawMessage) string {
	var text string
	switch field.KindOf(raw) {
	case '"':
		_ = json.Unmarshal(raw, &text)
	case '0':
		text = string(raw)
	}
	return text
}

// arguments answers the text of the arguments.
func (f *function) arguments() string {
	if raw := f.Arguments; field.KindOf(raw) != '"' && isSet(raw) {
		return string(raw)
	}
	return plain(f.Arguments)
}

// call is a tool call that grows.
type call struct {
	index     string // empty: the server numbers none
	id, name  string
	chunk     int // the one that it was last heard of in
	arguments strings.Builder
}

// calls are the tool calls of an answer, in the order in which they began.
type calls struct {
	list    []*call
	chunk   int
	offered func(beginning string) bool // whether a tool is called so, or begins so
}

// whole takes the calls of a whole answer: each entry is one.
func (c *calls) whole(pieces []json.RawMessage) {
	for _, raw := range pieces {
		if p, ok := pieceOf(raw); ok {
			c.begin(p)
		}
	}
}

// take takes the pieces of one chunk of a stream.
func (c *calls) take(pieces []json.RawMessage) {
	c.chunk++
	for _, raw := range pieces {
		p, ok := pieceOf(raw)
		if !ok {
			continue
		}
		if one := c.find(p); one != nil {
			one.grow(p, c.chunk)
		} else {
			c.begin(p)
		}
	}
}

func pieceOf(raw json.RawMessage) (p callPiece, ok bool) {
	ok = lenient(raw, &p)
	return p, ok
}

func (c *calls) begin(p callPiece) {
	one := &call{index: plain(p.Index), id: plain(p.ID), name: p.Function.Name, chunk: c.chunk}
	one.arguments.WriteString(p.Function.arguments())
	c.list = append(c.list, one)
}

func (c *call) grow(p callPiece, chunk int) {
	c.chunk = chunk
	if c.id == "" {
		c.id = plain(p.ID)
	}
	if name := p.Function.Name; name != c.name && (c.name == "" || c.arguments.Len() == 0) {
		c.name += name // a name in pieces; one that is repeated is the same
	}
	if more := p.Function.arguments(); c.arguments.Len() == 0 || strings.TrimSpace(more) != "" || !c.complete() {
		c.arguments.WriteString(more)
	}
}

// find answers the call that a piece belongs to, nil for a new one. The index
// says it where there is one, the id where there is none, and the order where
// there is neither.
func (c *calls) find(p callPiece) *call {
	index, id := plain(p.Index), plain(p.ID)
	var found *call
	for _, one := range c.list {
		if index != "" && one.index == index || index == "" && id != "" && one.id == id {
			found = one
		}
	}
	if found == nil && index == "" && id == "" && len(c.list) > 0 {
		found = c.list[len(c.list)-1]
	}
	if found == nil || p.Function.Name != "" && c.isAnother(found, p) {
		return nil
	}
	return found
}

// isAnother says whether a piece with a name begins a call of its own although its
// server writes the index or the id of one before, or none: some number every
// call 0, and some repeat the name in each piece.
func (c *calls) isAnother(one *call, p callPiece) bool {
	id, name := plain(p.ID), p.Function.Name
	switch {
	case id != "" && one.id != "" && id != one.id:
		return true
	case plain(p.Index) == "" && one.chunk == c.chunk:
		return true // of one list
	case one.complete():
		return strings.TrimSpace(p.Function.arguments()) != ""
	}
	return name != one.name && one.name != "" && !c.offered(one.name+name)
}

func (c *call) complete() bool {
	text := strings.TrimSpace(c.arguments.String())
	if !strings.HasSuffix(text, "}") {
		return false // without reading it: a server may ask this of each piece
	}
	raw := jsontext.Value(text)
	return raw.Kind() == '{' && raw.IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// block answers the call in the neutral form.
func (c *call) block(a *asked) json.RawMessage {
	block := field.Map{
		"input": inputOf(c.arguments.String()), "name": field.Quoted(a.names.Name(c.name)), "type": field.Quoted("tool_use"),
	}
	if c.id != "" {
		block["id"] = field.Quoted(c.id)
	}
	return block.JSON()
}

// inputOf answers arguments as the log keeps them: nothing is an empty object,
// and what no log can hold as it is stands as its text, so that the kernel closes
// this call and no answer is lost.
func inputOf(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	switch {
	case text == "" || text == "null":
		return json.RawMessage("{}")
	case field.Sound([]byte(text)):
		return json.RawMessage(text)
	}
	return field.Quoted(arguments)
}
