package luabind

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// masked stands where a secret stood.
const masked = "***"

// shortestSecret is the least length of a value worth hiding: masking a shorter
// one would eat ordinary text.
const shortestSecret = 4

// Masker hides the values that the host was given as secrets from every text
// that leaves it: logs, the terminal. The zero value hides nothing yet; it is
// safe to use from many goroutines.
type Masker struct {
	mu       sync.Mutex
	values   []string
	replacer atomic.Pointer[strings.Replacer]
}

// Add hides value from now on, as it stands, as JSON spells it, and each line
// of it when it has several. Values below four bytes are left alone.
func (m *Masker) Add(value string) {
	value = strings.TrimSpace(value)
	quoted := (&jsonWriter{}).text(nil, value)
	spellings := append(strings.Split(value, "\n"), value, string(quoted[1:len(quoted)-1]))
	m.mu.Lock()
	defer m.mu.Unlock()
	known := len(m.values)
	for _, s := range spellings {
		s = strings.TrimSpace(s)
		if len(s) >= shortestSecret && !slices.Contains(m.values, s) {
			m.values = append(m.values, s)
		}
	}
	if len(m.values) == known {
		return
	}
	// At one place the replacer takes the first that fits: the longest must win.
	slices.SortFunc(m.values, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(m.values))
	for _, v := range m.values {
		pairs = append(pairs, v, masked)
	}
	m.replacer.Store(strings.NewReplacer(pairs...))
}

// Mask answers text with every secret in it replaced by three stars.
func (m *Masker) Mask(text string) string {
	if r := m.replacer.Load(); r != nil {
		return r.Replace(text)
	}
	return text
}

// holds says whether text is a secret, or one of eight bytes or more is part of
// it, as in a URL with a password.
func (m *Masker) holds(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.values, func(v string) bool {
		return text == v || (len(v) >= 8 && strings.Contains(text, v))
	})
}
