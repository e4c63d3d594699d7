package luabind

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// strFormat is string.format. %d and its kin refuse a number that is not whole,
// as later Lua does; %s takes any value, by its tostring.
func strFormat(l *lua.LState) int {
	f := &formatter{l: l, out: buffer{t: threadOf(l), place: "string.format"}, arg: 1}
	text := l.CheckString(1)
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			f.out.add(text)
			break
		}
		f.out.add(text[:i])
		text = f.directive(text[i+1:])
	}
	l.Push(lua.LString(f.out.String()))
	return 1
}

type formatter struct {
	l   *lua.LState
	out buffer
	arg int // index of the last argument used
}

func (f *formatter) fail(format string, args ...any) {
	raiseAt(f.l, 1, "string.format: "+format, args...)
}

// directive writes the directive that text begins with and answers the rest.
func (f *formatter) directive(text string) string {
	flags, rest := span(text, "-+ #0")
	width, rest := span(rest, "0123456789")
	precision := ""
	if strings.HasPrefix(rest, ".") {
		precision, rest = span(rest[1:], "0123456789")
		precision = "." + precision
	}
	if rest == "" {
		f.fail("the format ends inside of a directive (write '%%%%' for a percent sign)")
	}
	if len(width) > 2 || len(precision) > 3 {
		f.fail("directive %%%s: width and precision have at most two digits", text[:len(text)-len(rest)+1])
	}
	verb := rest[0]
	if verb == '%' {
		f.out.add("%")
		return rest[1:]
	}
	f.write(spec{flags, width, precision, verb})
	return rest[1:]
}

// span cuts the leading bytes that are in set.
func span(s, set string) (head, rest string) {
	i := 0
	for i < len(s) && strings.IndexByte(set, s[i]) >= 0 {
		i++
	}
	return s[:i], s[i:]
}

// spec is one directive.
type spec struct {
	flags, width, precision string
	verb                    byte
}

func (s spec) with(verb string) string { return "%" + s.flags + s.width + s.precision + verb }

func (f *formatter) write(s spec) {
	switch s.verb {
	case 'd', 'i':
		f.out.add(fmt.Sprintf(s.with("d"), int64(f.whole(s))))
	case 'u', 'x', 'X', 'o':
		verb := string(s.verb)
		if verb == "u" {
			verb = "d"
		}
		f.out.add(fmt.Sprintf(s.with(verb), uint64(int64(f.whole(s)))))
	case 'c':
		f.out.add(padded(string([]byte{byte(int64(f.whole(s)))}), s))
	case 'e', 'E', 'f', 'g', 'G':
		f.out.add(float(s, f.number(s)))
	case 'q':
		f.out.add(quoted(f.text(s)))
	case 's':
		f.out.add(padded(cut(f.text(s), s.precision), s))
	default:
		f.fail("unknown directive '%%%c' (known: c d e E f g G i o q s u x X)", s.verb)
	}
}

// next answers the argument of a directive.
func (f *formatter) next(s spec) lua.LValue {
	f.arg++
	if f.arg > f.l.GetTop() {
		f.fail("argument %d: got nothing, want a value for '%%%c'", f.arg, s.verb)
	}
	return f.l.Get(f.arg)
}

func (f *formatter) number(s spec) float64 {
	v := f.next(s)
	if n, ok := v.(lua.LNumber); ok {
		return float64(n)
	}
	if text, ok := v.(lua.LString); ok {
		if n, ok := numeral(string(text)); ok {
			return n
		}
	}
	f.fail("argument %d: got %s, want a number for '%%%c'", f.arg, show(v), s.verb)
	return 0
}

func (f *formatter) whole(s spec) float64 {
	n := f.number(s)
	if n != math.Trunc(n) || n < -(1<<63) || n >= 1<<63 {
		f.fail("argument %d: got %s, want a whole number for '%%%c' (use math.floor or %%.0f)", f.arg, numberText(n), s.verb)
	}
	return n
}

func (f *formatter) text(s spec) string {
	v := f.next(s)
	if n, ok := v.(lua.LNumber); ok {
		return numberText(float64(n))
	}
	return lua.LVAsString(f.l.ToStringMeta(v))
}

func float(s spec, n float64) string {
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return padded(numberText(n), s)
	}
	if s.precision == "" {
		s.precision = ".6"
	}
	return fmt.Sprintf(s.with(string(s.verb)), n)
}

// cut keeps the first bytes of text that the precision allows.
func cut(text, precision string) string {
	if precision == "" {
		return text
	}
	return text[:min(len(text), digits(precision[1:]))]
}

func padded(text string, s spec) string {
	gap := digits(s.width) - len(text)
	if gap <= 0 {
		return text
	}
	if strings.Contains(s.flags, "-") {
		return text + strings.Repeat(" ", gap)
	}
	return strings.Repeat(" ", gap) + text
}

func digits(s string) int {
	n := 0
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

// quoted writes text so that Lua reads it back.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\r':
			b.WriteString(`\r`)
		case 0:
			b.WriteString(`\000`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
