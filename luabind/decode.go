package luabind

import (
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// shareLimit is the size of a text whose strings may share its one copy. From a
// larger one each string is copied, so that a short name kept by a script does
// not keep megabytes with it.
const shareLimit = 64 << 10

// FromJSON reads one JSON text into Lua values. It is strict whatever the text's
// source: a duplicate key, anything after the value, nesting beyond 128 and a
// number beyond a double are refused, the error opening with line:column.
// Bytes that are not UTF-8 and lone surrogates read as U+FFFD.
func FromJSON(l *lua.LState, raw []byte) (lua.LValue, error) {
	return fromText(l, string(raw))
}

func fromText(l *lua.LState, text string) (lua.LValue, error) {
	r := readers.Get().(*jsonReader)
	r.state, r.array, r.src = l, arrayMeta(l), text
	v, err := r.document()
	clear(r.stack[:cap(r.stack)])
	*r = jsonReader{stack: r.stack[:0]}
	readers.Put(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// jsonReader walks src once. Elements of open lists and records wait on one stack,
// so that each table is made in its final size.
type jsonReader struct {
	state *lua.LState
	array *lua.LTable
	src   string
	pos   int
	depth int
	stack []slot
}

type slot struct {
	key   string
	at    int // where the key stands
	value lua.LValue
}

var readers = sync.Pool{New: func() any { return &jsonReader{} }}

// smallNumbers are boxed once; most numbers in JSON are small and whole.
var smallNumbers = func() (table [256]lua.LValue) {
	for i := range table {
		table[i] = lua.LNumber(i)
	}
	return table
}()

func (r *jsonReader) document() (lua.LValue, error) {
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.peek(); r.pos < len(r.src) {
		return nil, r.want("the end of the text")
	}
	return v, nil
}

// peek skips blanks and answers the next byte, or 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.pos < len(r.src); r.pos++ {
		switch c := r.src[r.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) value() (lua.LValue, error) {
	switch c := r.peek(); c {
	case '"':
		s, err := r.text()
		return lua.LString(s), err
	case '{':
		return r.nested(r.record)
	case '[':
		return r.nested(r.list)
	case 't':
		return r.word("true", lua.LTrue)
	case 'f':
		return r.word("false", lua.LFalse)
	case 'n':
		return r.word("null", Null)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return r.number()
	}
	return nil, r.want("a JSON value")
}

func (r *jsonReader) word(word string, v lua.LValue) (lua.LValue, error) {
	if !strings.HasPrefix(r.src[r.pos:], word) {
		return nil, r.want("a JSON value")
	}
	r.pos += len(word)
	return v, nil
}

func (r *jsonReader) nested(read func() (lua.LValue, error)) (lua.LValue, error) {
	if r.depth == maxDepth {
		return nil, r.refuse(r.pos, "nested deeper than %d lists and records", maxDepth)
	}
	r.depth++
	r.pos++
	v, err := read()
	r.depth--
	return v, err
}

func (r *jsonReader) list() (lua.LValue, error) {
	from := len(r.stack)
	for first := true; ; first = false {
		more, err := r.more(first, ']')
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		r.stack = append(r.stack, slot{value: v})
	}
	elements := r.stack[from:]
	t := r.state.CreateTable(len(elements), 0)
	for i := range elements {
		t.RawSetInt(i+1, elements[i].value)
	}
	t.Metatable = r.array
	r.stack = r.stack[:from]
	return t, nil
}

func (r *jsonReader) record() (lua.LValue, error) {
	from := len(r.stack)
	for first := true; ; first = false {
		more, err := r.more(first, '}')
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if err := r.member(); err != nil {
			return nil, err
		}
	}
	members := r.stack[from:]
	t := r.state.CreateTable(0, len(members))
	for i := range members {
		m := &members[i]
		if t.RawGetString(m.key) != lua.LNil {
			return nil, r.refuse(m.at, "key %q stands twice in one record", m.key)
		}
		t.RawSetString(m.key, m.value)
	}
	r.stack = r.stack[:from]
	return t, nil
}

// more steps over a comma, or over the end of a list or record.
func (r *jsonReader) more(first bool, end byte) (bool, error) {
	c := r.peek()
	switch {
	case c == end:
		r.pos++
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, r.want("',' or '" + string(end) + "'")
	}
	r.pos++
	if r.peek() == end {
		return false, r.want("another element after ','")
	}
	return true, nil
}

func (r *jsonReader) member() error {
	if r.peek() != '"' {
		return r.want("a key in double quotes")
	}
	at := r.pos
	key, err := r.text()
	if err != nil {
		return err
	}
	if r.peek() != ':' {
		return r.want("':' after a key")
	}
	r.pos++
	v, err := r.value()
	r.stack = append(r.stack, slot{key: key, at: at, value: v})
	return err
}

// number reads the number at pos. A whole one of up to 15 digits takes the
// short way.
func (r *jsonReader) number() (lua.LValue, error) {
	from := r.pos
	if r.src[r.pos] == '-' {
		r.pos++
	}
	whole := r.digits()
	if lead := r.src[r.pos-whole : r.pos]; whole == 0 || (whole > 1 && lead[0] == '0') {
		r.pos -= whole
		return nil, r.want("a number without leading zeros")
	}
	if r.pos == len(r.src) || (r.src[r.pos] != '.' && r.src[r.pos]|0x20 != 'e') {
		return wholeNumber(r.src[from:r.pos]), nil
	}
	if err := r.fraction(); err != nil {
		return nil, err
	}
	f, err := strconv.ParseFloat(r.src[from:r.pos], 64)
	if err != nil {
		return nil, r.refuse(from, "number %s is larger than a Lua number holds", shorten(r.src[from:r.pos]))
	}
	if f == 0 {
		return smallNumbers[0], nil // never -0
	}
	return lua.LNumber(f), nil
}

func wholeNumber(text string) lua.LValue {
	if len(text) > 15 || text[0] == '-' {
		return integer(text)
	}
	n := 0
	for i := range len(text) {
		n = n*10 + int(text[i]-'0')
	}
	if n < len(smallNumbers) {
		return smallNumbers[n]
	}
	return lua.LNumber(n)
}

func (r *jsonReader) fraction() error {
	if r.src[r.pos] == '.' {
		if r.pos++; r.digits() == 0 {
			return r.want("a digit after the point")
		}
	}
	if r.pos == len(r.src) || r.src[r.pos]|0x20 != 'e' {
		return nil
	}
	r.pos++
	if r.pos < len(r.src) && (r.src[r.pos] == '+' || r.src[r.pos] == '-') {
		r.pos++
	}
	if r.digits() == 0 {
		return r.want("a digit in the exponent")
	}
	return nil
}

func (r *jsonReader) digits() int {
	from := r.pos
	for r.pos < len(r.src) && r.src[r.pos] >= '0' && r.src[r.pos] <= '9' {
		r.pos++
	}
	return r.pos - from
}
