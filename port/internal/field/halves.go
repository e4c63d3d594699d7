package field

import (
	"encoding/json"
	"strings"
)

// Halves joins a character that a server cut in two: proxies that count in UTF-16
// end one piece of a text with `\ud83d` and begin the next one with `\ude00`. A text
// has its own Halves.
type Halves struct {
	first string // the escape that waits for its other half
}

// Text answers the text of a piece, with the half that the piece before ended with
// and without the one that it ends with itself. A value that is no string is what
// [Plain] makes of it.
func (h *Halves) Text(raw json.RawMessage) string {
	inner, isText := strings.CutPrefix(string(raw), `"`)
	if !isText || h.first == "" && !endsInHalf(strings.TrimSuffix(inner, `"`)) {
		return Plain(raw)
	}
	inner = h.first + strings.TrimSuffix(inner, `"`)
	h.first = ""
	if endsInHalf(inner) {
		inner, h.first = inner[:len(inner)-escape], inner[len(inner)-escape:]
	}
	return Plain(json.RawMessage(`"` + inner + `"`))
}

// Rest answers what stands for a half whose other one never came.
func (h *Halves) Rest() string {
	if h.first == "" {
		return ""
	}
	h.first = ""
	return "\uFFFD"
}

// escape is the length of `\ud83d`.
const escape = 6

// endsInHalf says whether the inside of a JSON string ends with the escape of a first
// half, D800 to DBFF.
func endsInHalf(inner string) bool {
	if len(inner) < escape {
		return false
	}
	before, last := inner[:len(inner)-escape], strings.ToLower(inner[len(inner)-escape:])
	slashes := len(before) - len(strings.TrimRight(before, `\`))
	return strings.HasPrefix(last, `\ud`) && strings.ContainsAny(last[3:4], "89ab") && slashes%2 == 0
}
