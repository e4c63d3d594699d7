package luabind

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaskJSON hides secrets in the texts and names of valid JSON, for the log of a
// session, and says whether there were any; raw itself is not changed. Values
// below eight bytes, and those that a log is made of, stay: see [Masker]. A
// provider's signature is no exception by name: eight bytes that stand in one by
// chance are none of this world.
//
// The second name of a document that has a secret in it is followed by a 2, the
// third by a 3: two of one object must not become one.
func (m *Masker) MaskJSON(raw json.RawMessage) (json.RawMessage, bool) {
	return m.maskJSON(raw, jsonMask{view: loggedText})
}

// MaskResult hides secrets in valid JSON that leaves knl: as MaskJSON does, but
// each value, and a number that is one.
func (m *Masker) MaskResult(raw json.RawMessage) json.RawMessage {
	raw, _ = m.maskJSON(raw, jsonMask{view: resultText, numbers: true})
	return raw
}

func (m *Masker) maskJSON(raw json.RawMessage, w jsonMask) (json.RawMessage, bool) {
	t := m.table.Load()
	if t == nil || !t.mayBeInJSON(raw, w.view.level) {
		return raw, false
	}
	w.table, w.raw = t, raw
	for w.next() {
	}
	if w.out == nil {
		return raw, false
	}
	return append(w.out, raw[w.copied:]...), true
}

// mayBeInJSON says whether a walk through raw is worth it; an escape, of JSON or
// of a URL, may stand for any letter.
func (t *maskTable) mayBeInJSON(raw []byte, level maskLevel) bool {
	g := &t.ahead.first[level]
	return g.any && (hit(g, raw, 0) >= 0 || bytes.IndexByte(raw, '%') >= 0 || bytes.Contains(raw, []byte(`\u`)) || bytes.Contains(raw, []byte(`\/`)))
}

// jsonMask walks over the strings of a JSON text.
type jsonMask struct {
	table   *maskTable
	view    maskView
	numbers bool // a number that is a secret is masked
	raw     []byte
	at      int
	out     []byte              // nil until something changed
	copied  int                 // how much of raw stands in out
	names   int                 // masked names so far: two of one object must not be one
	taken   map[string]struct{} // names that look masked in raw; nil: not looked for yet
}

// next masks the next string; false when there is none.
func (w *jsonMask) next() bool {
	q := bytes.IndexByte(w.raw[w.at:], '"')
	if w.numbers {
		w.maskNumbers(q)
	}
	if q < 0 {
		return false
	}
	from := w.at + q
	w.at = stringEnd(w.raw, from)
	text, err := jsontext.AppendUnquote(nil, w.raw[from:w.at])
	if err != nil {
		return true // not JSON after all: it is the reader's to say
	}
	hidden := w.table.mask(string(text), w.view)
	if hidden == string(text) {
		return true
	}
	if isFieldName(w.raw[w.at:]) {
		hidden = w.freeName(hidden)
	}
	w.put(from, w.at, hidden)
	return true
}

// put writes text in place of the value that stands there.
func (w *jsonMask) put(from, to int, text string) {
	w.out = append(w.out, w.raw[w.copied:from]...)
	w.out = (&jsonWriter{}).text(w.out, text)
	w.copied = to
}

func isFieldName(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// freeName answers the masked name with its number, which it shares with no name
// that was there.
func (w *jsonMask) freeName(name string) string {
	if w.taken == nil {
		w.taken = starredNames(w.raw)
	}
	for {
		numbered := name
		if w.names++; w.names > 1 {
			numbered += strconv.Itoa(w.names)
		}
		if _, ok := w.taken[numbered]; !ok {
			return numbered
		}
	}
}

// starredNames answers the names in raw that have stars in them.
func starredNames(raw []byte) map[string]struct{} {
	names := map[string]struct{}{}
	for at := 0; ; {
		q := bytes.IndexByte(raw[at:], '"')
		if q < 0 {
			return names
		}
		from := at + q
		at = stringEnd(raw, from)
		if !isFieldName(raw[at:]) {
			continue
		}
		if text, err := jsontext.AppendUnquote(nil, raw[from:at]); err == nil && bytes.Contains(text, []byte(masked)) {
			names[string(text)] = struct{}{}
		}
	}
}

// maskNumbers masks the numbers that are secrets in the next n bytes, in which no
// string stands; n < 0 is the rest.
func (w *jsonMask) maskNumbers(n int) {
	const digits = "+-.0123456789Ee"
	end := len(w.raw)
	if n >= 0 {
		end = w.at + n
	}
	for i := w.at; i < end; i++ {
		from := i
		for i < end && strings.IndexByte(digits, w.raw[i]) >= 0 {
			i++
		}
		if i-from >= shortestSecret && w.table.isValue(string(w.raw[from:i])) {
			w.put(from, i, masked)
		}
	}
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
