package luabind

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lastOf is Lua that answers a child's handle, how it ended and what its parent
// has left then.
const lastOf = `
local knl, task = require("knl"), require("std").task
local up = knl.open{ budget = { amount = 10 } }
local kept
local function child(fn)
  return knl.session({ parent = up, budget = { from_parent = 4, refund = true } }, function(c)
    kept = c
    return fn(c)
  end)
end
local function ending()
  local last = kept:view("tail", { n = 1 })[1]
  return last.kind, last.data.reason, tostring(last.data.detail), up:remaining()
end
`

// However the function of a child ends, the child is closed and what was left of
// its units is back.
func TestAChildAlwaysEndsClosed(t *testing.T) {
	for name, tt := range map[string]struct{ body, reason, detail string }{
		"a stop":  {`child(function() return knl.Outcome.stopped("budget") end)`, "scope_exit", "nil"},
		"a raise": {`pcall(child, function() error("boom", 0) end)`, "error", "boom"},
		"a value, though cancelled": {`
			local h = task.spawn(function() return child(function() pcall(task.sleep, 60000) return "kept" end) end)
			task.yield() repeat task.sleep(1) until kept
			h:cancel()
			assert(h:join() == "kept")`, "scope_exit", "nil"},
		"a cancel": {`
			local h = task.spawn(function() child(function() task.sleep(60000) end) end)
			repeat task.sleep(1) until kept
			h:cancel()
			pcall(h.join, h)`, "error", "script.lua:16: std.task.sleep: task cancelled"},
		"an abort": {`
			pcall(task.with_timeout, 50, function() child(function() while true do pcall(task.sleep, 60000) end end) end, { grace_ms = 1 })`,
			"error", "aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runLua(t, knlVM(t, nil, Std(StdOptions{})...), lastOf+tt.body+"\nreturn ending()")
			require.Equal(t, []string{"session_closed", tt.reason, tt.detail, "10"}, got)
		})
	}
}

func TestAnAbortedChildIsFenced(t *testing.T) {
	got := runLua(t, knlVM(t, nil, Std(StdOptions{})...), lastOf+`
		pcall(task.with_timeout, 50, function() child(function() while true do pcall(task.sleep, 60000) end end) end, { grace_ms = 1 })
		local ok, err = pcall(kept.append, kept, { kind = "late" })
		return tostring(ok), err.kind`)
	require.Equal(t, []string{"false", "fenced"}, got)
}

// The end of the run leaves a session for its resume, and closes its children.
func TestTheEndOfARunClosesChildrenAlone(t *testing.T) {
	vm := knlVM(t, nil, Std(StdOptions{})...)
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, stop)
	_, err := vm.RunString(ctx, "script.lua", lastOf+`
		knl.session({ budget = { amount = 10 } }, function(s)
			up, UP = s, s
			child(function(c) C = c task.sleep(60000) end)
		end)`)
	require.ErrorIs(t, err, context.Canceled)
	got := runLua(t, vm, `
		local last = C:view("tail", { n = 1 })[1]
		return last.kind, last.data.reason, UP:view("tail", { n = 1 })[1].kind, UP:remaining()`)
	require.Equal(t, []string{"session_closed", "error", "budget_returned", "10"}, got)
}

func TestAStoreMayBeNamedByASessionInIt(t *testing.T) {
	got := runLua(t, knlVM(t, nil, Std(StdOptions{})...), lastOf+`
		local c = knl.open{ parent = up, budget = { from_parent = 1 } }
		return tostring(knl.resume{ session = c:id(), store = up }:id() == c:id()),
			tostring(knl.attach{ session = c:id(), store = c }:id() == c:id()),
			tostring(knl.open{ store = c }:id() ~= nil),
			knl.error(select(2, pcall(knl.open, { store = task.spawn(print) }))).kind`)
	require.Equal(t, []string{"true", "true", "true", "validation"}, got)
}

// A task that goes on in spite of its cancellation holds up nobody for long.
func TestACancelledScopeEnds(t *testing.T) {
	at := time.Now()
	got := runLua(t, knlVM(t, nil, Std(StdOptions{})...), `
		local task, n = require("std").task, 0
		task.scope(function(s)
			s:spawn(function() while true do pcall(task.sleep, 60000) end end)
			s:spawn(function() pcall(task.sleep, 60000) n = n + 1 end)
			task.yield()
			s:cancel()
			s:cancel()
		end)
		return n`)
	require.Equal(t, []string{"1"}, got)
	require.Less(t, time.Since(at), 10*time.Second)
}

// The tasks that the end of a run takes with it say nothing of their own.
func TestTheEndOfARunIsToldOnce(t *testing.T) {
	var told []string
	vm := newVM(t, Config{Warn: func(text string) { told = append(told, text) }})
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, stop)
	_, err := vm.RunString(ctx, "test.lua", `
		std.task.scope(function(s)
			for _ = 1, 3 do s:spawn(function() while true do pcall(std.task.sleep, 60000) end end) end
		end)`)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, told)
}

// What ends a task from outside, here the timeout of a tool, ends what it
// spawned too, also a task that takes no notice.
func TestATimeoutEndsTheTasksOfATool(t *testing.T) {
	for name, body := range map[string]string{
		"a scope":             `task.scope(function(s) s:spawn(spin) end)`,
		"a task of the call":  `task.spawn(spin)`,
		"a scope in a task":   `task.scope(function(s) s:spawn(function() task.scope(function(in_it) in_it:spawn(spin) end) end) end)`,
		"a task that catches": `task.scope(function(s) s:spawn(function() while true do pcall(task.sleep, 60000) end end) end)`,
	} {
		t.Run(name, func(t *testing.T) {
			got := runLua(t, knlVM(t, nil, Std(StdOptions{})...), `
				local knl, ports, task = require("knl"), require("ports"), require("std").task
				local function spin() while true do end end
				local device = knl.device{
					llm = ports.script{ { calls = { { "t", {} } } } }:open(),
					tools = { t = { timeout = 0.01, handler = function() `+body+` return "late" end } },
				}
				local s = knl.open{}
				local o = knl.beat(s, device)
				return o.status, tostring(#o.out.tools)`)
			require.Equal(t, []string{"ok", "1"}, got)
		})
	}
}

// The line of a mistake is that of the script, through a bracket and through a
// script that catches the error and raises it again.
func TestErrorsKeepTheirLine(t *testing.T) {
	const deep = "local knl = require(\"knl\")\nlocal function deep(s)\n  s:append{ kind = 5 }\nend\n"
	for name, body := range map[string]string{
		"a bracket":  "knl.session({}, function(s)\n  deep(s)\nend)",
		"once again": "local s = knl.open{}\nlocal ok, e = pcall(deep, s)\nerror(e, 0)",
		"a task":     "local s = knl.open{}\nlocal h = std.task.spawn(function() deep(s) end)\nh:join()",
	} {
		t.Run(name, func(t *testing.T) {
			vm := knlVM(t, nil, Std(StdOptions{})...)
			_, err := vm.RunString(context.Background(), "script.lua", deep+body)
			require.ErrorContains(t, err, "script.lua:3: knl: append: validation: event.kind: got 5, want a string")
			require.Contains(t, traceOf(err), "script.lua:3: in function")
		})
	}
}
