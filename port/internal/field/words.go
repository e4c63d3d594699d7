package field

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// KindOf answers the kind of a JSON value by its first byte; every number is '0'.
func KindOf(raw []byte) jsontext.Kind { return jsontext.Value(raw).Kind() }

// Got names a JSON value for an error: a number, boolean or null by itself,
// anything longer by its kind.
func Got(raw []byte) string {
	switch KindOf(raw) {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0', 't', 'f', 'n':
		return strings.TrimSpace(string(raw))
	}
	if len(raw) == 0 {
		return "nothing"
	}
	return "bytes that are not JSON"
}

// Hint answers ` (did you mean "x"?)`, or the choices when none is near.
func Hint(got string, choices []string) string {
	if hint := Near(got, choices); hint != "" {
		return hint
	}
	return " (known: " + List(choices) + ")"
}

// Near answers ` (did you mean "x"?)`, or nothing when no choice is near.
func Near(got string, choices []string) string {
	near, ok := maybeNearest(got, choices)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", near)
}

// List joins choices for an error.
func List(choices []string) string { return strings.Join(choices, ", ") }

// maybeNearest answers the choice that differs least from got, when it differs
// in at most a third of its bytes, or in two where that is half of them.
func maybeNearest(got string, choices []string) (string, bool) {
	best, at := "", -1
	for _, choice := range choices {
		d := distance(got, choice)
		if d <= max(len(choice)/3, min(2, len(choice)/2)) && (at < 0 || d < at) {
			best, at = choice, d
		}
	}
	return best, at >= 0
}

// distance counts the bytes to insert, delete or replace between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			swap := diagonal
			if a[i-1] != b[j-1] {
				swap++
			}
			diagonal = row[j]
			row[j] = min(row[j]+1, row[j-1]+1, swap)
		}
	}
	return row[len(b)]
}
