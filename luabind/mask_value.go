package luabind

import (
	"regexp"
	"slices"
	"strings"
)

// maskValue is a secret as it is spelled in a text. What lies outside of
// text[from:to] is ordinary text, with which others begin and end too.
type maskValue struct {
	text     string
	from, to int
}

const (
	// shortestOwn is how much of what is a value's own makes a piece of it.
	shortestOwn = 4
	// longestWords is up to where words at its ends are ordinary text.
	longestWords = 32
)

// maskValues answers a value in each spelling. What it is made of is spelled one
// after the other, so that its own part is found in each.
func maskValues(value string) []maskValue {
	from, to := ownPart(value)
	all, before, own := spellings(value), spellings(value[:from]), spellings(value[from:to])
	out := make([]maskValue, len(all))
	for i, text := range all {
		out[i] = maskValue{text, len(before[i]), len(before[i]) + len(own[i])}
	}
	return out
}

// isLong says whether pieces are hidden too.
func (v maskValue) isLong() bool { return len(v.text) >= 2*shortestPiece }

// isPiece says whether the first n bytes are a piece to hide.
func (v maskValue) isPiece(n int) bool {
	own := v.to - v.from
	return v.isLong() && n >= shortestPiece && n < len(v.text) && own > 0 && min(n, v.to)-v.from >= min(shortestOwn, own)
}

// reversed answers the value from its end.
func (v maskValue) reversed() maskValue {
	return maskValue{reversed(v.text), len(v.text) - v.to, len(v.text) - v.from}
}

func reversed(text string) string {
	b := []byte(text)
	slices.Reverse(b)
	return string(b)
}

var (
	maskScheme    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	maskHost      = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]+)?$`)
	maskFirstWord = regexp.MustCompile(`^[A-Za-z][a-z]{0,11}[0-9]{0,2}[-_.:/= ]+`)
	maskLastWord  = regexp.MustCompile(`[-_./ ]+[A-Za-z][a-z]{0,11}[0-9]{0,2}$`)
)

// ownPart answers where what is a value's own begins and ends.
func ownPart(value string) (from, to int) {
	from = len(maskScheme.FindString(value))
	if from > 0 {
		host := from + strings.IndexAny(value[from:]+"/", "/?#")
		if at := strings.LastIndexByte(value[from:host], '@'); at >= 0 {
			return ownOfLogin(value, hiddenPart{from, from + at}, host)
		}
		if maskHost.MatchString(value[from:host]) {
			from = min(host+1, len(value))
		}
	}
	rest := value[from:]
	limit := min(longestWords, len(rest)/2)
	return from + firstWords(rest, limit), len(value) - lastWords(rest, limit)
}

// ownOfLogin answers the same of a URL with a login in it: the password, or the
// name when there is none, and what follows the host unless it is words.
func ownOfLogin(value string, login hiddenPart, host int) (from, to int) {
	name := strings.IndexByte(value[login.from:login.to], ':') + 1
	if path := value[host:]; path == "/" || lastWords(path, longestWords) == len(path) {
		return login.from + name, login.to
	}
	return login.from + name, len(value)
}

// firstWords answers how many bytes of words text begins with, at most limit.
func firstWords(text string, limit int) (n int) {
	for {
		word := len(maskFirstWord.FindString(text[n:min(len(text), n+longestWords)]))
		if word == 0 || n+word > limit {
			return n
		}
		n += word
	}
}

// lastWords answers how many bytes of words text ends with, at most limit.
func lastWords(text string, limit int) (n int) {
	for {
		end := len(text) - n
		word := len(maskLastWord.FindString(text[max(0, end-longestWords):end]))
		if word == 0 || n+word > limit {
			return n
		}
		n += word
	}
}
