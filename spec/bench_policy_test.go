package spec

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gopher "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// policyBench answers, for the session with an id, a function of each policy
// that asks it n times.
const policyBench = `
local knl, policy, ports = require("knl"), require("policy"), require("ports")
local port = ports.script{}
local conf = { context_window = 4000, max_tokens = 500 }
local tail = policy.window{ tail = 8, keep_seed = true }
local fit, fits = policy.window{ fit = { port = port, conf = conf } }
local stuck, carry = policy.stagnation{ period = 2 }, policy.carry()
local due, mark = policy.compact{ fold = fit }, policy.checkpoint{ every = 1e9 }
local fresh = policy.window{ tail = 8, from_summary = true }

return function(id)
  local s, device = knl.attach{ session = id }, knl.device{}
  local filter, request = carry(s), { messages = {} }
  local asked = {
    window_tail = function() tail(s, device) end,
    window_fit = function() fit(s, device) end,
    window_from_summary = function() fresh(s, device) end,
    fits = function() fits(s, device) end,
    carry = function() filter(request) end,
    stagnation = function() stuck(s) end,
    compact_due = function() due(s) end,
  }
  local names, fns = {}, {}
  for name in pairs(asked) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    fns[i] = function(n) for _ = 1, n do asked[name]() end end
  end
  return names, fns
end
`

// longSession drives a session to at least n events and answers its id.
func longSession(tb testing.TB, st store.Store, n int64) string {
	tb.Helper()
	ctx := context.Background()
	s, err := kernel.New(st, kernel.Options{}).Open(ctx, kernel.Open{})
	require.NoError(tb, err)
	_, err = s.Append(ctx, kernel.Draft{Kind: kernel.MsgUser, Data: json.RawMessage(`{"content":"look at the files"}`)})
	require.NoError(tb, err)
	text := json.RawMessage(`[{"type":"text","text":"` + randomText(400) + `"},{"type":"tool_use","name":"look","input":{"path":"a"}}]`)
	d, err := kernel.NewDevice(kernel.Config{
		LLM: kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
			return &kernel.Answer{Content: text, StopReason: "tool_use"}, nil
		}),
		Fold: func(ctx context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
			beats, _, err := log.Beats(ctx, 4, false)
			var evs []*kernel.Event
			for _, b := range beats {
				evs = append(evs, b.Events...)
			}
			return kernel.FoldEvents(evs, d), err
		},
		Tools: map[string]kernel.Tool{"look": {Effects: kernel.Read, Handler: func(context.Context, json.RawMessage, kernel.ToolContext) (json.RawMessage, error) {
			return json.RawMessage(`"` + randomText(400) + `"`), nil
		}}},
	})
	require.NoError(tb, err)
	for length := int64(0); length < n; {
		require.Equal(tb, kernel.StatusOK, kernel.Beat(ctx, s, d, kernel.BeatOptions{}).Status)
		length, err = s.Len(ctx)
		require.NoError(tb, err)
	}
	return s.ID()
}

// BenchmarkPolicies: asking a policy of a session of 100,000 events costs at most
// 1.5 × what it costs of one of 100.
func BenchmarkPolicies(b *testing.B) {
	st := store.NewMem()
	short, long := longSession(b, st, 100), longSession(b, st, 100_000)
	vm, ask := policyVMOn(b, policyBench, st)
	ctx := context.Background()
	of := func(id string) (names []string, fns []gopher.LValue) {
		out, err := vm.Run(ctx, ask, gopher.LString(id))
		require.NoError(b, err)
		out[0].(*gopher.LTable).ForEach(func(_, v gopher.LValue) { names = append(names, v.String()) })
		out[1].(*gopher.LTable).ForEach(func(_, v gopher.LValue) { fns = append(fns, v) })
		return names, fns
	}
	names, ofShort := of(short)
	_, ofLong := of(long)
	took := func(fn gopher.LValue, n int) time.Duration {
		at := time.Now()
		_, err := vm.Run(ctx, fn, gopher.LNumber(n))
		require.NoError(b, err)
		return time.Since(at) / time.Duration(n)
	}
	for i, name := range names {
		var shorts, longs []time.Duration
		took(ofShort[i], 20)
		took(ofLong[i], 20)
		for range 21 {
			shorts, longs = append(shorts, took(ofShort[i], 20)), append(longs, took(ofLong[i], 20))
		}
		b.ReportMetric(micros(median(shorts)), name+"-µs")
		b.ReportMetric(float64(median(longs))/float64(median(shorts)), name+"-100k/100")
	}
	b.ReportMetric(1.5, "limit-100k/100")
	b.ReportMetric(0, "ns/op")
}
