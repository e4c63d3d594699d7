package luabind

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The string library: byte, char, len, reverse and sub of the library, the rest
// of our own, because patterns must be interruptible, lengths bounded, and
// upper and lower must not touch what is not ASCII.
func (vm *VM) openString() {
	lua.OpenString(vm.root)
	vm.root.SetTop(0)
	lib := vm.library("string", map[string]lua.LGFunction{
		"find": strFind, "match": strMatch, "gmatch": strGmatch, "gsub": strGsub,
		"rep": strRep, "format": strFormat, "byte": strByte, "lower": strLower, "upper": strUpper,
	})
	lib.RawSetString("gfind", lua.LNil)
	lib.RawSetString("dump", lua.LNil)
	lib.RawSetString("__index", lua.LNil)
	mt := vm.root.CreateTable(0, 8)
	mt.RawSetString("__index", lib)
	vm.numerals(mt)
	vm.root.SetMetatable(lua.LString(""), mt)
}

// buffer collects a result and keeps it within the limits.
type buffer struct {
	strings.Builder
	t     *thread
	place string
	mark  int
}

func (b *buffer) add(s string) {
	if n := b.Len() + len(s); n > b.mark {
		b.t.room(int64(n), b.place)
		b.mark = 2*n + 4096
		if limit := b.t.vm.meter.limits.String; limit > 0 {
			b.mark = min(b.mark, int(limit))
		}
	}
	b.WriteString(s)
}

func newMatcher(l *lua.LState, place string) *matcher {
	return &matcher{t: threadOf(l), place: place, src: l.CheckString(1), pat: l.CheckString(2)}
}

// strFind is string.find(s, pattern [, init [, plain]]).
func strFind(l *lua.LState) int { return search(l, "string.find", true) }

// strMatch is string.match(s, pattern [, init]).
func strMatch(l *lua.LState) int { return search(l, "string.match", false) }

func search(l *lua.LState, place string, find bool) int {
	m := newMatcher(l, place)
	init := l.OptInt(3, 1)
	if init < 0 {
		init = max(len(m.src)+init+1, 1)
	} else if init == 0 {
		init = 1
	}
	if init > len(m.src)+1 {
		l.Push(lua.LNil)
		return 1
	}
	if find && (lua.LVAsBool(l.Get(4)) || !strings.ContainsAny(m.pat, "^$*+?.([%-")) {
		return findPlain(l, m, init-1)
	}
	s, e := m.first(init - 1)
	if s < 0 {
		l.Push(lua.LNil)
		return 1
	}
	if !find {
		return m.pushCaptures(s, e, true)
	}
	l.Push(lua.LNumber(s + 1))
	l.Push(lua.LNumber(e))
	return 2 + m.pushCaptures(s, e, false)
}

func findPlain(l *lua.LState, m *matcher, from int) int {
	i := strings.Index(m.src[from:], m.pat)
	if i < 0 {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(from + i + 1))
	l.Push(lua.LNumber(from + i + len(m.pat)))
	return 2
}

// first answers the first match at or after s.
func (m *matcher) first(s int) (start, end int) {
	p, anchored := 0, strings.HasPrefix(m.pat, "^")
	if anchored {
		p = 1
	}
	for ; s <= len(m.src); s++ {
		if e := m.attempt(s, p); e >= 0 {
			return s, e
		}
		if anchored {
			break
		}
	}
	return -1, -1
}

// pushCaptures pushes the captures of a match, the whole match when there are
// none and whole is set.
func (m *matcher) pushCaptures(s, e int, whole bool) int {
	if m.level == 0 && whole {
		m.t.L.Push(lua.LString(m.src[s:e]))
		return 1
	}
	for i := 0; i < m.level; i++ {
		m.t.L.Push(m.captured(i, s, e))
	}
	return m.level
}

// captured answers capture i; the first one of a pattern without any is the match.
func (m *matcher) captured(i, s, e int) lua.LValue {
	if i >= m.level {
		if i > 0 {
			m.fail("capture %%%d does not exist", i+1)
		}
		return lua.LString(m.src[s:e])
	}
	c := m.caps[i]
	switch c.len {
	case capPosition:
		return lua.LNumber(c.start + 1)
	case capOpen:
		m.fail("malformed pattern ('(' is not closed)")
	}
	return lua.LString(m.src[c.start : c.start+c.len])
}

// strGmatch is string.gmatch(s, pattern); matches are searched as they are asked for.
func strGmatch(l *lua.LState) int {
	m, at := newMatcher(l, "string.gmatch"), 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		m.t = threadOf(l)
		for ; at <= len(m.src); at++ {
			e := m.attempt(at, 0)
			if e < 0 {
				continue
			}
			s := at
			at = e
			if e == s {
				at++
			}
			return m.pushCaptures(s, e, true)
		}
		l.Push(lua.LNil)
		return 1
	}))
	return 1
}

// strGsub is string.gsub(s, pattern, replacement [, n]).
func strGsub(l *lua.LState) int {
	m := newMatcher(l, "string.gsub")
	repl := l.Get(3)
	switch repl.Type() {
	case lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction:
	default:
		raiseAt(l, 1, "string.gsub: argument 3: got %s, want a string, table or function", show(repl))
	}
	most := l.OptInt(4, len(m.src)+1)
	p, anchored := 0, strings.HasPrefix(m.pat, "^")
	if anchored {
		p = 1
	}
	out := &buffer{t: m.t, place: m.place}
	s, n := 0, 0
	for n < most {
		e := m.attempt(s, p)
		if e >= 0 {
			n++
			m.replace(out, repl, s, e)
		}
		if e > s {
			s = e
		} else if s < len(m.src) {
			out.add(m.src[s : s+1])
			s++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	if s < len(m.src) {
		out.add(m.src[s:])
	}
	l.Push(lua.LString(out.String()))
	l.Push(lua.LNumber(n))
	return 2
}

// replace adds what stands for the match from s to e.
func (m *matcher) replace(out *buffer, repl lua.LValue, s, e int) {
	l := m.t.L
	var v lua.LValue
	switch r := repl.(type) {
	case *lua.LTable:
		v = l.GetTable(r, m.captured(0, s, e))
	case *lua.LFunction:
		l.Push(r)
		l.Call(m.pushCaptures(s, e, true), 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		m.template(out, lua.LVAsString(repl), s, e)
		return
	}
	switch {
	case lua.LVIsFalse(v):
		out.add(m.src[s:e])
	case lua.LVCanConvToString(v):
		out.add(lua.LVAsString(v))
	default:
		m.fail("the replacement is %s, want a string, number, false or nil", show(v))
	}
}

// template adds a replacement text with its %0 to %9.
func (m *matcher) template(out *buffer, text string, s, e int) {
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			out.add(text)
			return
		}
		out.add(text[:i])
		if i+1 == len(text) {
			m.fail("the replacement ends with '%%' (write '%%%%')")
		}
		switch c := text[i+1]; {
		case c == '0':
			out.add(m.src[s:e])
		case isDigit(c):
			out.add(lua.LVAsString(m.captured(int(c-'1'), s, e)))
		default:
			out.add(text[i+1 : i+2])
		}
		text = text[i+2:]
	}
}

// strRep is string.rep(s, n [, sep]).
func strRep(l *lua.LState) int {
	s, n, sep := l.CheckString(1), l.CheckInt(2), l.OptString(3, "")
	if n <= 0 {
		l.Push(lua.LString(""))
		return 1
	}
	if unit := int64(len(s) + len(sep)); unit > 0 {
		if int64(n) > (1<<62)/unit {
			n = int((1 << 62) / unit)
		}
		threadOf(l).room(int64(n)*unit, "string.rep")
		l.Push(lua.LString(strings.Repeat(s+sep, n-1) + s))
		return 1
	}
	l.Push(lua.LString(""))
	return 1
}

// strByte is string.byte(s [, i [, j]]).
func strByte(l *lua.LState) int {
	s := l.CheckString(1)
	i := l.OptInt(2, 1)
	j := l.OptInt(3, i)
	if i < 0 {
		i += len(s) + 1
	}
	if j < 0 {
		j += len(s) + 1
	}
	i, j = max(i, 1), min(j, len(s))
	n := j - i + 1
	if n <= 0 {
		return 0
	}
	if n > registryMax/4 {
		raiseAt(l, 1, "string.byte: too many results (%d), at most %d", n, registryMax/4)
	}
	makeRoom(l, n)
	for ; i <= j; i++ {
		l.Push(lua.LNumber(s[i-1]))
	}
	return n
}

func strLower(l *lua.LState) int { return mapASCII(l, 'A', 'Z') }
func strUpper(l *lua.LState) int { return mapASCII(l, 'a', 'z') }

// mapASCII changes the case of the letters from lo to hi and no other byte.
func mapASCII(l *lua.LState, lo, hi byte) int {
	b := []byte(l.CheckString(1))
	for i, c := range b {
		if c >= lo && c <= hi {
			b[i] = c ^ 0x20
		}
	}
	l.Push(lua.LString(b))
	return 1
}
