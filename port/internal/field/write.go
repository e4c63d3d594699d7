package field

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Map is a JSON object to write.
type Map map[string]json.RawMessage

// JSON answers the object with its keys sorted and its values as they are.
func (f Map) JSON() json.RawMessage {
	keys := make([]string, 0, len(f))
	size := 2
	for key, v := range f {
		keys = append(keys, key)
		size += len(key) + len(v) + 4
	}
	sort.Strings(keys)
	b := append(make([]byte, 0, size), '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, Quoted(key)...), ':'), f[key]...)
	}
	return append(b, '}')
}

// Array answers a JSON array of items.
func Array(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}

// Quoted answers s as a JSON string in its shortest form. Bytes that are no
// UTF-8 become U+FFFD.
func Quoted(s string) json.RawMessage {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		b, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return b
}

// Whole answers n as JSON.
func Whole(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// Number answers v in the shortest form that reads back as v.
func Number(v float64) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("0")
	}
	return b
}

// Texts answers a JSON array of strings.
func Texts(words []string) json.RawMessage {
	items := make([]json.RawMessage, len(words))
	for i, w := range words {
		items[i] = Quoted(w)
	}
	return Array(items)
}
