package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
)

// anyRunIsSound: whatever is done, in whatever order and with whatever crashes,
// I1, I2, I5 and I6 hold at every step; and at the end every request rebuilds to
// what the model saw, every prefix of every log is pair-closed, the same log
// makes the same request in another process, and no call ran twice.
func anyRunIsSound(t *rapid.T) {
	w := newWorld()
	t.Repeat(w.steps())
	for _, id := range w.ids {
		w.requests(t, id)
		w.prefixes(t, id)
		w.reads(t, id)
	}
	for key, n := range w.runs {
		require.True(t, n <= 1 || w.reruns[key], "%s ran %d times", key, n)
	}
}

func (w *world) requests(t *rapid.T, id string) {
	evs, err := w.handles[id].Events(ctxb, 1)
	require.NoError(t, err)
	for _, ev := range evs {
		if ev.Kind != kernel.LLMRequest {
			continue
		}
		for _, k := range []*kernel.Kernel{w.k, newKernel(w.tape)} {
			s, err := k.Attach(ctxb, id)
			require.NoError(t, err)
			req, err := s.Request(ctxb, ev.Beat)
			require.NoError(t, err)
			if seen, ok := w.asked[id+"/"+ev.Beat]; ok {
				require.Equal(t, seen, string(req.Canonical()))
			}
		}
	}
}

func (w *world) prefixes(t *rapid.T, id string) {
	evs, err := w.handles[id].Events(ctxb, 1)
	require.NoError(t, err)
	other, err := newKernel(w.tape).Attach(ctxb, id)
	require.NoError(t, err)
	same, err := other.Events(ctxb, 1)
	require.NoError(t, err)
	for n := range len(evs) + 1 {
		req := kernel.FoldEvents(evs[:n], nil)
		require.Empty(t, unpaired(req), "the first %d events", n)
		require.Equal(t, string(req.Canonical()), string(kernel.FoldEvents(same[:n], nil).Canonical()))
	}
}

// reads: a handle that was there all the time reads what a new one reads (I3,
// I4).
func (w *world) reads(t *rapid.T, id string) {
	old := w.handles[id]
	fresh, err := newKernel(w.tape).Attach(ctxb, id)
	require.NoError(t, err)
	for n := range 5 {
		got, gotSeed, err := old.Beats(ctxb, n, true)
		require.NoError(t, err)
		want, wantSeed, err := fresh.Beats(ctxb, n, true)
		require.NoError(t, err)
		require.Equal(t, beatText(want), beatText(got), "the last %d beats", n)
		require.Equal(t, texts(wantSeed), texts(gotSeed))
	}
}

func texts(evs []*kernel.Event) (out []string) {
	for _, ev := range evs {
		out = append(out, eventText(ev))
	}
	return out
}

func beatText(beats []kernel.BeatRecord) (out [][]string) {
	for _, b := range beats {
		out = append(out, append([]string{b.ID}, texts(b.Events)...))
	}
	return out
}

func TestAnyRunIsSound(t *testing.T) { rapid.Check(t, anyRunIsSound) }

func FuzzAnyRunIsSound(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyRunIsSound)) }
