package spec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	gopher "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/lua"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
)

// policyLaw answers every request that the shipped folds and filters make of
// every beginning of a log: events -> a list of their JSON, and what made each.
const policyLaw = `
local knl, policy = require("knl"), require("policy")
local std = require("std")
local port = {}
function port:count(request) return #std.json.encode(request) end
function port:profile() return { context_window = 600 } end

local folds = { default = knl.fold }
for tail = 1, 3 do
  for _, keep_seed in ipairs{ false, true } do
    for _, from_summary in ipairs{ false, true } do
      local name = ("tail %d %s %s"):format(tail, tostring(keep_seed), tostring(from_summary))
      folds[name] = policy.window{ tail = tail, keep_seed = keep_seed, from_summary = from_summary }
      folds["fit " .. name] = policy.window{ tail = tail > 1 and tail or nil, keep_seed = keep_seed,
        from_summary = from_summary, fit = { port = port } }
    end
  end
end
for _, name in ipairs{ "tail 2 true true", "fit tail 1 false true" } do
  local _, summary = policy.compact{ fold = folds[name] }
  folds["summary of " .. name] = summary
end

local device = knl.device{ system = "s", tools = { look = { handler = print } } }
local last = { { id = "b", events = {
  { kind = "llm_call_failed", beat = "b", data = { error = "x" } },
} } }
local broken = { beats = function() return last end }
local filters = { policy.carry{ at = "head" }(broken), policy.carry{ at = "tail" }(broken) }

local function add(out, name, request)
  local text = std.json.encode(request)
  if not out.seen[text] then
    out.seen[text] = true
    out[#out + 1] = text
    out.names[#out] = name
  end
end

return function(events)
  local out = { seen = {}, names = {} }
  for n = 0, #events do
    local log = { unpack(events, 1, n) }
    for name, fold in pairs(folds) do
      local ok, request = pcall(fold, log, device)
      if ok then
        add(out, name, request)
        for i, filter in ipairs(filters) do add(out, name .. " carry " .. i, filter(request)) end
      elseif not tostring(request):find("has room for", 1, true)
        and not tostring(request):find("no beat that no summary covers", 1, true)
        and not tostring(request):find("the fold left a part of it", 1, true) then
        error(name .. ": " .. tostring(request))
      end
    end
  end
  return std.json.encode({ unpack(out) }), std.json.encode(out.names)
end
`

// policyVM answers the function that a chunk returns, in a VM with the shipped
// modules.
func policyVM(tb testing.TB, chunk string) (vm *luabind.VM, fn gopher.LValue) {
	tb.Helper()
	return policyVMOn(tb, chunk, store.NewMem())
}

func policyVMOn(tb testing.TB, chunk string, st store.Store) (vm *luabind.VM, fn gopher.LValue) {
	tb.Helper()
	host := &luabind.Kernel{Open: func(string) (store.Store, error) { return st, nil }}
	modules := append(luabind.KnlModules(host), luabind.PortsModule(&luabind.Ports{Registry: port.Registry{}}))
	vm, err := luabind.New(luabind.Config{Embedded: lua.FS, Modules: append(modules, luabind.Std(luabind.StdOptions{})...)})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = vm.Close() })
	loaded, err := vm.Root().LoadString(chunk)
	require.NoError(tb, err)
	out, err := vm.Run(context.Background(), loaded)
	require.NoError(tb, err)
	return vm, out[0]
}

// somePolicyEvent draws an event of a log that may be damaged, cut short, or of
// several drivers.
func somePolicyEvent(t *rapid.T) map[string]any {
	ev := map[string]any{}
	kind := rapid.SampledFrom([]string{"msg_user", "llm_response", "llm_response", "tool_call", "tool_result", "tool_result",
		"llm_request", "summary", "beat_interrupted", "note"}).Draw(t, "kind")
	ev["kind"] = kind
	if beat := rapid.SampledFrom([]string{"", "b1", "b2", "b3", "b4"}).Draw(t, "beat"); beat != "" {
		ev["beat"] = beat
	}
	id := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "id")
	text := map[string]any{"type": "text", "text": rapid.SampledFrom([]string{"hm", "", " ", "a longer text of a model, for what it is worth"}).Draw(t, "text")}
	use := map[string]any{"type": "tool_use", "id": id, "name": "look", "input": map[string]any{}}
	switch kind {
	case "msg_user", "summary":
		ev["data"] = map[string]any{"content": rapid.SampledFrom([]any{"hello", "", []any{text}, 5}).Draw(t, "content"),
			"through": rapid.SampledFrom([]any{nil, 0, 1, 3, 100, "x"}).Draw(t, "through")}
	case "llm_response":
		ev["data"] = map[string]any{"content": rapid.SampledFrom([]any{[]any{text}, []any{use}, []any{text, use}, []any{}, "x"}).Draw(t, "content")}
	case "llm_request":
		window := map[string]any{"kept": rapid.SampledFrom([]any{0, 1, 7, "x", -1}).Draw(t, "kept")}
		if rapid.Bool().Draw(t, "compact") {
			window["compact"] = map[string]any{"through": 1}
		}
		ev["data"] = map[string]any{"window": window}
	default:
		ev["data"] = map[string]any{"call_id": id, "name": "look", "ok": rapid.Bool().Draw(t, "ok"), "result": "r"}
	}
	return ev
}

// TestPolicyRequestsAreTaken: whatever the log, and wherever it is cut, what the
// shipped folds and filters make of it leaves every call with its result, and
// each provider takes it.
func TestPolicyRequestsAreTaken(t *testing.T) {
	vm, law := policyVM(t, policyLaw)
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(somePolicyEvent), 0, 10).Draw(t, "events")
		raw, err := json.Marshal(events)
		require.NoError(t, err)
		log, err := luabind.FromJSON(vm.Root(), raw)
		require.NoError(t, err)
		out, err := vm.Run(context.Background(), law, log)
		require.NoError(t, err)
		var made, names []string
		require.NoError(t, json.Unmarshal([]byte(out[0].String()), &made))
		require.NoError(t, json.Unmarshal([]byte(out[1].String()), &names))
		require.NotEmpty(t, made)
		for i, text := range made {
			req, err := kernel.ParseRequest(json.RawMessage(text))
			require.NoError(t, err, names[i])
			require.Empty(t, parted(t, req), "%s: %s", names[i], text)
			requireTaken(t, req, names[i])
		}
	})
}

// parted answers the calls that have not their results right behind them, and
// the results that have no call.
func parted(t require.TestingT, req *kernel.Request) []string {
	var open, out []string
	for _, raw := range req.Messages {
		var m struct{ Content json.RawMessage }
		require.NoError(t, json.Unmarshal(raw, &m))
		var blocks []struct {
			Type, ID string
			Of       string `json:"tool_use_id"`
		}
		_ = json.Unmarshal(m.Content, &blocks) // text has none
		var calls, results []string
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				calls = append(calls, b.ID)
			case "tool_result":
				results = append(results, b.Of)
			}
		}
		if !slices.Equal(open, results) {
			out = append(out, fmt.Sprintf("calls %q, results %q", open, results))
		}
		open = calls
	}
	return append(out, open...)
}

func requireTaken(t require.TestingT, req *kernel.Request, name string) {
	for _, dialect := range port.Dialects {
		target := port.Target{Dialect: dialect}
		wire, err := port.Lower(target, req, port.Conf{Model: "m", MaxTokens: 100})
		require.NoError(t, err, "%s: %s", name, req.Canonical())
		require.NoError(t, port.Check(target, wire.Body), "%s: %s\n%s", name, fmt.Sprint(dialect), wire.Body)
	}
}
