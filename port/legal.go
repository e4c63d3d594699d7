package port

import (
	"regexp"
	"strconv"
	"strings"
)

// nameLimit is the longest tool name that every dialect takes.
const nameLimit = 64

// idLimits is the longest call id of each dialect.
var idLimits = map[Dialect]int{Anthropic: 64, OpenAI: 40, Responses: 64}

// legalWord is what every dialect takes for a call id and a tool name.
var legalWord = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// illegalRun is what a word must lose.
var illegalRun = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// legal turns words into words that a provider takes, no two into the same. A
// legal word stays what it is, another one keeps its legal letters, and the
// second that would be what the first is gets a number. So what a word becomes
// depends on the words before it alone, and the cached prefix of a conversation
// stands while it grows.
type legal struct {
	limit int
	empty string            // what a word without a legal letter becomes
	words map[string]string // word → wire form
	taken map[string]string // wire form → word
}

func newLegal(limit int, empty string) *legal {
	return &legal{limit: limit, empty: empty, words: map[string]string{}, taken: map[string]string{}}
}

// same answers the wire form of a word, the same one every time.
func (l *legal) same(word string) string {
	if wire, known := l.words[word]; known {
		return wire
	}
	wire := l.fresh(word)
	l.words[word] = wire
	return wire
}

// fresh answers a wire form of word that was never answered before.
func (l *legal) fresh(word string) string {
	base, wire := l.mended(word), l.stem(word)
	for n := 2; ; n++ {
		if _, taken := l.taken[wire]; !taken {
			break
		}
		suffix := "-" + strconv.Itoa(n)
		wire = base[:min(len(base), l.limit-len(suffix))] + suffix
	}
	l.taken[wire] = word
	return wire
}

func (l *legal) mended(word string) string {
	if legalWord.MatchString(word) {
		return word
	}
	if stem := strings.Trim(illegalRun.ReplaceAllString(word, "_"), "_"); stem != "" {
		return stem
	}
	return l.empty
}

// stem answers what of a word a provider takes.
func (l *legal) stem(word string) string {
	stem := l.mended(word)
	return stem[:min(len(stem), l.limit)]
}

// changed answers the words whose wire form differs: wire form → word.
func (l *legal) changed() map[string]string {
	out := map[string]string{}
	for wire, word := range l.taken {
		if wire != word {
			out[wire] = word
		}
	}
	return out
}
