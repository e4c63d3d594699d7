package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// providersTake: whatever the log, and wherever it is cut, each dialect makes of
// its fold a body that the provider accepts.
func providersTake(t require.TestingT, evs []*kernel.Event, d *kernel.Device) {
	req := kernel.FoldEvents(evs, d)
	for _, dialect := range port.Dialects {
		for _, prefill := range []bool{false, true} {
			target := port.Target{Dialect: dialect, Prefill: prefill}
			wire, err := port.Lower(target, req, port.Conf{Model: "m", MaxTokens: 100})
			require.NoError(t, err, "%s", req.Canonical())
			require.NoError(t, port.Check(target, wire.Body), "%s", wire.Body)
		}
	}
}

// anyEventsAreTaken is that law over made-up events.
func anyEventsAreTaken(t *rapid.T) {
	evs := rapid.SliceOfN(rapid.Custom(someEvent), 0, 16).Draw(t, "events")
	var d *kernel.Device
	if rapid.Bool().Draw(t, "tools") {
		var err error
		d, err = kernel.NewDevice(kernel.Config{Tools: toolbox(), System: raw(`"be brief"`)})
		require.NoError(t, err)
	}
	for n := range len(evs) + 1 {
		providersTake(t, evs[:n], d)
	}
}

func TestAnyEventsAreTaken(t *testing.T) { rapid.Check(t, anyEventsAreTaken) }

func FuzzAnyEventsAreTaken(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyEventsAreTaken)) }

// anyRunIsTaken is that law over what random runs with crashes record, and over
// every window of it.
func anyRunIsTaken(t *rapid.T) {
	w := newWorld()
	t.Repeat(w.steps())
	for _, id := range w.ids {
		s := w.handles[id]
		evs, err := s.Events(ctxb, 1)
		require.NoError(t, err)
		for n := range len(evs) + 1 {
			providersTake(t, evs[:n], nil)
		}
		for n := 1; n <= 4; n++ {
			evs, err := lastBeats(ctxb, s, n, n%2 == 0)
			require.NoError(t, err)
			providersTake(t, evs, nil)
		}
	}
}

func TestAnyRunIsTaken(t *testing.T) { rapid.Check(t, anyRunIsTaken) }

func FuzzAnyRunIsTaken(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyRunIsTaken)) }
