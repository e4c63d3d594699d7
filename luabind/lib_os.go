package luabind

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// openOS makes the part of os that reads: clock, date, difftime, getenv, time.
// The rest is std.fs and std.sh.
func (vm *VM) openOS() {
	vm.library("os", map[string]lua.LGFunction{
		"clock": osClock, "date": osDate, "difftime": osDifftime, "getenv": osGetenv, "time": osTime,
		"exit": osExit,
	})
}

// osExit says how a script ends: an exit from within would leave sessions and
// stores as a crash does.
func osExit(l *lua.LState) int {
	raiseAt(l, 1, "os.exit is not there: return from the script; { ok = false } ends it with exit code 3")
	return 0
}

var processStart = time.Now()

// osClock answers seconds since the process started.
func osClock(l *lua.LState) int {
	l.Push(lua.LNumber(time.Since(processStart).Seconds()))
	return 1
}

func osDifftime(l *lua.LState) int {
	l.Push(l.CheckNumber(1) - l.OptNumber(2, 0))
	return 1
}

// osGetenv reads the environment that the host shows to the script.
func osGetenv(l *lua.LState) int {
	if v, ok := threadOf(l).vm.config.Env(l.CheckString(1)); ok {
		l.Push(lua.LString(v))
	} else {
		l.Push(lua.LNil)
	}
	return 1
}

// osTime is os.time([table]) in seconds of Unix time.
func osTime(l *lua.LState) int {
	if l.Get(1) == lua.LNil {
		l.Push(lua.LNumber(time.Now().Unix()))
		return 1
	}
	t := l.CheckTable(1)
	part := func(name string, def int64) int {
		v := t.RawGetString(name)
		if v == lua.LNil && def >= 0 {
			return int(def)
		}
		number, numeric := numberOf(v)
		n, ok := whole(lua.LNumber(number))
		if !numeric || !ok {
			raiseAt(l, 1, "os.time: field %q: got %s, want a whole number", name, show(v))
		}
		return int(n)
	}
	at := time.Date(part("year", -1), time.Month(part("month", -1)), part("day", -1),
		part("hour", 12), part("min", 0), part("sec", 0), 0, time.Local)
	l.Push(lua.LNumber(at.Unix()))
	return 1
}

// osDate is os.date([format [, time]]): "*t" answers a table, a leading "!" is UTC.
func osDate(l *lua.LState) int {
	format, at := l.OptString(1, "%c"), time.Now()
	if l.Get(2) != lua.LNil {
		sec, frac := math.Modf(float64(l.CheckNumber(2)))
		at = time.Unix(int64(sec), int64(frac*1e9))
	}
	if utc, ok := strings.CutPrefix(format, "!"); ok {
		format, at = utc, at.UTC()
	}
	if strings.HasPrefix(format, "*t") {
		l.Push(dateTable(l, at))
		return 1
	}
	l.Push(lua.LString(dateText(l, format, at)))
	return 1
}

func dateTable(l *lua.LState, at time.Time) *lua.LTable {
	t := l.CreateTable(0, 9)
	for name, n := range map[string]int{
		"year": at.Year(), "month": int(at.Month()), "day": at.Day(), "hour": at.Hour(), "min": at.Minute(),
		"sec": at.Second(), "wday": int(at.Weekday()) + 1, "yday": at.YearDay(),
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("isdst", lua.LBool(at.IsDST()))
	return t
}

// dateLayouts are the directives of strftime in Go's words.
var dateLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02",
	'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM",
	'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006",
	'z': "-0700", 'Z': "MST",
}

func dateText(l *lua.LState, format string, at time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; c {
		case 'j':
			fmt.Fprintf(&b, "%03d", at.YearDay())
		case 'w':
			fmt.Fprint(&b, int(at.Weekday()))
		case 'n', 't', '%':
			b.WriteString(map[byte]string{'n': "\n", 't': "\t", '%': "%"}[c])
		default:
			layout, ok := dateLayouts[c]
			if !ok {
				raiseAt(l, 1, "os.date: unknown directive '%%%c' (known: a A b B c d D e F H I j m M n p R S t T w x X y Y z Z)", c)
			}
			b.WriteString(at.Format(layout))
		}
	}
	return b.String()
}

// openRandom gives the VM a generator of its own, so that a seed means the same
// sequence whatever else runs in the process.
func (vm *VM) openRandom() {
	vm.random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	vm.library("math", map[string]lua.LGFunction{"random": mathRandom, "randomseed": mathRandomseed})
}

func mathRandomseed(l *lua.LState) int {
	threadOf(l).vm.random = rand.New(rand.NewPCG(math.Float64bits(float64(l.CheckNumber(1))), 0))
	return 0
}

// mathRandom is math.random([m [, n]]).
func mathRandom(l *lua.LState) int {
	r := threadOf(l).vm.random
	lo, hi := int64(1), int64(0)
	switch l.GetTop() {
	case 0:
		l.Push(lua.LNumber(r.Float64()))
		return 1
	case 1:
		hi = bound64(l, 1)
	default:
		lo, hi = bound64(l, 1), bound64(l, 2)
	}
	if lo > hi {
		raiseAt(l, 1, "math.random: the interval from %d to %d is empty", lo, hi)
	}
	l.Push(lua.LNumber(lo + r.Int64N(hi-lo+1)))
	return 1
}

func bound64(l *lua.LState, i int) int64 {
	n, ok := whole(lua.LNumber(math.Floor(float64(l.CheckNumber(i)))))
	if !ok {
		raiseAt(l, 1, "math.random: argument %d: got %s, want a number within 2^53", i, show(l.Get(i)))
	}
	return n
}
