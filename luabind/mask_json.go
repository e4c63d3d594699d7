package luabind

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// MaskJSON hides secrets in the texts and names of valid JSON, for the log of a
// session, and says whether there were any; raw itself is not changed. Values
// below eight bytes, and those that a log is made of, stay: see [Masker]. A
// provider's signature is no exception by name: eight bytes that stand in one by
// chance are none of this world.
func (m *Masker) MaskJSON(raw json.RawMessage) (json.RawMessage, bool) {
	t := m.table.Load()
	if t == nil || !t.logged.mayBeIn(raw) {
		return raw, false
	}
	w := jsonMask{table: t.logged, raw: raw}
	for w.next() {
	}
	if w.out == nil {
		return raw, false
	}
	return append(w.out, raw[w.copied:]...), true
}

// mayBeIn says whether a walk through raw is worth it: whole or cut, a secret
// shows its beginning or its end, unless an escape stands for one of its letters.
func (t *maskTable) mayBeIn(raw []byte) bool {
	if len(t.values) == 0 {
		return false
	}
	for _, v := range t.values {
		if bytes.Contains(raw, []byte(v[:shortestPiece])) || bytes.Contains(raw, []byte(v[len(v)-shortestPiece:])) {
			return true
		}
	}
	return bytes.Contains(raw, []byte(`\u00`)) || bytes.Contains(raw, []byte(`\/`))
}

// jsonMask walks over the strings of a JSON text.
type jsonMask struct {
	table  *maskTable
	raw    []byte
	at     int
	out    []byte // nil until something changed
	copied int    // how much of raw stands in out
	names  int    // masked names so far: two of one object must not be one
}

// next masks the next string; false when there is none.
func (w *jsonMask) next() bool {
	q := bytes.IndexByte(w.raw[w.at:], '"')
	if q < 0 {
		return false
	}
	from := w.at + q
	w.at = stringEnd(w.raw, from)
	text, err := jsontext.AppendUnquote(nil, w.raw[from:w.at])
	if err != nil {
		return true // not JSON after all: it is the reader's to say
	}
	hidden := w.table.mask(string(text))
	if hidden == string(text) {
		return true
	}
	if rest := bytes.TrimLeft(w.raw[w.at:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
		if w.names++; w.names > 1 {
			hidden += strconv.Itoa(w.names)
		}
	}
	w.out = append(w.out, w.raw[w.copied:from]...)
	w.out = (&jsonWriter{}).text(w.out, hidden)
	w.copied = w.at
	return true
}

// stringEnd answers the index behind the string that begins at from.
func stringEnd(raw []byte, from int) int {
	for i := from + 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}
