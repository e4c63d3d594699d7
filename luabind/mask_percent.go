package luabind

import (
	"slices"
	"strings"
)

// unescaped is a text in which bytes are spelled as %XX, as they are in a URL,
// with those bytes in it.
type unescaped struct {
	text    string
	escapes []int // where such a byte stands in text, in order
	rest    int   // bytes at the end of what was read that may be the beginning of one
}

// unescape reads text; ok says whether a byte was so spelled, or may be by what
// comes behind text.
func unescape(text string, ends bool) (u unescaped, ok bool) {
	next := strings.IndexByte(text, '%')
	if next < 0 {
		return u, false
	}
	var out strings.Builder
	done := 0
	for next >= 0 {
		at := done + next
		out.WriteString(text[done:at])
		size := 1
		switch char, spelled := escapeAt(text[at:]); {
		case spelled:
			u.escapes = append(u.escapes, out.Len())
			out.WriteByte(char)
			size = 3
		case !ends && strings.Trim(text[at+1:], hexDigits) == "" && len(text)-at < 3:
			u.text, u.rest = out.String(), len(text)-at
			return u, true
		default:
			out.WriteByte('%')
		}
		done = at + size
		next = strings.IndexByte(text[done:], '%')
	}
	out.WriteString(text[done:])
	u.text = out.String()
	return u, len(u.escapes) > 0
}

const hexDigits = "0123456789abcdefABCDEF"

// escapeAt answers the byte that text begins with as %XX.
func escapeAt(text string) (char byte, ok bool) {
	if len(text) < 3 {
		return 0, false
	}
	for _, digit := range []byte(text[1:3]) {
		if strings.IndexByte(hexDigits, digit) < 0 {
			return 0, false
		}
		if digit > '9' {
			digit += 9 // both cases: the low four bits of a letter
		}
		char = char<<4 | digit&15
	}
	return char, true
}

// from answers where what stands at a place of u.text stood before.
func (u *unescaped) from(at int) int {
	before, _ := slices.BinarySearch(u.escapes, at)
	return at + 2*before
}

// found answers where things that were found in u.text stood before.
func (u *unescaped) found(f found) found {
	for _, parts := range [][]hiddenPart{f.wholes, f.pieces} {
		for i, p := range parts {
			parts[i] = hiddenPart{u.from(p.from), u.from(p.to)}
		}
	}
	if start := len(u.text) - f.open; f.open+u.rest > 0 {
		f.open = u.from(len(u.text)) - u.from(start) + u.rest
	}
	return f
}
