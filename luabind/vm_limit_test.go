package luabind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// limitOf runs source, which must end with a limit.
func limitOf(t *testing.T, limits Limits, source string) *LimitError {
	t.Helper()
	vm := newVM(t, Config{Limits: limits, Warn: func(string) {}})
	var limit *LimitError
	require.ErrorAs(t, evalError(t, vm, source), &limit)
	require.Contains(t, limit.Message, "test.lua:")
	require.Contains(t, limit.Traceback, "test.lua:")
	return limit
}

func TestInstructionLimitIsExact(t *testing.T) {
	const body = "local n = 0 for i = 1, 1000 do n = n + i end return n"
	vm := newVM(t, Config{Limits: Limits{Instructions: 1 << 40}})
	eval(t, vm, body)
	used := vm.meter.total + int64(vm.meter.grant-vm.meter.left)

	exact := newVM(t, Config{Limits: Limits{Instructions: used}})
	require.Equal(t, []string{"500500"}, eval(t, exact, body))
	limitOf(t, Limits{Instructions: used - 1}, body)
}

// No construct of the language swallows a limit.
func TestLimitsCannotBeCaught(t *testing.T) {
	const loop = "while true do end"
	for name, source := range map[string]string{
		"bare":            loop,
		"pcall":           "pcall(function() " + loop + " end) return 'swallowed'",
		"pcall in a loop": "while true do pcall(function() " + loop + " end) end",
		"xpcall":          "xpcall(function() " + loop + " end, function() return 1 end) return 'swallowed'",
		"handler":         "xpcall(error, function() " + loop + " end) return 'swallowed'",
		"coroutine":       "coroutine.resume(coroutine.create(function() " + loop + " end)) return 'swallowed'",
		"wrap":            "pcall(coroutine.wrap(function() pcall(function() " + loop + " end) end)) return 'swallowed'",
		"task":            "std.task.scope(function(s) s:spawn(function() " + loop + " end) end) return 'swallowed'",
		"joined task":     "pcall(function() std.task.spawn(function() " + loop + " end):join() end) return 'swallowed'",
		"timeout":         "pcall(std.task.with_timeout, 60000, function() " + loop + " end) return 'swallowed'",
		"metamethod":      "local t = setmetatable({}, {__index = function() " + loop + " end}) pcall(function() return t.x end) return 'swallowed'",
		"comparator":      "pcall(table.sort, {2, 1}, function() " + loop + " end) return 'swallowed'",
		"gsub":            "pcall(string.gsub, 'x', 'x', function() " + loop + " end) return 'swallowed'",
		"load":            "pcall(load, function() " + loop + " end) return 'swallowed'",
		"tostring":        "pcall(tostring, setmetatable({}, {__tostring = function() " + loop + " end})) return 'swallowed'",
		"pattern":         "pcall(string.find, ('a'):rep(200), ('a*'):rep(60) .. 'b') return 'swallowed'",
		"gmatch":          "for _ in (('a'):rep(100)):gmatch(('a-'):rep(60) .. 'b') do end return 'swallowed'",
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "instructions", limitOf(t, Limits{Instructions: 200_000}, source).Limit)
		})
	}
}

func TestTimeLimit(t *testing.T) {
	for name, source := range map[string]string{
		"loop":    "while true do pcall(function() end) end",
		"waiting": "pcall(std.task.sleep, 600000) while true do end",
		"pattern": "string.find(('a'):rep(300), ('a*'):rep(80) .. 'b')",
	} {
		t.Run(name, func(t *testing.T) {
			limit := limitOf(t, Limits{Time: 20 * time.Millisecond}, source)
			require.Equal(t, "time", limit.Limit)
			require.Contains(t, limit.Message, "time limit of 20ms reached")
		})
	}
}

func TestMemoryLimit(t *testing.T) {
	limits := Limits{Memory: memoryUsed() + 40<<20}
	for name, source := range map[string]string{
		"doubling":        "local s = ('x'):rep(1024) while true do s = s .. s end",
		"tables":          "local t = {} while true do t[#t + 1] = { 1, 2, 3 } end",
		"strings":         "local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end",
		"caught":          "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(1e6) end) end",
		"concat":          "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(1e5) end while true do t[#t + 1] = table.concat(t) end",
		"gsub":            "local s = ('x'):rep(1e6) while true do s = s:gsub('x', 'xx') end",
		"many coroutines": "local t = {} while true do local co = coroutine.create(coroutine.yield) coroutine.resume(co) t[#t + 1] = co end",
		"deep recursions": "local t = {} local function f(n) if n == 0 then coroutine.yield() end return 1 + f(n - 1) end while true do local co = coroutine.create(f) coroutine.resume(co, 3000) t[#t + 1] = co end",
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "memory", limitOf(t, limits, source).Limit)
		})
	}
}

// Garbage is not memory in use: a script may make more than the limit in total.
func TestMemoryLimitForgivesGarbage(t *testing.T) {
	vm := newVM(t, Config{Limits: Limits{Memory: memoryUsed() + 64<<20}})
	require.Equal(t, []string{"ok"}, eval(t, vm, "for i = 1, 200 do local s = ('x'):rep(1e6) .. i end return 'ok'"))
}

// A single string has a bound of its own, and passing it is an ordinary error.
func TestStringLimit(t *testing.T) {
	vm := newVM(t, Config{Limits: Limits{String: 1 << 20}})
	for name, source := range map[string]string{
		"string.rep":    "return ('x'):rep(1e9)",
		"table.concat":  "local t = {} for i = 1, 100 do t[i] = ('x'):rep(1e5) end return table.concat(t)",
		"string.format": "local s = ('x'):rep(1e6) return ('%s%s'):format(s, s)",
		"string.gsub":   "return (('x'):rep(1000):gsub('x', ('y'):rep(10000)))",
		"..":            "local s = ('x'):rep(1e6) return s .. s",
		"load":          "load(function() return ('x'):rep(1e6) end)",
	} {
		ok := eval(t, vm, "local ok, e = pcall(function() "+source+" end) return ok, e")
		require.Equal(t, "false", ok[0], name)
		require.Contains(t, ok[1], "test.lua:1: "+name+": the result would have ")
		require.Contains(t, ok[1], "at most 1048576 are allowed")
	}
}

// The run's context ends waits and running Lua, pcall or not.
func TestCancelEndsTheRun(t *testing.T) {
	why := errors.New("interrupted")
	for name, source := range map[string]string{
		"loop":    "started() while true do pcall(function() end) end",
		"waiting": "started() while true do pcall(std.task.sleep, 600000) end",
		"tasks":   "for i = 1, 4 do std.task.spawn(function() while true do pcall(std.task.sleep, 600000) end end) end started() while true do std.task.yield() end",
	} {
		t.Run(name, func(t *testing.T) {
			vm := newVM(t, Config{})
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			vm.put(vm.root.G.Global, luaFuncs{"started": func(*luaState) int { cancel(why); return 0 }})
			_, err := vm.RunString(ctx, "test.lua", source)
			var stop *AbortError
			require.ErrorAs(t, err, &stop)
			require.ErrorIs(t, err, why)
			require.True(t, strings.HasPrefix(err.Error(), "test.lua:1: run cancelled"), err)
			require.Contains(t, stop.Traceback, "test.lua:1:")
		})
	}
}

// A limit ends the run at once, whatever other tasks wait for.
func TestLimitsEndWhatOthersWaitFor(t *testing.T) {
	memory := memoryUsed() + 40<<20
	for _, cut := range []struct {
		by     string
		limits Limits
		body   string
	}{
		{"instructions", Limits{Instructions: 200_000}, "while true do end"},
		{"memory", Limits{Memory: memory}, "local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end"},
		{"memory", Limits{Memory: memory}, "local s = ('x'):rep(1048576) while true do s = s .. s end"},
		{"time", Limits{Time: 20 * time.Millisecond}, "while true do end"},
	} {
		for shape, source := range map[string]string{
			"scope":    "std.task.scope(function(s) s:spawn(function() std.task.sleep(600000) end) s:spawn(function() %s end) end)",
			"joined":   "local w = std.task.spawn(function() pcall(std.task.sleep, 600000) end) std.task.spawn(function() %s end) w:join()",
			"main":     "std.task.spawn(function() %s end) std.task.sleep(600000)",
			"caught":   "std.task.spawn(function() %s end) return pcall(std.task.sleep, 600000)",
			"in a try": "std.task.spawn(function() %s end) return pcall(std.task.with_timeout, 600000, function() std.task.sleep(600000) end)",
		} {
			t.Run(cut.by+"/"+shape, func(t *testing.T) {
				vm := newVM(t, Config{Limits: cut.limits, Warn: func(text string) { t.Error(text) }})
				began := time.Now()
				var limit *LimitError
				require.ErrorAs(t, evalError(t, vm, fmt.Sprintf(source, cut.body)), &limit)
				require.Equal(t, cut.by, limit.Limit)
				require.Less(t, time.Since(began), 10*time.Second)
			})
		}
	}
}

// A limit that is hit in what a script does last is not swallowed, though no
// instruction comes after it.
func TestLimitsAtTheEndOfAScript(t *testing.T) {
	limits := Limits{Time: 20 * time.Millisecond}
	for name, source := range map[string]string{
		"raises":    "return std.task.sleep(600000)",
		"catches":   "return pcall(std.task.sleep, 600000)",
		"answers":   "return deaf()",
		"in a task": "std.task.spawn(deaf)",
		"coroutine": "return coroutine.resume(coroutine.create(deaf))",
	} {
		t.Run(name, func(t *testing.T) {
			vm := newVM(t, Config{Limits: limits, Warn: func(text string) { t.Error(text) }})
			vm.put(vm.root.G.Global, luaFuncs{"deaf": func(*luaState) int { time.Sleep(50 * time.Millisecond); return 0 }})
			_, err := vm.RunString(context.Background(), "test.lua", source)
			var limit *LimitError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, "time", limit.Limit)
		})
	}
}

// What was raised before a limit was hit is why the run ended.
func TestErrorsBeforeALimit(t *testing.T) {
	vm := newVM(t, Config{Limits: Limits{Time: 100 * time.Millisecond}, Warn: func(string) {}})
	require.EqualError(t, evalError(t, vm, "std.task.spawn(function() while true do pcall(std.task.yield) end end) error('failed', 0)"), "failed")
}

// A VM that hit a limit runs again: the count belongs to the run.
func TestRunAfterALimit(t *testing.T) {
	vm := newVM(t, Config{Limits: Limits{Instructions: 10_000}})
	evalError(t, vm, "while true do end")
	require.Equal(t, []string{"1"}, eval(t, vm, "return 1"))
}

// Source that no one writes by hand is refused: the compiler would take minutes
// or the whole stack for it.
func TestSourceIsBounded(t *testing.T) {
	const nested, chained = "more than 200 blocks and brackets within each other", "an expression with more than 1000 operators"
	rep := strings.Repeat
	const crowded = "too many local variables in the function that begins here: at most 200, " +
		"less what its longest call or assignment needs; keep some in a table, or in do … end"
	for source, want := range map[string]string{
		rep("x = 1 ", 200_000):                              "source of 1200000 bytes, at most 1048576 are compiled",
		"return " + rep("(", 201) + "1" + rep(")", 201):     nested,
		"return " + rep("{", 201) + rep("}", 201):           nested,
		rep("do ", 201) + rep("end ", 201):                  nested,
		rep("f(function() ", 101) + rep("end) ", 101):       nested,
		"return x" + rep(".a", 1001):                        chained,
		"return x" + rep("()", 1001):                        chained,
		"return x" + rep("+x", 1001):                        chained,
		"return " + rep("not ", 1001) + "x":                 chained,
		"if x then " + rep("elseif x then ", 1001) + " end": "an if with more than 1000 branches",
		"repeat " + rep("a.b=1 ", 50_000) + "until x":       "a function of 150004 instructions, at most 131072 are compiled",
		"return {" + numbers(60_000) + "}":                  "a function with 20001 different constants, too many to compile; keep data in a file and read it with std.json",
		rep("local a\n", 201):                               crowded,
		rep("local a\n", 195) + "f(" + rep("1, ", 9) + "1)": crowded,
	} {
		_, err := compile("s.lua", source)
		require.EqualError(t, err, "s.lua:1: "+want)
	}
	for _, fine := range []string{
		"return " + rep("(", 200) + "1" + rep(")", 200),
		"x = {" + rep("f(1) + 2,\n", 20_000) + "}",
		rep("local s = 'do do do (((' .. [==[ {{{ ]] ]==] -- [[ (((\n", 100),
		rep("if x then y = x.a[1].b + 2 end\n", 2000),
		"--[[\n" + rep("{", 500) + "]]",
		rep("f(1)\n", 5000),
		"repeat local a = 1 until a",
		"return {" + numbers(15_000) + "}",
	} {
		_, err := compile("fine.lua", fine)
		require.NoError(t, err)
	}
}

// numbers is a list of n that are all different.
func numbers(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "%d.5,", i)
	}
	return list.String()
}

type (
	luaState = lua.LState
	luaFuncs = map[string]lua.LGFunction
)
