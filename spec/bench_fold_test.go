package spec

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
)

// foldLoop answers a function that folds the 100 events of a session that was
// beaten, over and over. LOOK says how: "never" as the session hands them out,
// "before" when every one was looked at once, "always" with events that are new
// to the script each time and all looked at, so that all that dev mode does to
// them is paid, and "own" with tables of the script's, held against the kernel's
// shape by lshape.
const foldLoop = `
local knl, ports = require("knl"), require("ports")
local replies = {}
for i = 1, 24 do
  replies[i] = { text = ("reading file %d "):format(i):rep(40), calls = { { "look", { path = "src/file" .. i .. ".go" } } } }
end
local s = knl.open()
local device = knl.device{
  llm = ports.script(replies):open(),
  system = "Look at the files.",
  tools = { look = { effects = "read", description = "reads a file", input_schema = { type = "object" }, handler = function(args)
    return ("package of %s\n"):format(args.path):rep(60)
  end } },
}
s:append{ kind = "msg_user", data = { content = "look at the files" } }
for _ = 1, 24 do assert(knl.beat(s, device).status == "ok") end
while s:len() < 100 do s:append{ kind = "note", data = { at = s:len() } } end
local own
local events = s:events()
assert(#events == 100)
local function look(list)
  for _, ev in ipairs(list) do assert(ev.data and ev.meta) end
  return list
end
if LOOK == "before" then look(events) end
local check, Events = require("lshape.check"), require("lshape.t").array_of(knl.shapes.event)
local given = {
  never = function() return events end,
  before = function() return events end,
  always = function() return look((knl.attach{ session = s:id() }:events())) end,
  own = function() return check.assert_dev(own, Events) end,
}
own = {}
for i, ev in ipairs(knl.attach{ session = s:id() }:events()) do
  own[i] = std.json.decode(std.json.encode{ kind = ev.kind, seq = ev.seq, epoch_ms = ev.epoch_ms, beat = ev.beat, meta = ev.meta, data = ev.data })
end
return function(n)
  for _ = 1, n do
    local request = knl.fold(given[LOOK](), device)
  end
  return #knl.fold(given[LOOK](), device).messages
end
`

// foldRuns answers a function that folds n times, in dev mode or without it.
func foldRuns(tb testing.TB, dev bool, look string) func(n int) time.Duration {
	mem := store.NewMem()
	host := &luabind.Kernel{Open: func(string) (store.Store, error) { return mem, nil }}
	vm, err := luabind.New(luabind.Config{
		Modules: append(append(luabind.KnlModules(host), luabind.Std(luabind.StdOptions{})...), luabind.PortsModule(&luabind.Ports{Registry: port.Registry{}})),
		Env:     func(name string) (string, bool) { return "1", dev && name == "LSHAPE_CHECK" },
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, vm.Close()) })
	vm.SetGlobal("LOOK", lua.LString(look))
	ctx := context.Background()
	out, err := vm.RunString(ctx, "fold.lua", foldLoop)
	require.NoError(tb, err)
	return func(n int) time.Duration {
		at := time.Now()
		got, err := vm.Run(ctx, out[0], lua.LNumber(n))
		require.NoError(tb, err)
		require.Equal(tb, "49", got[0].String())
		return time.Since(at)
	}
}

// BenchmarkFoldChecked: the checks of dev mode cost a fold over 100 events at
// most 3 × what it costs without them, however a script came by the events.
// dev/prod is the median of pairs taken in turn.
func BenchmarkFoldChecked(b *testing.B) {
	for _, look := range []string{"never", "before", "always", "own"} {
		b.Run(look, func(b *testing.B) {
			prod, dev := foldRuns(b, false, look), foldRuns(b, true, look)
			const each = 50
			var ratios, times []float64
			for range max(b.N, 40) {
				p, d := prod(each), dev(each)
				ratios, times = append(ratios, float64(d)/float64(p)), append(times, micros(d)/each)
			}
			slices.Sort(ratios)
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2], "dev-µs/fold")
			b.ReportMetric(ratios[len(ratios)/2], "dev/prod(≤3)")
			b.ReportMetric(0, "ns/op")
		})
	}
}
