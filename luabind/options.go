package luabind

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Options is an options table that was checked against the Fields of its [Arg]:
// every key is known and every value of its kind. Reading never raises.
type Options struct {
	tbl *lua.LTable // nil when the script gave none
}

// Options unpacks argument i, a table with the declared Fields. It refuses
// unknown keys with the nearest name, wrong kinds, and missing keys that are
// not optional.
func (c *Call) Options(i int) Options {
	arg := c.fn.Args[i-1]
	if !c.Given(i) && arg.Optional {
		return Options{}
	}
	tbl := c.Table(i)
	if err := c.checkFields(tbl, "option", arg.Fields); err != nil {
		c.raise(err)
	}
	return Options{tbl}
}

// CheckFields checks a table inside an argument against fields the way
// [Call.Options] does; what names the key in errors ("tool \"read\": key").
func (c *Call) CheckFields(tbl *lua.LTable, what string, fields []Arg) (Options, error) {
	return Options{tbl}, c.checkFields(tbl, what, fields)
}

func (c *Call) checkFields(tbl *lua.LTable, what string, fields []Arg) error {
	var bad error
	tbl.ForEach(func(k, _ lua.LValue) {
		if bad == nil && fieldNamed(fields, k) == nil {
			bad = c.unknownKey(what, k, fields)
		}
	})
	if bad != nil {
		return bad
	}
	for i := range fields {
		if err := c.checkField(tbl, what, &fields[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) checkField(tbl *lua.LTable, what string, f *Arg) error {
	v := tbl.RawGetString(f.Name)
	if v == lua.LNil && f.Optional {
		return nil
	}
	if v != lua.LNil && f.Kind.accepts(c.L, v) {
		return nil
	}
	return c.Mistake("%s %q: got %s, want %s", what, f.Name, show(v), kindNames[f.Kind].want)
}

func (c *Call) unknownKey(what string, k lua.LValue, fields []Arg) error {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	at := strings.LastIndex(what, ": ") + 1 // 0, or where the noun begins
	if at > 0 {
		at++
	}
	s, ok := k.(lua.LString)
	if !ok {
		return c.Mistake("%sunknown %s [%s] (known: %s)", what[:at], what[at:], show(k), strings.Join(names, ", "))
	}
	return c.Mistake("%sunknown %s %q (%s)", what[:at], what[at:], string(s), Suggest(string(s), names))
}

func fieldNamed(fields []Arg, k lua.LValue) *Arg {
	name, ok := k.(lua.LString)
	if !ok {
		return nil
	}
	for i := range fields {
		if fields[i].Name == string(name) {
			return &fields[i]
		}
	}
	return nil
}

// Has says whether the option was given.
func (o Options) Has(name string) bool { return o.Value(name) != lua.LNil }

// Value answers the option as it is, nil when it was not given.
func (o Options) Value(name string) lua.LValue {
	if o.tbl == nil {
		return lua.LNil
	}
	return o.tbl.RawGetString(name)
}

// String answers a Text option, or def.
func (o Options) String(name, def string) string {
	if v, ok := o.Value(name).(lua.LString); ok {
		return string(v)
	}
	return def
}

// Int answers a Whole option, or def.
func (o Options) Int(name string, def int64) int64 {
	if v, ok := whole(o.Value(name)); ok {
		return v
	}
	return def
}

// Number answers a Number option, or def.
func (o Options) Number(name string, def float64) float64 {
	if v, ok := o.Value(name).(lua.LNumber); ok {
		return float64(v)
	}
	return def
}

// Bool answers a Flag option, or def.
func (o Options) Bool(name string, def bool) bool {
	if v, ok := o.Value(name).(lua.LBool); ok {
		return bool(v)
	}
	return def
}

// Table answers a Table option, or nil.
func (o Options) Table(name string) *lua.LTable {
	t, _ := o.Value(name).(*lua.LTable)
	return t
}

// Seconds answers a Seconds option, or def.
func (o Options) Seconds(name string, def time.Duration) time.Duration {
	return o.duration(name, def, time.Second)
}

// Millis answers a Milliseconds option, or def.
func (o Options) Millis(name string, def time.Duration) time.Duration {
	return o.duration(name, def, time.Millisecond)
}

func (o Options) duration(name string, def, unit time.Duration) time.Duration {
	v, ok := o.Value(name).(lua.LNumber)
	if !ok {
		return def
	}
	return Span(float64(v), unit)
}

// Span answers n units as a Duration; what is longer than a Duration holds is
// the longest one.
func Span(n float64, unit time.Duration) time.Duration {
	d := n * float64(unit)
	if d >= float64(1<<63-1) {
		return 1<<63 - 1
	}
	return time.Duration(d)
}

// Suggest answers `did you mean "x"?` when a name is near, else the list of
// names: what an error about a choice ends with.
func Suggest(got string, names []string) string {
	best, bestDistance := "", len(got)/2+1
	for _, n := range names {
		if d := distance(got, n); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	if best != "" {
		return "did you mean " + strconv.Quote(best) + "?"
	}
	if len(names) == 0 {
		return "no name is known here"
	}
	return fmt.Sprintf("known: %s", strings.Join(names, ", "))
}

// distance counts the edits between a and b; two swapped letters are one edit.
func distance(a, b string) int {
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
