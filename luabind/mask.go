package luabind

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// masked stands where a secret stood.
const masked = "***"

const (
	// shortestSecret is the least length of a value worth hiding: masking a
	// shorter one would eat ordinary text.
	shortestSecret = 4
	// shortestLogged is that for the log of a session, whose words and ids must
	// stay what they are.
	shortestLogged = 8
	// shortestPiece is how much of a long secret a cut must leave to be hidden.
	shortestPiece = 8
	// longestWord is up to where a value of small letters alone is taken for an
	// ordinary word.
	longestWord = 15
)

// Masker hides the values that the host was given as secrets from every text
// that leaves it: the log of a session, the terminal, errors, documents. The
// zero value hides nothing yet; it is safe to use from many goroutines.
//
// It knows a value as it stands and as JSON and Go spell it, also inside JSON that
// is a text in JSON, and each of these with any bytes of it as %XX, as a URL spells
// them. Of a value of 16 bytes or more it also knows the
// piece that a cut leaves: eight bytes or more of its beginning in front of a
// cut, or of its end behind one. A cut is an end of the text, the mark that knl
// sets where it cuts, three dots or stars, and a masked secret; in what is shown
// also the end of a line, a column and a quoted text.
//
// A value may begin or end as ordinary text does, which anyone may write: with
// the scheme and the host of a URL, with the name before its password, and with
// words (up to 12 small letters and two digits; - _ . : / = or a space beside
// each) as long as they are no more than half of the rest and 32 bytes. Such are
// "postgres://app:", "sk-ant-api03-", "/production". What lies between is the
// value's own, and a piece is one only when it has four bytes of that, or all. So
// a cut may leave three bytes of a key to be read behind its prefix, and the first
// words of a phrase.
//
// It does not know a piece of the middle, what a script makes of a value
// (base64, hex, backwards), nor what was recorded before the value was read. A
// value that is an ordinary word is hidden like any other, in what the model is
// told too; Warn hears of it.
//
// A text takes two passes at most, and two more each time that it has %XX in it,
// whatever the values are: the time is linear in the text alone.
type Masker struct {
	Warn func(text string) // is told of a value that will hide ordinary text; nil: nobody is

	mu     sync.Mutex
	values []maskValue
	table  atomic.Pointer[maskTable]
}

// Add hides value from now on, and each line of it when it has several. Values
// below four bytes are left alone.
func (m *Masker) Add(value string) {
	value = strings.TrimSpace(value)
	if m.learn(value) && m.Warn != nil && isWord(value) {
		m.Warn("a secret is an ordinary word: wherever the word stands it is masked, also in what the model is told, " +
			"which may then read *** in code and prose; take a secret of 16 bytes or more, or one with a digit")
	}
}

// learn says whether value was news.
func (m *Masker) learn(value string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := len(m.values)
	for _, v := range append(strings.Split(value, "\n"), value) {
		if v = strings.TrimSpace(v); len(v) < shortestSecret {
			continue
		}
		for _, s := range maskValues(v) {
			if !slices.ContainsFunc(m.values, func(known maskValue) bool { return known.text == s.text }) {
				m.values = append(m.values, s)
			}
		}
	}
	if len(m.values) == known {
		return false
	}
	m.table.Store(newMaskTable(slices.Clone(m.values)))
	return true
}

// spellings answers the ways in which value gets into a text.
func spellings(value string) []string {
	all := []string{value, quotedByGo(value), strings.ReplaceAll(value, " ", "+"), url.QueryEscape(value), url.PathEscape(value)}
	for range 3 { // as a text, as JSON in a text, as JSON in JSON in a text
		ours := (&jsonWriter{}).text(nil, value)
		theirs, err := json.Marshal(value) // spells < > & otherwise
		if err != nil {
			panic("BUG: luabind: a text does not encode: " + err.Error())
		}
		value = string(ours[1 : len(ours)-1])
		all = append(all, value, string(theirs[1:len(theirs)-1]))
	}
	return all
}

func quotedByGo(value string) string {
	q := strconv.Quote(value)
	return q[1 : len(q)-1]
}

// logWords are the long words that give a log and a conversation their form. A
// key of that name (some local servers want any) must not take it from them.
var logWords = []string{
	"assistant", "tool_use_id", "tool_result", "tool_call", "redacted_thinking", "signature", "document", "encrypted_content",
	"end_turn", "stop_sequence", "max_tokens", "pause_turn", "content_filter", "rate_limited", "overloaded", "transport",
	"context_overflow", "invalid_request", "cancelled", "interrupted", "input_schema", "description", "tool_choice", "messages",
	"input_tokens", "output_tokens", "thinking_tokens", "cache_read_tokens", "cache_write_tokens", "stop_reason", "media_type",
	"external", "function", "properties", "required", "additionalProperties", "session_opened", "session_closed", "provider",
	"is_error", "provider_id", "truncated", "malformed", "idempotency_key", "remaining", "scope_id", "llm_response", "llm_request",
}

func unfitForLog(value string) bool {
	return len(value) < shortestLogged || slices.ContainsFunc(logWords, func(w string) bool { return strings.Contains(w, value) })
}

// isWord says whether hiding value in a log is likely to hide words that are no
// secret.
func isWord(value string) bool {
	return !unfitForLog(value) && len(value) <= longestWord && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz") == ""
}

// Mask answers text, which is shown to someone, with every secret in it replaced
// by three stars.
func (m *Masker) Mask(text string) string {
	t := m.table.Load()
	if t == nil {
		return text
	}
	return t.mask(text, shownText)
}

// found answers where secrets stand in text, in order.
func (m *Masker) found(text string) []hiddenPart {
	t := m.table.Load()
	if t == nil {
		return nil
	}
	parts, _ := t.find(text, resultText)
	return parts
}

// holds says whether text is a secret, or one of eight bytes or more is part of
// it, as in a URL with a password.
func (m *Masker) holds(text string) bool {
	t := m.table.Load()
	return t != nil && slices.ContainsFunc(t.values, func(v maskValue) bool {
		return text == v.text || (len(v.text) >= 8 && strings.Contains(text, v.text))
	})
}
