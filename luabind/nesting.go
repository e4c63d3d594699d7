package luabind

import (
	"fmt"
	"strings"
)

// The parser and compiler recurse over what is nested, and take time that grows
// with the square of a chain of operators; neither can be interrupted. A source
// beyond these bounds is refused before they see it.
const (
	maxSource  = 1 << 20 // bytes
	maxNesting = 200     // blocks and brackets within each other, as in Lua
	maxChain   = 1000    // operators and suffixes of one expression, branches of one if
)

// scan walks the tokens of a source as far as nesting needs it.
type scan struct {
	src   string
	at    int
	line  int
	depth int
	chain int
	value bool  // the token before ends a value
	elses []int // branches of the open blocks
}

// checkNesting answers the line and the reason when source is beyond a bound.
func checkNesting(source string) (line int, why string) {
	s := &scan{src: source, line: 1}
	for s.at < len(s.src) {
		s.token()
		switch {
		case s.depth > maxNesting:
			return s.line, fmt.Sprintf("more than %d blocks and brackets within each other", maxNesting)
		case s.chain > maxChain:
			return s.line, fmt.Sprintf("an expression with more than %d operators", maxChain)
		case len(s.elses) > 0 && s.elses[len(s.elses)-1] > maxChain:
			return s.line, fmt.Sprintf("an if with more than %d branches", maxChain)
		}
	}
	return 0, ""
}

// token reads one token.
func (s *scan) token() {
	rest := s.src[s.at:]
	switch c := rest[0]; {
	case c == '\n':
		s.line++
		s.at++
	case strings.HasPrefix(rest, "--"):
		s.comment(rest[2:])
	case c == '"' || c == '\'':
		s.skip(shortString(rest))
		s.value = true
	case c == '[' && longBracket(rest) > 0:
		s.skip(longBracket(rest))
		s.value = true
	case isLetter(c) || c == '_':
		n := 1
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n]) || rest[n] == '_') {
			n++
		}
		s.word(rest[:n])
		s.at += n
	default:
		s.mark(c)
		s.at++
	}
}

func (s *scan) skip(n int) {
	s.line += strings.Count(s.src[s.at:s.at+n], "\n")
	s.at += n
}

func (s *scan) comment(text string) {
	if n := longBracket(text); n > 0 {
		s.skip(n + 2)
		return
	}
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		s.skip(n + 2)
		return
	}
	s.at = len(s.src)
}

func (s *scan) open() {
	s.depth++
	s.chain = 0
	s.elses = append(s.elses, 0)
}

func (s *scan) close() {
	if n := len(s.elses); n > 0 {
		s.depth--
		s.elses = s.elses[:n-1]
	}
}

func (s *scan) word(w string) {
	switch w {
	case "function", "if", "do", "repeat":
		s.open()
	case "end", "until":
		s.close()
		s.chain = 0
	case "elseif":
		s.chain = 0
		if n := len(s.elses); n > 0 {
			s.elses[n-1]++
		}
	case "and", "or", "not":
		s.chain++
	case "local", "return", "then", "else", "for", "while", "in", "break":
		s.chain = 0
	default:
		if s.value {
			s.chain = 0 // a name behind a value begins a statement
		}
		s.value = true
		return
	}
	s.value = w == "end"
}

func (s *scan) mark(c byte) {
	if c == ' ' || c == '\t' || c == '\r' {
		return
	}
	s.value = isDigit(c) || c == ')' || c == ']' || c == '}'
	switch c {
	case '(', '[', '{':
		chain := s.chain
		s.open()
		s.chain = chain + 1 // a chain of calls and indices goes on behind its brackets
	case ')', ']', '}':
		s.close()
	case '+', '-', '*', '/', '%', '^', '#', '.', ':', '<', '>', '~':
		s.chain++
	case ',', ';', '=':
		s.chain = 0
	}
}

// shortString answers the length of the string that s begins with.
func shortString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

// longBracket answers the length of the [=[…]=] that s begins with, 0 for none.
func longBracket(s string) int {
	level := 0
	for level+1 < len(s) && s[level+1] == '=' {
		level++
	}
	if len(s) < level+2 || s[0] != '[' || s[level+1] != '[' {
		return 0
	}
	end := "]" + strings.Repeat("=", level) + "]"
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}
