package luabind

import "strings"

// matcher matches one Lua pattern against one subject by backtracking. The
// library's own recurses once a character and cannot be interrupted; this one
// recurses once a pattern item, and its steps count as instructions.
type matcher struct {
	t     *thread
	place string // the function that errors name
	src   string
	pat   string
	level int // captures, open ones included
	caps  [maxCaptures]capture
	depth int
	steps int
}

type capture struct{ start, len int }

const (
	maxCaptures  = 32
	maxItems     = 2000 // pattern items in progress
	capOpen      = -1
	capPosition  = -2
	stepsPerTick = 1024 // steps of the matcher between two charges
	ticksPerStep = 128  // instructions charged for them
)

func (m *matcher) fail(format string, args ...any) {
	raiseAt(m.t.L, 1, m.place+": "+format, args...)
}

// attempt matches the pattern from item p on at s of a fresh start; it answers
// the end of the match or -1.
func (m *matcher) attempt(s, p int) int {
	m.level, m.depth = 0, 0
	return m.match(s, p)
}

func (m *matcher) tick() {
	if m.steps++; m.steps%stepsPerTick == 0 {
		m.t.step(ticksPerStep)
	}
}

// match answers where the pattern from p on ends when it starts at s, or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxItems {
		m.fail("pattern too complex")
	}
	end := m.items(s, p)
	m.depth--
	return end
}

// items is match without its depth.
func (m *matcher) items(s, p int) int {
	for p < len(m.pat) {
		m.tick()
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.open(s, p+2, capPosition)
			}
			return m.open(s, p+1, capOpen)
		case ')':
			return m.close(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if next, end, special := m.escape(s, p); special {
				if end < 0 {
					return -1
				}
				s, p = end, next
				continue
			}
		}
		next := m.itemEnd(p)
		suffix := byte(0)
		if next < len(m.pat) {
			suffix = m.pat[next]
		}
		switch suffix {
		case '?':
			if m.one(s, p, next) {
				if e := m.match(s+1, next+1); e >= 0 {
					return e
				}
			}
			p = next + 1
		case '*':
			return m.most(s, p, next, 0)
		case '+':
			return m.most(s, p, next, 1)
		case '-':
			return m.least(s, p, next)
		default:
			if !m.one(s, p, next) {
				return -1
			}
			s, p = s+1, next
		}
	}
	return s
}

// escape handles %b, %f and %1 to %9 at p; other escapes are single characters.
func (m *matcher) escape(s, p int) (next, end int, special bool) {
	if p+1 >= len(m.pat) {
		m.fail("malformed pattern (ends with '%%')")
	}
	switch c := m.pat[p+1]; {
	case c == 'b':
		return p + 4, m.balance(s, p+2), true
	case c == 'f':
		if p+2 >= len(m.pat) || m.pat[p+2] != '[' {
			m.fail("malformed pattern (missing '[' after '%%f')")
		}
		next = m.itemEnd(p + 2)
		if m.frontier(s, p+2, next) {
			return next, s, true
		}
		return next, -1, true
	case c >= '0' && c <= '9':
		return p + 2, m.back(s, int(c-'1')), true
	}
	return 0, 0, false
}

// itemEnd answers where the single-character item at p ends.
func (m *matcher) itemEnd(p int) int {
	c := m.pat[p]
	p++
	if c == '%' {
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%%')")
		}
		return p + 1
	}
	if c != '[' {
		return p
	}
	if p < len(m.pat) && m.pat[p] == '^' {
		p++
	}
	for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
		if p >= len(m.pat) {
			m.fail("malformed pattern (missing ']')")
		}
		if m.pat[p] == '%' {
			p++
		}
		p++
	}
	return p + 1
}

// one says whether the item from p to end matches the character at s.
func (m *matcher) one(s, p, end int) bool {
	return s < len(m.src) && m.fits(m.src[s], p, end)
}

func (m *matcher) fits(c byte, p, end int) bool {
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p+1, end-1)
	}
	return m.pat[p] == c
}

// inSet says whether c is in the set written from p to its bracket at end.
func (m *matcher) inSet(c byte, p, end int) bool {
	found := true
	if m.pat[p] == '^' {
		found = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pat[p] == '%' && p+1 < end:
			p++
			if inClass(c, m.pat[p]) {
				return found
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return found
			}
			p += 2
		case m.pat[p] == c:
			return found
		}
	}
	return !found
}

// inClass says whether c is of the class %class; a capital is the complement.
func inClass(c, class byte) bool {
	in := false
	switch class | 0x20 {
	case 'a':
		in = isLetter(c)
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = isDigit(c)
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > ' ' && c < 0x7f && !isLetter(c) && !isDigit(c)
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = isLetter(c) || isDigit(c)
	case 'x':
		in = isDigit(c) || (c|0x20) >= 'a' && (c|0x20) <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !isLetter(class) {
		return class == c
	}
	return in == (class >= 'a')
}

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// most matches the item at least min times and as often as it can.
func (m *matcher) most(s, p, end, min int) int {
	n := 0
	for m.one(s+n, p, end) {
		m.tick()
		n++
	}
	for ; n >= min; n-- {
		if e := m.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

// least matches the item as seldom as it can.
func (m *matcher) least(s, p, end int) int {
	for {
		if e := m.match(s, end+1); e >= 0 {
			return e
		}
		if !m.one(s, p, end) {
			return -1
		}
		m.tick()
		s++
	}
}

func (m *matcher) open(s, p, kind int) int {
	if m.level >= maxCaptures {
		m.fail("too many captures, at most %d", maxCaptures)
	}
	m.caps[m.level] = capture{s, kind}
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

func (m *matcher) close(s, p int) int {
	i := m.level - 1
	for i >= 0 && m.caps[i].len != capOpen {
		i--
	}
	if i < 0 {
		m.fail("malformed pattern (')' without '(')")
	}
	m.caps[i].len = s - m.caps[i].start
	e := m.match(s, p)
	if e < 0 {
		m.caps[i].len = capOpen
	}
	return e
}

// balance matches %bxy at s; the two characters stand at p.
func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("malformed pattern (missing the characters of '%%b')")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		m.tick()
		switch m.src[i] {
		case m.pat[p+1]:
			if depth--; depth == 0 {
				return i + 1
			}
		case m.pat[p]:
			depth++
		}
	}
	return -1
}

// frontier says whether the set begins at s: the character before is outside.
func (m *matcher) frontier(s, p, end int) bool {
	before, here := byte(0), byte(0)
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		here = m.src[s]
	}
	return !m.fits(before, p, end) && m.fits(here, p, end)
}

// back matches what capture i matched.
func (m *matcher) back(s, i int) int {
	if i < 0 || i >= m.level || m.caps[i].len == capOpen {
		m.fail("capture %%%d does not exist there", i+1)
	}
	c := m.caps[i]
	if c.len == capPosition {
		m.fail("capture %%%d is a position, not a text", i+1)
	}
	if strings.HasPrefix(m.src[s:], m.src[c.start:c.start+c.len]) {
		return s + c.len
	}
	return -1
}
