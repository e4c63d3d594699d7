package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The readers in this file take text that came through the door and so is valid
// JSON. Other text makes them answer an error or an odd value, never panic.

var errNotJSON = errors.New("got text that is not JSON")

// skipSpace answers the first index from i on that holds no space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString answers the index behind the string that begins at i, or -1.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		end := i + n
		from := end
		for from > i && b[from-1] == '\\' {
			from--
		}
		if (end-from)%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
	return -1
}

// skipValue answers the index behind the value that begins at i, or -1.
func skipValue(b []byte, i int) int {
	if i < len(b) && b[i] == '"' {
		return skipString(b, i)
	}
	for start, depth := i, 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = skipString(b, i) - 1; i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return behind(start, i)
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return behind(start, i)
			}
		}
	}
	if i = len(b); i > 0 && b[i-1] != '"' { // a number or a word at the end of the text
		return i
	}
	return -1
}

// behind answers the end of a number or a word, or -1 when it has no bytes.
func behind(start, end int) int {
	if end == start {
		return -1
	}
	return end
}

// eachMember calls yield with each member of a JSON object, its name in quotes,
// until it answers false.
func eachMember(raw json.RawMessage, yield func(name, v json.RawMessage) bool) error {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return fmt.Errorf("got %s, want an object", typeOf(raw))
	}
	for {
		i = skipSpace(raw, i+1)
		if i < len(raw) && raw[i] == '}' {
			return nil
		}
		if i == len(raw) || raw[i] != '"' {
			return errNotJSON
		}
		end := skipString(raw, i)
		if end < 0 {
			return errNotJSON
		}
		name := raw[i:end]
		if i = skipSpace(raw, end); i == len(raw) || raw[i] != ':' {
			return errNotJSON
		}
		i = skipSpace(raw, i+1)
		if end = skipValue(raw, i); end < 0 {
			return errNotJSON
		}
		if !yield(name, raw[i:end:end]) {
			return nil
		}
		if i = skipSpace(raw, end); i == len(raw) || (raw[i] != ',' && raw[i] != '}') {
			return errNotJSON
		}
		if raw[i] == '}' {
			return nil
		}
	}
}

// eachField is eachMember with the name read.
func eachField(raw json.RawMessage, yield func(name string, v json.RawMessage) bool) error {
	return eachMember(raw, func(name, v json.RawMessage) bool { return yield(textOf(name), v) })
}

// objectFields answers the members of a JSON object as raw values.
func objectFields(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	err := eachField(raw, func(name string, v json.RawMessage) bool {
		fields[name] = v
		return true
	})
	return fields, err
}

// eachItem calls yield with each element of a JSON array.
func eachItem(raw json.RawMessage, yield func(i int, v json.RawMessage)) error {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '[' {
		return fmt.Errorf("got %s, want an array", typeOf(raw))
	}
	if i = skipSpace(raw, i+1); i < len(raw) && raw[i] == ']' {
		return nil
	}
	for n := 0; ; n++ {
		end := skipValue(raw, i)
		if end < 0 {
			return errNotJSON
		}
		yield(n, raw[i:end:end])
		if i = skipSpace(raw, end); i == len(raw) || (raw[i] != ',' && raw[i] != ']') {
			return errNotJSON
		}
		if raw[i] == ']' {
			return nil
		}
		i = skipSpace(raw, i+1)
	}
}

// fieldOf answers one member of a JSON object, or nil.
func fieldOf(raw json.RawMessage, name string) (found json.RawMessage) {
	_ = eachMember(raw, func(n, v json.RawMessage) bool {
		if isText(n, name) {
			found = v
		}
		return found == nil
	})
	return found
}

// isText says whether a value is the string s.
func isText(raw json.RawMessage, s string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	return string(raw[1:len(raw)-1]) == s || (bytes.IndexByte(raw, '\\') >= 0 && textOf(raw) == s)
}

// textOf answers the text of a JSON string, or "" for any other value.
func textOf(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(s)
}

// wholeOf answers a whole JSON number, or 0 for any other value.
func wholeOf(raw json.RawMessage) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// quote answers s as a JSON string.
func quote(s string) json.RawMessage { return appendQuoted(nil, s) }

func appendQuoted(b []byte, s string) []byte {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil { // invalid UTF-8; AppendQuote has written U+FFFD in its place
		return b
	}
	return b
}

// appendObject writes an object with its keys sorted.
func appendObject(b []byte, fields map[string]json.RawMessage) []byte {
	names, size := make([]string, 0, len(fields)), 2
	for name, v := range fields {
		names = append(names, name)
		size += len(name) + len(v) + 4
	}
	slices.Sort(names)
	b = append(slices.Grow(b, size), '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, name), ':')
		b = append(b, fields[name]...)
	}
	return append(b, '}')
}

// object writes an object member by member. The caller puts the names in order;
// they are plain words.
type object struct{ b []byte }

func newObject(size int) *object { return &object{append(make([]byte, 0, size+64), '{')} }

func (o *object) name(name string) *object {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
	return o
}

func (o *object) raw(name string, v json.RawMessage) *object {
	o.name(name)
	o.b = append(o.b, v...)
	return o
}

func (o *object) text(name, v string) *object {
	o.name(name)
	o.b = appendQuoted(o.b, v)
	return o
}

func (o *object) whole(name string, n int64) *object {
	o.name(name)
	o.b = strconv.AppendInt(o.b, n, 10)
	return o
}

func (o *object) json() json.RawMessage { return append(o.b, '}') }

// mapBlocks answers an array with each element replaced.
func mapBlocks(content json.RawMessage, fn func(json.RawMessage) json.RawMessage) json.RawMessage {
	b := []byte{'['}
	_ = eachItem(content, func(i int, block json.RawMessage) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, fn(block)...)
	})
	return append(b, ']')
}

// withField answers an object with one member set, its other members as they
// were and in their order.
func withField(obj json.RawMessage, name string, v json.RawMessage) json.RawMessage {
	b, done := []byte{'{'}, false
	put := func(n string, v json.RawMessage) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(appendQuoted(b, n), ':'), v...)
	}
	_ = eachField(obj, func(n string, old json.RawMessage) bool {
		if n == name {
			old, done = v, true
		}
		put(n, old)
		return true
	})
	if !done {
		put(name, v)
	}
	return append(b, '}')
}

// joinArray answers an array of the items as they are.
func joinArray(items []json.RawMessage) json.RawMessage {
	n := 2
	for _, it := range items {
		n += len(it) + 1
	}
	b := append(make([]byte, 0, n), '[')
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it...)
	}
	return append(b, ']')
}

// typeOf names the type of a JSON value for people.
func typeOf(raw json.RawMessage) string {
	switch k := jsontext.Value(raw).Kind(); k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "nothing"
}
