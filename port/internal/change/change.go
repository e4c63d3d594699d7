// Package change says where two requests differ, path by path and in few words.
//
// Paths count from 1, as Lua does; a list of tools is compared by their names:
//
//	messages[3].content[1].text: got "…the 2nd", want "…the 3rd" (from byte 120)
//	tools.grep.description: got nothing, want "Finds lines."
package change

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port/internal/field"
)

// shownLines is how many differences are told; the rest is counted.
const shownLines = 5

// Requests answers how got differs from want, at most five places of it; nil
// when the two are the same bytes.
func Requests(got, want *kernel.Request) []string {
	a, b := got.Canonical(), want.Canonical()
	if bytes.Equal(a, b) {
		return nil
	}
	w := &walk{}
	w.value("", a, b)
	switch more := w.found - len(w.lines); {
	case w.found == 0:
		return []string{"the same values, written with other bytes"}
	case more > 0:
		return append(w.lines, fmt.Sprintf("%d more", more))
	}
	return w.lines
}

// Between answers how many places of got differ from want.
func Between(got, want *kernel.Request) int {
	w := &walk{}
	w.value("", got.Canonical(), want.Canonical())
	return w.found
}

// walk goes through two values side by side.
type walk struct {
	lines []string
	found int
}

func (w *walk) differ(path, format string, args ...any) {
	if w.found++; w.found > shownLines {
		return
	}
	w.lines = append(w.lines, path+": "+fmt.Sprintf(format, args...))
}

// value compares; nil stands for nothing.
func (w *walk) value(path string, got, want json.RawMessage) {
	a, b := field.KindOf(got), field.KindOf(want)
	switch {
	case bytes.Equal(got, want):
	case got == nil || want == nil || a != b:
		w.differ(path, "got %s, want %s", brief(got), brief(want))
	case a == '{':
		w.members(path, fieldsOf(got), fieldsOf(want))
	case a == '[':
		w.list(path, got, want)
	case a == '"':
		w.text(path, unquoted(got), unquoted(want))
	default:
		w.differ(path, "got %s, want %s", brief(got), brief(want))
	}
}

func (w *walk) members(path string, got, want map[string]json.RawMessage) {
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	for name := range got {
		if want[name] == nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		at := name
		if path != "" {
			at = path + "." + name
		}
		w.value(at, got[name], want[name])
	}
}

// list compares lists item by item, or by name when all have one.
func (w *walk) list(path string, got, want json.RawMessage) {
	a, _ := field.Elements(got) // a request is sound JSON
	b, _ := field.Elements(want)
	if x, y := named(a), named(b); x != nil && y != nil {
		w.members(path, x, y)
		return
	}
	for i := range max(len(a), len(b)) {
		w.value(fmt.Sprintf("%s[%d]", path, i+1), item(a, i), item(b, i))
	}
}

func item(list []json.RawMessage, i int) json.RawMessage {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// named answers items by their names, nil when one has none of its own.
func named(list []json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(list))
	for _, raw := range list {
		if field.KindOf(raw) != '{' {
			return nil
		}
		fields := fieldsOf(raw)
		name := unquoted(fields["name"])
		if name == "" || out[name] != nil || fields["type"] != nil {
			return nil
		}
		out[name] = raw
	}
	return out
}

// sight is how many bytes of a text are shown on each side of where it parts.
const sight = 40

func (w *walk) text(path, got, want string) {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	from := at
	for from > 0 && (at-from < sight/2 || !utf8.RuneStart(want[from])) {
		from--
	}
	where := ""
	if from > 0 {
		where = fmt.Sprintf(" (from byte %d)", at+1)
	}
	w.differ(path, "got %s, want %s%s", quotedAt(got, from, at), quotedAt(want, from, at), where)
}

// quotedAt quotes text from a byte on, to some bytes behind where it parts.
func quotedAt(text string, from, at int) string {
	end, head, tail := min(at+sight, len(text)), "", ""
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	if from > 0 {
		head = "…"
	}
	if end < len(text) {
		tail = "…"
	}
	return fmt.Sprintf("%q", head+text[min(from, end):end]+tail)
}

// brief shows a value on one short line.
func brief(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if len(text) <= 2*sight {
		return text
	}
	end := 2 * sight
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

func fieldsOf(raw json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &out)
	return out
}

func unquoted(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}
