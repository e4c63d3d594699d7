package luabind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// linesOf answers the trace of err without its tabs.
func linesOf(err error) []string {
	return strings.Split(strings.ReplaceAll(traceOf(err), "\t", ""), "\n")
}

func TestTracebackCrossesEveryBoundary(t *testing.T) {
	err := evalError(t, newVM(t, Config{}), `
local function deepest() error("boom") end
local function in_coroutine() local x = deepest() return x end
local function in_task()
  local co = coroutine.wrap(in_coroutine)
  local v = co()
  return v
end
local function in_scope(s) local h = s:spawn(in_task, { name = "child" }) return h:join() end
local function in_pcall() local v = std.task.scope(in_scope) return v end
local ok, e = pcall(in_pcall)
assert(not ok)
local v = in_pcall()
return v`)
	require.Equal(t, "test.lua:2: boom", err.Error())
	require.Equal(t, []string{
		"[Go]: in function 'error'",
		"test.lua:2: in function 'deepest'",
		"test.lua:3: in function <test.lua:3>",
		"[Go]: in function 'co'",
		"test.lua:6: in function <test.lua:4>",
		"(spawned as \"child\" by)",
		"test.lua:9: in function <test.lua:9>",
		"[Go]: in function 'scope'",
		"test.lua:10: in function 'in_pcall'",
		"test.lua:13: in main chunk",
	}, linesOf(err))
}

func TestTracebackKeepsBothEndsOfADeepStack(t *testing.T) {
	err := evalError(t, newVM(t, Config{}), "local function f(n) if n == 0 then error('x') end return 1 + f(n - 1) end\nf(1000)")
	lines := linesOf(err)
	require.Len(t, lines, traceHead+1+traceTail)
	require.Equal(t, "... (963 levels)", lines[traceHead])
	require.Equal(t, "test.lua:2: in main chunk", lines[len(lines)-1])
}

func TestTracebackCountsTailCalls(t *testing.T) {
	err := evalError(t, newVM(t, Config{}), "local function f(n) if n == 0 then error('x') end return f(n - 1) end\nf(7)")
	require.Contains(t, linesOf(err), "(7 tail calls)")
}

type testFault struct{}

func (testFault) Error() string { return "the store is busy" }

// faulty is a module whose functions fail in all the ways there are.
var faulty = &Module{
	Name: "faulty",
	Fault: func(err error) (Fault, bool) {
		if !errors.As(err, &testFault{}) {
			return Fault{}, false
		}
		return Fault{Kind: "busy", Method: "append", Retryable: true, Text: "knl: append: busy: " + err.Error()}, true
	},
	Funcs: []Func{
		{Name: "structured", Fn: func(*Call) (int, error) { return 0, fmt.Errorf("wrapped: %w", testFault{}) }},
		{Name: "plain", Fn: func(*Call) (int, error) { return 0, errors.New("no such thing") }},
		{Name: "mistake", Args: []Arg{{Name: "n", Kind: Whole}}, Fn: func(c *Call) (int, error) { return 0, c.Mistake("%d is 100%% wrong", c.Int(1)) }},
		{Name: "panics", Fn: func(*Call) (int, error) { panic("BUG: faulty: broken") }},
		{Name: "nilpointer", Fn: func(*Call) (int, error) { var c *Call; return c.N(), nil }},
		{Name: "call", Args: []Arg{{Name: "fn", Kind: Function}}, Fn: func(c *Call) (int, error) {
			out, err := c.Invoke(c.Func(1), lua.LNumber(1))
			if err != nil {
				return 0, err
			}
			return c.Return(out...)
		}},
		{Name: "swallow", Args: []Arg{{Name: "fn", Kind: Function}}, Fn: func(c *Call) (int, error) {
			_, err := c.Invoke(c.Func(1))
			return c.Return(lua.LBool(err == nil))
		}},
		{Name: "blocked", Args: []Arg{{Name: "fn", Kind: Function}}, Fn: func(c *Call) (int, error) {
			fn, vm := c.Func(1), c.VM()
			return 0, c.Block(func(ctx context.Context) error {
				return vm.Enter(ctx, func(c *Call) error { _, err := c.Invoke(fn); return err })
			})
		}},
		{Name: "panic_blocked", Fn: func(c *Call) (int, error) {
			return 0, c.Block(func(context.Context) error { panic("in the block") })
		}},
	},
}

func TestStructuredErrors(t *testing.T) {
	vm := newVM(t, Config{Modules: []*Module{faulty}})
	require.Equal(t, []string{"busy", "append", "true", "wrapped: the store is busy", "knl: append: busy: wrapped: the store is busy", "nil"}, eval(t, vm, `
		local f = require("faulty")
		local ok, e = pcall(f.structured)
		assert(not ok and type(e) == "userdata")
		local ok, again = pcall(error, e)
		assert(again == e)
		assert(getmetatable(e) == "error")
		assert("got: " .. e == "got: knl: append: busy: wrapped: the store is busy")
		return e.kind, e.method, e.retryable, e.message, tostring(e), e.other`))
	require.Equal(t, []string{"nil", "faulty.plain", "false", "faulty.plain: no such thing"}, eval(t, vm, `
		local ok, e = pcall(require("faulty").plain)
		return e.kind, e.method, e.retryable, tostring(e)`))

	err := evalError(t, vm, "\nlocal f = require('faulty')\nf.structured()")
	require.Equal(t, "test.lua:3: knl: append: busy: wrapped: the store is busy", err.Error())
	require.ErrorAs(t, err, &testFault{}, "the Go error is found again")
	require.ErrorContains(t, evalError(t, vm, "local ok, e = pcall(require('faulty').plain)\ne.kind = 1"), `test.lua:2: error: field "kind" cannot be set`)
	require.EqualError(t, evalError(t, vm, "\nrequire('faulty').mistake(7)"), "test.lua:2: faulty.mistake: 7 is 100% wrong")
	require.EqualError(t, evalError(t, vm, "\nrequire('faulty').mistake(2.5)"), "test.lua:2: faulty.mistake: argument 1 (n): got 2.5, want a whole number")
}

// An error of a Lua callback passes Go as the very value.
func TestErrorsPassThroughGo(t *testing.T) {
	vm := newVM(t, Config{Modules: []*Module{faulty}})
	for _, fn := range []string{"call", "blocked"} {
		require.Equal(t, []string{"true", "true"}, eval(t, vm, `
			local t = {}
			local ok, e = pcall(require("faulty").`+fn+`, function() error(t) end)
			local ok2, v = pcall(require("faulty").call, function(n) return n + 1 end)
			return e == t, ok2 and v == 2`))
	}
	err := evalError(t, vm, "local function inner() error('x') end\nrequire('faulty').blocked(function() inner() end)")
	require.Equal(t, "test.lua:1: x", err.Error())
}

func TestTracebackOfAnEntryFromGo(t *testing.T) {
	vm := newVM(t, Config{Modules: []*Module{faulty}})
	out := eval(t, vm, `
local trace
local function handler() trace = debug.traceback() end
require("faulty").blocked(handler)
return trace`)
	require.Equal(t, "stack traceback:\n\ttest.lua:3: in function <test.lua:3>\n\t[Go]: in function 'blocked'\n\ttest.lua:4: in main chunk", out[0])
}

// A panic of the host is an error with a Lua traceback and the VM works on.
func TestPanicsAreErrors(t *testing.T) {
	vm := newVM(t, Config{Modules: []*Module{faulty}})
	for fn, text := range map[string]string{
		"panics":        "BUG: faulty: broken",
		"nilpointer":    "BUG: runtime error: invalid memory address or nil pointer dereference",
		"panic_blocked": "BUG: in the block",
	} {
		err := evalError(t, vm, "\nlocal f = require('faulty')\nf."+fn+"()")
		var bug *PanicError
		require.ErrorAs(t, err, &bug)
		require.Equal(t, "test.lua:3: "+text, err.Error())
		require.Contains(t, bug.Stack, "luabind.")
		require.Equal(t, []string{"[Go]: in function '" + fn + "'", "test.lua:3: in main chunk"}, linesOf(err))
		require.Equal(t, []string{"panic"}, eval(t, vm, "local ok, e = pcall(require('faulty')."+fn+") return e.kind"))
	}
}

// A host function that drops the error of its callback does not drop a limit.
func TestGoCodeCannotSwallowALimit(t *testing.T) {
	vm := newVM(t, Config{Modules: []*Module{faulty}, Limits: Limits{Instructions: 50_000}})
	var limit *LimitError
	require.ErrorAs(t, evalError(t, vm, `
		local f = require("faulty")
		while true do f.swallow(function() while true do end end) end`), &limit)
	require.Equal(t, []string{"false"}, eval(t, vm, `return require("faulty").swallow(error)`))
}

func TestUncaughtValues(t *testing.T) {
	vm := newVM(t, Config{})
	for source, want := range map[string]string{
		`error({ message = "of the table" })`:                                             "test.lua:1: of the table",
		`error(setmetatable({}, { __tostring = function() return "by its method" end }))`: "test.lua:1: by its method",
		`error({})`:  "test.lua:1: a table was raised as an error",
		`error(nil)`: "test.lua:1: nil",
		`error(12)`:  "test.lua:1: 12",
	} {
		require.EqualError(t, evalError(t, vm, source), want)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for source, want := range map[string]string{
		"x = = 1":               `s.lua:1: unexpected "="`,
		"\nlocal t = {":         "s.lua:2: unexpected end of file, a block, string or bracket is not closed",
		"if x then\n":           "s.lua:1: unexpected end of file, a block, string or bracket is not closed",
		"x = 'abc\ny'":          `s.lua:1: unterminated string near "abc"`,
		"#!/usr/bin/knl\nx = )": `s.lua:2: unexpected ")"`,
		"break":                 "s.lua:1: no loop to break",
		"goto nowhere":          "s.lua:1: no visible label 'nowhere' for <goto>",
	} {
		_, err := compile("s.lua", source)
		require.EqualError(t, err, want, source)
	}
}
