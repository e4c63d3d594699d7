package luabind

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads the string at pos. One without escapes is a piece of src.
func (r *jsonReader) text() (string, error) {
	from := r.pos + 1
	end, escaped, wide, err := r.closing(from)
	if err != nil {
		return "", err
	}
	s := r.src[from:end]
	r.pos = end + 1
	switch {
	case escaped:
		return r.unescape(from, end)
	case wide && !utf8.ValidString(s):
		valid, _ := mend(s)
		return valid, nil
	case len(r.src) > shareLimit:
		return strings.Clone(s), nil
	}
	return s, nil
}

// closing answers where the string that starts at from ends, and whether it
// holds escapes or bytes beyond ASCII.
func (r *jsonReader) closing(from int) (end int, escaped, wide bool, err error) {
	for end = from; end < len(r.src); end++ {
		switch c := r.src[end]; {
		case plain[c]:
		case c == '"':
			return end, escaped, wide, nil
		case c == '\\':
			escaped = true
			end++
		case c >= utf8.RuneSelf:
			wide = true
		default:
			return 0, false, false, r.refuse(end, "got the control character U+%04X inside a string, want an escape", c)
		}
	}
	return 0, false, false, r.refuse(from-1, "string has no closing quote")
}

// unescape reads the text between from and end, which holds escapes.
func (r *jsonReader) unescape(from, end int) (string, error) {
	out := make([]byte, 0, end-from)
	for i := from; i < end; {
		if c := r.src[i]; c < utf8.RuneSelf && c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		if r.src[i] != '\\' {
			char, size := utf8.DecodeRuneInString(r.src[i:end])
			out = utf8.AppendRune(out, char) // a bad byte as U+FFFD
			i += size
			continue
		}
		char, size := escape(r.src[i:end])
		if size == 0 {
			return "", r.refuse(i, `got the escape %s, want one of \" \\ \/ \b \f \n \r \t \uXXXX`, shorten(r.src[i:min(i+6, end)]))
		}
		out = utf8.AppendRune(out, char)
		i += size
	}
	return string(out), nil
}

// escape reads the escape that s opens with. Size is 0 when it is none; a lone
// surrogate reads as U+FFFD.
func escape(s string) (char rune, size int) {
	if len(s) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	high, ok := hexEscape(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(high) {
		low, ok := hexEscape(s[6:])
		if pair := utf16.DecodeRune(high, low); ok && pair != utf8.RuneError {
			return pair, 12
		}
		return utf8.RuneError, 6
	}
	return high, 6
}

func hexEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// want refuses what stands at pos.
func (r *jsonReader) want(what string) error {
	if r.pos >= len(r.src) {
		return r.refuse(r.pos, "got the end of the text, want %s", what)
	}
	char, _ := utf8.DecodeRuneInString(r.src[r.pos:])
	return r.refuse(r.pos, "got %s, want %s", strconv.QuoteRune(char), what)
}

// refuse opens the error with the line and the column, in characters, of at.
func (r *jsonReader) refuse(at int, format string, args ...any) error {
	before := r.src[:at]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("%d:%d: %s", line, column, fmt.Sprintf(format, args...))
}

// shorten keeps an error line readable.
func shorten(s string) string {
	const limit = 40
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
