package kernel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// objectFields answers the members of a JSON object as raw values.
func objectFields(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	err := eachField(raw, func(name string, v json.RawMessage) bool {
		fields[name] = v
		return true
	})
	return fields, err
}

// eachField calls yield with each member of a JSON object until it answers
// false.
func eachField(raw json.RawMessage, yield func(name string, v json.RawMessage) bool) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return fmt.Errorf("got %s, want an object", typeOf(raw))
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		if !yield(key, json.RawMessage(raw[end-int64(len(v)):end:end])) {
			return nil
		}
	}
	return nil
}

// eachItem calls yield with each element of a JSON array.
func eachItem(raw json.RawMessage, yield func(i int, v json.RawMessage)) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '[' {
		return fmt.Errorf("got %s, want an array", typeOf(raw))
	}
	for i := 0; dec.PeekKind() != ']'; i++ {
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		yield(i, json.RawMessage(raw[end-int64(len(v)):end:end]))
	}
	return nil
}

// Field answers one member of a valid JSON object as raw text, or nil.
func Field(raw json.RawMessage, name string) json.RawMessage { return fieldOf(raw, name) }

// fieldOf answers one member of a JSON object, or nil.
func fieldOf(raw json.RawMessage, name string) (found json.RawMessage) {
	_ = eachField(raw, func(n string, v json.RawMessage) bool {
		if n == name {
			found = v
		}
		return found == nil
	})
	return found
}

// textOf answers the text of a JSON string, or "" for any other value.
func textOf(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(s)
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
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, name), ':')
		b = append(b, fields[name]...)
	}
	return append(b, '}')
}

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
