package pebblestore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/kernel/store/storetest"
)

var bg = context.Background()

// history is what a store went through: the model after each batch that Apply
// took, and the last of them whose Wait answered nil.
type history struct {
	models  []*storetest.Model
	commits []store.Commit
	acked   int
}

func newHistory(m *storetest.Model) *history { return &history{models: []*storetest.Model{m}} }

func (h *history) now() *storetest.Model { return h.models[len(h.models)-1] }

func (h *history) apply(st store.Store, b *store.Batch, f store.Flush) error {
	c, err := st.Apply(bg, b, f)
	if err != nil {
		return err
	}
	m := h.now().Clone()
	m.Put(b)
	h.models = append(h.models, m)
	h.commits = append(h.commits, c)
	return nil
}

// wait waits for the n-th batch from the start, counted from 1.
func (h *history) wait(n int) error {
	err := h.commits[n-1].Wait(bg)
	if err == nil {
		h.acked = max(h.acked, n)
	}
	return err
}

// recovered finds the point of the history that st stands at: no earlier than
// what was acknowledged, with every batch whole. It fails when there is none.
func (h *history) recovered(t require.TestingT, st *Store) *storetest.Model {
	for n := len(h.models) - 1; n >= h.acked; n-- {
		if trial(func(t require.TestingT) { h.models[n].Holds(t, st) }) {
			report, err := st.Check(bg)
			require.NoError(t, err)
			require.Empty(t, report.Damage)
			return h.models[n]
		}
	}
	rows, err := st.Streams(bg, "", 0)
	require.Fail(t, "the store stands at no point since the last acknowledged batch",
		"acknowledged %d of %d; streams %v (%v)", h.acked, len(h.models)-1, rows, err)
	return nil
}

// trial says whether fn passes.
func trial(fn func(require.TestingT)) (passes bool) {
	type failure struct{}
	defer func() {
		if r := recover(); r != nil {
			if _, failed := r.(failure); !failed {
				panic(r)
			}
		}
	}()
	fn(trialT(func() { panic(failure{}) }))
	return true
}

type trialT func()

func (trialT) Errorf(string, ...any) {}
func (t trialT) FailNow()            { t() }

// tinyTables make a few kilobytes go through every stage of Pebble.
const tinyTables = 16 << 10

func reopen(t require.TestingT, fs vfs.FS) *Store {
	st, err := Open("db", Options{FS: fs, memTable: tinyTables})
	require.NoError(t, err)
	return st
}

func TestWhatWasAcknowledgedSurvivesACrash(t *testing.T) {
	noLeaks(t)
	rapid.Check(t, func(rt *rapid.T) {
		fs := vfs.NewCrashableMem()
		st := reopen(rt, fs)
		defer func() { _ = st.Close() }() // also when rapid gives a run up
		h := newHistory(storetest.NewModel())
		rt.Repeat(map[string]func(*rapid.T){
			"apply": func(rt *rapid.T) {
				b := storetest.DrawBatch(rt, h.now())
				f := rapid.SampledFrom([]store.Flush{store.Now, store.Lazy}).Draw(rt, "flush")
				if !h.now().Fits(b) {
					_, err := st.Apply(bg, b, f)
					require.ErrorIs(rt, err, store.ErrConflict)
					return
				}
				require.NoError(rt, h.apply(st, b, f))
			},
			"wait": func(rt *rapid.T) {
				if n := len(h.commits); n > 0 {
					require.NoError(rt, h.wait(rapid.IntRange(1, n).Draw(rt, "n")))
				}
			},
			"crash": func(rt *rapid.T) {
				cfg := vfs.CrashCloneCfg{
					UnsyncedDataPercent: rapid.SampledFrom([]int{0, 50, 100}).Draw(rt, "kept"),
					RNG:                 rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)),
				}
				clone := fs.CrashClone(cfg)
				require.NoError(rt, st.Close())
				fs, st = clone, reopen(rt, clone)
				h = newHistory(h.recovered(rt, st))
			},
			"close": func(rt *rapid.T) {
				require.NoError(rt, st.Close())
				st = reopen(rt, fs)
				h.acked = len(h.models) - 1
				h = newHistory(h.recovered(rt, st))
			},
		})
		h.now().Holds(rt, st)
		require.NoError(rt, st.Close())
	})
}

// work is a fixed history that rotates logs and memtables: 24 batches on three
// streams, with groups, marks, children and blobs, every third one lazy.
func work(h *history, st store.Store) error {
	for i := range 24 {
		name := fmt.Sprint("s", i%3)
		data := make([]byte, 3000)
		random := rand.NewChaCha8([32]byte{byte(i)})
		_, _ = random.Read(data)
		a := store.Append{Stream: name, Expect: h.now().Seq(name), State: []byte(fmt.Sprint(i)), Marks: []string{fmt.Sprint("m", i)},
			Records: []store.Record{{Group: fmt.Sprint("b", i/6), Body: data}, {Body: []byte("x")}}}
		if a.Expect == 0 && i > 0 {
			a.Parent = "s0"
		}
		b := &store.Batch{Appends: []store.Append{a}}
		if i%4 == 0 {
			b.Blobs = []store.Blob{{Hash: sha256.Sum256(data), Data: data}}
		}
		f := store.Now
		if i%3 == 1 {
			f = store.Lazy
		}
		if err := h.apply(st, b, f); err != nil {
			return err
		}
		if i%3 != 1 {
			if err := h.wait(len(h.commits)); err != nil {
				return err
			}
		}
	}
	return h.wait(len(h.commits))
}
