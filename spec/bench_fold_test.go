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
// beaten, over and over: as the session hands them out, and with every one of
// them looked at.
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
local events = s:events()
assert(#events == 100)
if LOOK then
  for _, ev in ipairs(events) do assert(ev.data and ev.meta) end
end
return function(n)
  for _ = 1, n do
    local request = knl.fold(events, device)
  end
  return #knl.fold(events, device).messages
end
`

// foldRuns answers a function that folds n times, in dev mode or without it.
func foldRuns(tb testing.TB, dev, look bool) func(n int) time.Duration {
	mem := store.NewMem()
	host := &luabind.Kernel{Open: func(string) (store.Store, error) { return mem, nil }}
	vm, err := luabind.New(luabind.Config{
		Modules: append(luabind.KnlModules(host), luabind.PortsModule(&luabind.Ports{Registry: port.Registry{}})),
		Env:     func(name string) (string, bool) { return "1", dev && name == "LSHAPE_CHECK" },
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, vm.Close()) })
	vm.SetGlobal("LOOK", lua.LBool(look))
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
// most 3 × what it costs without them, whether a script has looked at the events
// or not. dev/prod is the median of pairs taken in turn.
func BenchmarkFoldChecked(b *testing.B) {
	for name, look := range map[string]bool{"handed on": false, "looked at": true} {
		b.Run(name, func(b *testing.B) {
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
