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
	Index    json.RawMessage `json:"index"` // a number; some write it as text
	ID       json.RawMessage `json:"id"`    // text; some write a number
	Function function        `json:"function"`
	aside
}

// function is what a call is of.
type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // text; some write the object
	aside
}

// arguments answers the text of the arguments.
func (f *function) arguments() string { return f.joined(new(field.Halves)) }

// joined answers it as the next piece of a call.
func (f *function) joined(h *field.Halves) string {
	if raw := f.Arguments; field.KindOf(raw) != '"' && isSet(raw) {
		return string(raw)
	}
	return h.Text(f.Arguments)
}

// call is a tool call that grows.
type call struct {
	index     string // empty: the server numbers none
	id, name  string
	chunk     int // the one that it was last heard of in
	arguments strings.Builder
	cut       field.Halves
	beside    asides
}

// calls are the tool calls of an answer, in the order in which they began.
type calls struct {
	list    []*call
	chunk   int
	offered func(beginning string) bool // whether a tool is called so, or begins so
}

// whole takes the calls of a whole message: each entry is one, but for those that
// an earlier message had.
func (c *calls) whole(pieces []json.RawMessage) {
	c.chunk++
	for _, raw := range pieces {
		if p, ok := pieceOf(raw); ok && c.said(p, func(one *call) bool { return one.chunk < c.chunk }) == nil {
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
	ok = field.Lenient(raw, &p)
	return p, ok
}

func (c *calls) begin(p callPiece) {
	one := &call{index: field.Plain(p.Index), id: field.Plain(p.ID), name: p.Function.Name, chunk: c.chunk}
	one.arguments.WriteString(p.Function.joined(&one.cut))
	one.beside.take(p)
	c.list = append(c.list, one)
}

func (c *call) grow(p callPiece, chunk int) {
	c.chunk = chunk
	c.beside.take(p)
	if c.id == "" {
		c.id = field.Plain(p.ID)
	}
	if name := p.Function.Name; name != c.name && (c.name == "" || c.arguments.Len() == 0) {
		c.name += name // a name in pieces; one that is repeated is the same
	}
	c.growArguments(p.Function.joined(&c.cut))
}

// growArguments adds a piece. True arguments take the place of those that a server
// writes before it has any, and space behind arguments, or the same once more, is
// nothing.
func (c *call) growArguments(more string) {
	had := c.arguments.String()
	switch {
	case isNothing(more) && isComplete(had), isComplete(more) && sameArguments(had, more):
		return
	case isNothing(had) && strings.TrimSpace(more) != "":
		c.arguments.Reset()
	}
	c.arguments.WriteString(more)
}

// find answers the call that a piece belongs to, nil for a new one. The index
// says it where there is one, the id where there is none, and the order where
// there is neither.
func (c *calls) find(p callPiece) *call {
	index, id := field.Plain(p.Index), field.Plain(p.ID)
	if one := c.said(p, func(one *call) bool { return c.isSame(one, p) }); one != nil {
		return one
	}
	var found *call
	for _, one := range c.list {
		at := index != "" && one.index == index || index == "" && id != "" && one.id == id
		if at && (found == nil || id == "" || found.id != id || one.id == id) {
			found = one // the last, but where all have one index the one with the id
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

// said answers the call that a piece says once more, whole: by the same name, with
// the same arguments, and with no other id. Some servers end a stream with all that
// was in it. where says which calls may be meant.
func (c *calls) said(p callPiece, where func(*call) bool) *call {
	id, name, arguments := field.Plain(p.ID), p.Function.Name, p.Function.arguments()
	for _, one := range c.list {
		sameID := id == "" || one.id == "" || id == one.id
		if sameID && one.name == name && where(one) && sameArguments(one.arguments.String(), arguments) {
			return one
		}
	}
	return nil
}

// isSame says whether a piece has the index or the id of a call. Some servers number
// every call 0, so an index alone says nothing in one list, and for calls without
// arguments only that it is the last of that index.
func (c *calls) isSame(one *call, p callPiece) bool {
	index, id := field.Plain(p.Index), field.Plain(p.ID)
	if id != "" && id == one.id {
		return index == one.index || index == "" || one.index == ""
	}
	if index == "" || index != one.index || one.chunk == c.chunk {
		return false
	}
	return !isNothing(one.arguments.String()) || one == c.last(index)
}

// last answers the call of an index that began last.
func (c *calls) last(index string) (found *call) {
	for _, one := range c.list {
		if one.index == index {
			found = one
		}
	}
	return found
}

// isAnother says whether a piece with a name begins a call of its own although its
// server writes the index or the id of one before, or none: some number every
// call 0, and some repeat the name in each piece. Behind whole arguments another
// name is another call, and so are other arguments, but for those of a call that
// had none yet.
func (c *calls) isAnother(one *call, p callPiece) bool {
	id, name, had := field.Plain(p.ID), p.Function.Name, one.arguments.String()
	switch {
	case id != "" && one.id != "" && id != one.id:
		return !one.isCut(p)
	case field.Plain(p.Index) == "" && one.chunk == c.chunk:
		return true // of one list
	case !isComplete(had):
		return name != one.name && one.name != "" && !c.offered(one.name+name)
	case name != one.name && one.name != "":
		return true
	case isNothing(had) && c.isSame(one, p):
		return false
	}
	return strings.TrimSpace(p.Function.arguments()) != ""
}

// isCut says whether a piece with another id can only be more of the call, which a few
// servers give a new one in each piece: the call has the same number and name, its
// arguments are not whole, and the piece begins none.
func (c *call) isCut(p callPiece) bool {
	had, more := c.arguments.String(), strings.TrimSpace(p.Function.arguments())
	same := c.index != "" && c.index == field.Plain(p.Index) && c.name == p.Function.Name
	return same && !isNothing(had) && !isComplete(had) && more != "" && !strings.HasPrefix(more, "{")
}

// isNothing says whether arguments are none, however that is written.
func isNothing(arguments string) bool {
	if len(arguments) > 64 {
		return false // whatever it is, it is not worth reading at each piece
	}
	switch strings.Join(strings.Fields(arguments), "") {
	case "", "{}", "null":
		return true
	}
	return false
}

// sameArguments says whether arguments are the same, both whole, or both none.
func sameArguments(a, b string) bool {
	if isNothing(a) || isNothing(b) {
		return isNothing(a) && isNothing(b)
	}
	return isComplete(b) && isComplete(a) && compact(a) == compact(b)
}

func compact(raw string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		return raw
	}
	return b.String()
}

func isComplete(arguments string) bool {
	text := strings.TrimSpace(arguments)
	if !strings.HasSuffix(text, "}") {
		return false // without reading it: a server may ask this of each piece
	}
	raw := jsontext.Value(text)
	return raw.Kind() == '{' && raw.IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// block answers the call in the neutral form.
func (c *call) block(a *asked) json.RawMessage {
	block := field.Map{
		"input": inputOf(c.arguments.String() + c.cut.Rest()), "name": field.Quoted(a.names.Name(c.name)), "type": field.Quoted("tool_use"),
	}
	if c.id != "" {
		block["id"] = field.Quoted(c.id)
	}
	if raw := c.beside.raw(); raw != "" {
		block["provider"] = a.bag(field.Map{"raw": field.Quoted(raw)})
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
