package luabind

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// maxDepth is how deep lists and records may nest, read or written.
const maxDepth = 128

// listFields names the fields whose schema is a list, so that a script may
// leave {} there without a tag.
var listFields = []string{"content", "messages", "tools", "required"}

// Encoding says how [AppendJSON] writes one value, and what it had to mend.
type Encoding struct {
	Name       string // what the value is called in errors; "value" when empty
	ListFields bool   // an empty untagged table under content, messages, tools or required is []
	AsIs       bool   // bytes that are not UTF-8 stay: the reader mends and counts them
	Mended     int    // out: bytes of text that were not UTF-8 and became U+FFFD
}

// AppendJSON appends v as canonical JSON: no blanks, keys sorted by their bytes,
// text escaped only where JSON must. A value is lossless or refused: the error
// names the path to what JSON cannot say. On an error dst comes back as it was.
func AppendJSON(dst []byte, v lua.LValue, e *Encoding) ([]byte, error) {
	if e == nil {
		e = &Encoding{}
	}
	w := writers.Get().(*jsonWriter)
	w.lists, w.asIs = e.ListFields, e.AsIs
	out, err := w.value(dst, v, false)
	e.Mended = w.mended
	w.release()
	if err == nil {
		return out, nil
	}
	name := e.Name
	if name == "" {
		name = "value"
	}
	var at *pathError
	if errors.As(err, &at) {
		return dst, at.under(name)
	}
	return dst, fmt.Errorf("%s: %w", name, err)
}

// jsonWriter is the state of one encoding; the pool keeps its slices warm.
type jsonWriter struct {
	lists   bool
	asIs    bool
	mended  int
	open    []*lua.LTable // the tables being written, outermost first
	members []member      // the members of those that are records
}

type member struct {
	key   string
	value lua.LValue
}

var writers = sync.Pool{New: func() any { return &jsonWriter{} }}

func (w *jsonWriter) release() {
	clear(w.members[:cap(w.members)])
	clear(w.open[:cap(w.open)])
	w.members, w.open, w.mended = w.members[:0], w.open[:0], 0
	writers.Put(w)
}

func (w *jsonWriter) value(dst []byte, v lua.LValue, list bool) ([]byte, error) {
	switch v := v.(type) {
	case lua.LString:
		return w.text(dst, string(v)), nil
	case lua.LNumber:
		if out, ok := appendNumber(dst, float64(v)); ok {
			return out, nil
		}
		return dst, fmt.Errorf("got %s, want a finite number", numberName(float64(v)))
	case lua.LBool:
		return strconv.AppendBool(dst, bool(v)), nil
	case *lua.LTable:
		return w.table(dst, v, list)
	case *lua.LUserData:
		if v == Null {
			return append(dst, "null"...), nil
		}
		if n, ok := v.Value.(Int); ok {
			return append(dst, n...), nil
		}
	case *lua.LNilType:
		return append(dst, "null"...), nil
	}
	return dst, fmt.Errorf("got a %s, want a JSON value", v.Type())
}

func (w *jsonWriter) table(dst []byte, t *lua.LTable, list bool) ([]byte, error) {
	if slices.Contains(w.open, t) {
		return dst, errors.New("got a table that contains itself, want a tree")
	}
	if len(w.open) == maxDepth {
		return dst, fmt.Errorf("nested deeper than %d tables", maxDepth)
	}
	if m := mirrorOf(t); m != nil {
		if raw, ok := rawOf(t); ok {
			return append(dst, raw...), nil
		}
		t = look(m.vm.root, t)
	}
	w.open = append(w.open, t)
	var err error
	if n := t.MaxN(); n > 0 || isTagged(t) {
		dst, err = w.list(dst, t, n)
	} else {
		dst, err = w.record(dst, t, list)
	}
	w.open = w.open[:len(w.open)-1]
	return dst, err
}

func (w *jsonWriter) list(dst []byte, t *lua.LTable, n int) ([]byte, error) {
	if key := keyBeside(t, n); key != lua.LNil {
		return dst, fmt.Errorf("got key %s beside a list of %d, want a list or a record", keyName(key), n)
	}
	dst = append(dst, '[')
	for i := 1; i <= n; i++ {
		v := t.RawGetInt(i)
		if v == lua.LNil {
			return dst, fmt.Errorf("got a list with nothing at %d but an element at %d, want no holes: knl.null keeps a place, text keys make a record", i, n)
		}
		if i > 1 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = w.value(dst, v, false); err != nil {
			return dst, within("["+strconv.Itoa(i)+"]", err)
		}
	}
	return append(dst, ']'), nil
}

// keyBeside answers a key of t outside its sequence of n, or nil.
func keyBeside(t *lua.LTable, n int) lua.LValue {
	var last lua.LValue = lua.LNil
	if n > 0 {
		last = lua.LNumber(n)
	}
	key, _ := t.Next(last)
	return key
}

func (w *jsonWriter) record(dst []byte, t *lua.LTable, list bool) ([]byte, error) {
	from, mended := len(w.members), w.mended
	if err := w.collect(t); err != nil {
		return dst, err
	}
	members := w.members[from:]
	if len(members) == 0 && list && w.lists {
		return append(dst, "[]"...), nil
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	if w.mended != mended {
		if err := distinct(members); err != nil {
			return dst, err
		}
	}
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(w.text(dst, m.key), ':')
		var err error
		if dst, err = w.value(dst, m.value, slices.Contains(listFields, m.key)); err != nil {
			return dst, within(fieldName(m.key), err)
		}
	}
	w.members = w.members[:from]
	return append(dst, '}'), nil
}

// collect puts the members of t on the stack, their keys valid UTF-8. Next does
// not box each key again as ForEach would, which makes it three times as fast.
func (w *jsonWriter) collect(t *lua.LTable) error {
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		text, ok := key.(lua.LString)
		if !ok {
			return fmt.Errorf("got key %s, want text keys or a list from 1", keyName(key))
		}
		name := string(text)
		if !utf8.ValidString(name) {
			valid, bad := mend(name)
			name, w.mended = valid, w.mended+bad
		}
		w.members = append(w.members, member{name, value})
	}
	return nil
}

// distinct refuses keys that became equal when they were mended.
func distinct(sorted []member) error {
	for i := 1; i < len(sorted); i++ {
		if sorted[i].key == sorted[i-1].key {
			return fmt.Errorf("got two keys that both read %q as UTF-8, want distinct keys", sorted[i].key)
		}
	}
	return nil
}

func (w *jsonWriter) text(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+2), '"')
	from := 0
	for i := 0; i < len(s); {
		if i+8 <= len(s) && plain8(s[i:i+8]) {
			i += 8
			continue
		}
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = appendEscape(append(dst, s[from:i]...), c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 && !w.asIs {
			dst = utf8.AppendRune(append(dst, s[from:i]...), utf8.RuneError)
			w.mended++
			from = i + 1
		}
		i += size
	}
	return append(append(dst, s[from:]...), '"')
}

// plain holds the bytes that stand for themselves in a JSON string.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// plain8 says whether the eight bytes of s are all plain.
func plain8(s string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	_ = s[7]
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return (x|(x-ones*' ')|(quote-ones)|(slash-ones))&highs == 0
}

func appendEscape(dst []byte, c byte) []byte {
	const short, letters, hex = "\"\\\b\f\n\r\t", `"\bfnrt`, "0123456789abcdef"
	if i := strings.IndexByte(short, c); i >= 0 {
		return append(dst, '\\', letters[i])
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// mend answers s as valid UTF-8, each bad byte as U+FFFD, and how many there were.
func mend(s string) (string, int) {
	var out strings.Builder
	bad := 0
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		out.WriteRune(r)
		s = s[size:]
	}
	return out.String(), bad
}

// pathError is a refusal with the way to it, built while the writer unwinds so
// that a value which encodes pays nothing for it.
type pathError struct {
	path  []string // innermost first
	cause error
}

func (e *pathError) Error() string { return e.under("").Error() }

func (e *pathError) under(name string) error {
	slices.Reverse(e.path)
	return fmt.Errorf("%s: %w", name+strings.Join(e.path, ""), e.cause)
}

func within(step string, err error) error {
	var e *pathError
	if !errors.As(err, &e) {
		e = &pathError{cause: err}
	}
	e.path = append(e.path, step)
	return e
}

func fieldName(key string) string {
	if isName(key) {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}

// isName says whether key can stand after a dot.
func isName(key string) bool {
	for i := 0; i < len(key); i++ {
		c := key[i]
		letter := c == '_' || (c|0x20 >= 'a' && c|0x20 <= 'z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return key != ""
}

func keyName(key lua.LValue) string {
	switch key := key.(type) {
	case lua.LString:
		return strconv.Quote(string(key))
	case lua.LNumber, lua.LBool:
		return key.String()
	}
	return "of type " + key.Type().String()
}

func numberName(f float64) string {
	if f != f {
		return "NaN"
	}
	if f > 0 {
		return "infinity"
	}
	return "minus infinity"
}
