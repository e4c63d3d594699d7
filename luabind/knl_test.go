package luabind

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/port"
)

// knlVM is a VM with knl, ports and more on a fresh in-memory store.
func knlVM(t testing.TB, env map[string]string, more ...*Module) *VM {
	t.Helper()
	st := store.NewMem()
	host := &Kernel{Version: "test", Open: func(string) (store.Store, error) { return st, nil }}
	vm, err := New(Config{
		Modules: append(append(KnlModules(host), PortsModule(&Ports{Registry: port.Registry{}})), more...),
		Env:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, vm.Close()) })
	return vm
}

func runLua(t testing.TB, vm *VM, source string) []string {
	t.Helper()
	out, err := vm.RunString(context.Background(), "script.lua", source)
	require.NoError(t, err)
	var texts []string
	for _, v := range out {
		texts = append(texts, v.String())
	}
	return texts
}

func TestLoopOverAScriptedModel(t *testing.T) {
	vm := knlVM(t, nil)
	got := runLua(t, vm, `
local knl, ports = require("knl"), require("ports")
local port = ports.script{
  { calls = { { "add", { a = 19, b = 23 } } } },
  { text = "It is 42." },
}
local seen = {}
local device = knl.device{
  llm = port:open(),
  tools = { add = { effects = "read", handler = function(args, ctx)
    seen = { ctx.session:id(), ctx.beat ~= nil, ctx.call_id }
    return args.a + args.b
  end } },
}
return knl.session({ budget = { amount = 5, tag = "beats" } }, function(s)
  s:append{ kind = "msg_user", data = { content = "19+23?" } }
  local o
  repeat o = knl.beat(s, device) until o.status ~= "ok" or #o.out.tools == 0
  local rows = knl.views.tool_pairs(s)
  local evs = s:events()
  return o.status, o.out.content[1].text, s:remaining(), #evs, evs[#evs].kind, rows[1].name, seen[1] == s:id(), #s:beats{ last = 1 }
end)
`)
	require.Equal(t, []string{"ok", "It is 42.", "3", "11", "llm_response", "add", "true", "1"}, got)
}

func TestScriptsFoldFiltersAndModel(t *testing.T) {
	vm := knlVM(t, map[string]string{"LSHAPE_CHECK": "1"})
	got := runLua(t, vm, `
local knl, ports = require("knl"), require("ports")
local base = ports.script{ { text = "one" }, { text = "two" } }:open()
local seen = {}
local device = knl.device{
  llm = function(request, ctx)
    seen[#seen + 1] = #request.messages .. ":" .. request.messages[1].content .. ":" .. tostring(ctx.call)
    return base(request, ctx)
  end,
  fold = function(events, device)
    seen[#seen + 1] = tostring(#events) .. events[#events].kind
    return knl.fold(events, device)
  end,
  filters = { function(request) request.messages[1].content = "changed"; return request end },
  cost = function(request) return 2 end,
}
return knl.session({ budget = { amount = 5 } }, function(s)
  s:append{ kind = "msg_user", data = { content = "hello" } }
  local a = knl.beat(s, device)
  local b = knl.beat(s, device)
  local c = knl.beat(s, device)
  local req = s:request(a.out.beat)
  return a.status, b.status, c.status .. ":" .. c.reason, table.concat(seen, " "), req.messages[1].content, s:events()[3].data.content
end)
`)
	require.Equal(t, []string{"ok", "ok", "stopped:budget", "3msg_user 1:changed:0 6llm_response 2:changed:1 9llm_response", "changed", "hello"}, got)
}

func TestAModelMayRaiseWhyItFailed(t *testing.T) {
	vm := knlVM(t, nil)
	got := runLua(t, vm, `
local knl = require("knl")
local device = knl.device{ llm = function() error{ kind = "overloaded", retry_after = 2, message = "full" } end }
return knl.session({}, function(s)
  local o = knl.beat(s, device)
  return o.kind, o.detail.kind, o.detail.retryable, o.detail.retry_after, o.detail.message
end)
`)
	require.Equal(t, []string{"call", "overloaded", "true", "2", "full"}, got)
}

func TestAFoldTakesWhatBeatsAnswers(t *testing.T) {
	for _, dev := range []string{"0", "1"} {
		vm := knlVM(t, map[string]string{"LSHAPE_CHECK": dev})
		got := runLua(t, vm, `
local knl, ports = require("knl"), require("ports")
local device = knl.device{ llm = ports.script(function() return { text = "yes" } end):open() }
return knl.session({}, function(s)
  s:append{ kind = "msg_user", data = { content = "one" } }
  for _ = 1, 3 do knl.beat(s, device) end
  local beats, seed = s:beats{ last = 2, from_seed = true }
  local whole = knl.fold(s:events())
  local lists = knl.fold({ seed, beats })
  local touched = #beats[1].events + #seed
  local again = knl.fold({ seed, beats[1], beats[2].events, beats[2].events[1] })
  local own = knl.fold({ { kind = "msg_user", data = { content = "mine" } }, { id = "b", events = { { kind = "msg_user", data = { content = "two" } } } } })
  return #whole.messages, #lists.messages, #again.messages, #own.messages, touched > 2, s:beats{ last = 1 }[1] == beats[2]
end)
`)
		require.Equal(t, []string{"4", "3", "3", "2", "true", "true"}, got, "LSHAPE_CHECK=%s", dev)
	}
}
