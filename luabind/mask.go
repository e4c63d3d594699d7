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
)

// Masker hides the values that the host was given as secrets from every text
// that leaves it: the log of a session, the terminal, errors, documents. The
// zero value hides nothing yet; it is safe to use from many goroutines.
//
// It knows a value as it stands and as JSON, Go and a URL spell it, also inside
// JSON that is a text in JSON, and the piece of it that a cut leaves. It does not
// know what a script makes of it (base64, hex, backwards), nor what was recorded
// before the value was read.
type Masker struct {
	mu     sync.Mutex
	values []string
	table  atomic.Pointer[maskTable]
}

// maskTable is what a Masker looks for; it is read-only.
type maskTable struct {
	values []string // longest first: at one place the replacer takes the first that fits
	all    *strings.Replacer
	logged *maskTable // of values that may be hidden in a log; itself there
}

func newMaskTable(values []string) *maskTable {
	t := &maskTable{values: values}
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, masked)
	}
	t.all = strings.NewReplacer(pairs...)
	return t
}

// Add hides value from now on, and each line of it when it has several. Values
// below four bytes are left alone.
func (m *Masker) Add(value string) {
	value = strings.TrimSpace(value)
	m.mu.Lock()
	defer m.mu.Unlock()
	known := len(m.values)
	for _, v := range append(strings.Split(value, "\n"), value) {
		if v = strings.TrimSpace(v); len(v) < shortestSecret {
			continue
		}
		for _, s := range spellings(v) {
			if !slices.Contains(m.values, s) {
				m.values = append(m.values, s)
			}
		}
	}
	if len(m.values) == known {
		return
	}
	slices.SortFunc(m.values, func(a, b string) int { return len(b) - len(a) })
	t := newMaskTable(slices.Clone(m.values))
	t.logged = newMaskTable(slices.DeleteFunc(slices.Clone(m.values), unfitForLog))
	t.logged.logged = t.logged
	m.table.Store(t)
}

// spellings answers the ways in which value gets into a text.
func spellings(value string) []string {
	all := []string{value, quotedByGo(value), url.QueryEscape(value), url.PathEscape(value)}
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

// Mask answers text with every secret in it replaced by three stars.
func (m *Masker) Mask(text string) string {
	t := m.table.Load()
	if t == nil {
		return text
	}
	return t.mask(text)
}

func (t *maskTable) mask(text string) string { return t.pieces(t.all.Replace(text)) }

// Marks behind which a text goes on after a cut, and in front of which it was
// cut. Both ends of the text are such places too.
var (
	cutsBefore = []string{"…", "\"…", "\n[... "}
	cutsAfter  = []string{" bytes cut ...]\n", "…"}
)

// pieces hides what a cut left of a long secret.
func (t *maskTable) pieces(text string) string {
	for _, v := range t.values {
		if len(v) < 2*shortestPiece || !strings.Contains(text, v[:shortestPiece]) && !strings.Contains(text, v[len(v)-shortestPiece:]) {
			continue
		}
		for n := len(v) - 1; n >= shortestPiece; n-- {
			head, tail := v[:n], v[len(v)-n:]
			if rest, ok := strings.CutSuffix(text, head); ok {
				text = rest + masked
			}
			if rest, ok := strings.CutPrefix(text, tail); ok {
				text = masked + rest
			}
			for _, mark := range cutsBefore {
				text = strings.ReplaceAll(text, head+mark, masked+mark)
			}
			for _, mark := range cutsAfter {
				text = strings.ReplaceAll(text, mark+tail, mark+masked)
			}
		}
	}
	return text
}

// holds says whether text is a secret, or one of eight bytes or more is part of
// it, as in a URL with a password.
func (m *Masker) holds(text string) bool {
	t := m.table.Load()
	return t != nil && slices.ContainsFunc(t.values, func(v string) bool {
		return text == v || (len(v) >= 8 && strings.Contains(text, v))
	})
}
