package spec

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/lua"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
)

// fanLoop answers a function that runs n children of which each waits 100 ms, in
// a model call, and gives back what is left.
const fanLoop = `
local knl, ports, supervisor = require("knl"), require("ports"), require("supervisor")
local up = knl.open{ budget = { amount = 1e9 } }
local llm = ports.script(function() return { text = "found", delay = 0.1 } end):open()
local device = knl.device{ llm = llm }
local jobs = {}
for i = 1, %d do
  jobs[i] = { opts = { budget = { amount = 5, refund = true } }, fn = function(c)
    c:append{ kind = "msg_user", data = { content = "look" } }
    return knl.beat(c, device).status
  end }
end
return function()
  for _, slot in ipairs(supervisor.parallel(up, jobs)) do
    if not slot.ok or slot.values[1] ~= "ok" then error(slot.err or slot.values[1]) end
  end
end
`

// supervised is a VM on the store of h, with what ships with knl.
func (b *bench) supervised() *luabind.VM {
	host := &luabind.Kernel{Open: func(string) (store.Store, error) { return b.st, nil }}
	modules := append(luabind.KnlModules(host), luabind.PortsModule(&luabind.Ports{Registry: port.Registry{}}))
	vm, err := luabind.New(luabind.Config{
		Embedded: lua.FS,
		Modules:  append(modules, luabind.Std(luabind.StdOptions{Log: io.Discard})...),
	})
	require.NoError(b.tb, err)
	return vm
}

// fan answers how long a call of parallel with n children takes.
func (b *bench) fan(n int) (time.Duration, func()) {
	vm := b.supervised()
	ctx := context.Background()
	loop, err := vm.RunString(ctx, "fan", fmt.Sprintf(fanLoop, n))
	require.NoError(b.tb, err)
	var took []time.Duration
	for range 6 {
		at := time.Now()
		_, err = vm.Run(ctx, loop[0])
		require.NoError(b.tb, err)
		took = append(took, time.Since(at))
	}
	return median(took[1:]), func() { require.NoError(b.tb, vm.Close()) }
}

// BenchmarkParallel: 32 children that each wait 100 ms in a model call take at
// most 1.5 × 100 ms, on disk, their opening and closing included.
func BenchmarkParallel(b *testing.B) {
	h := newBench(b)
	defer h.close()
	one, done := h.fan(1)
	defer done()
	many, done := h.fan(32)
	defer done()
	b.ReportMetric(micros(one)/1e3, "one-ms")
	b.ReportMetric(micros(many)/1e3, "parallel-ms")
	b.ReportMetric(float64(many)/float64(one), "parallel/one")
	b.ReportMetric(float64(many)/float64(100*time.Millisecond), "of-100ms(≤1.5)")
	b.ReportMetric(0, "ns/op")
}
