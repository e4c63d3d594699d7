package pebblestore

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

// counting opens a store that counts the syncs of its log.
func counting(t *testing.T, delay time.Duration) (*Store, *atomic.Int64) {
	noLeaks(t)
	syncs := new(atomic.Int64)
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			syncs.Add(1)
		}
		return nil
	}))
	st, err := Open("db", Options{FS: fs})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	st.flush.delay = delay
	syncs.Store(0)
	return st, syncs
}

func put(t *testing.T, st *Store, f store.Flush) store.Commit {
	t.Helper()
	h, err := st.Head(bg, "s")
	require.NoError(t, err)
	c, err := st.Apply(bg, &store.Batch{Appends: []store.Append{
		{Stream: "s", Expect: h.Seq, Records: []store.Record{{Body: []byte("x")}}},
	}}, f)
	require.NoError(t, err)
	return c
}

func TestANowBehindLaziesCostsOneSync(t *testing.T) {
	st, syncs := counting(t, time.Hour)
	first, second := put(t, st, store.Lazy), put(t, st, store.Lazy)
	last := put(t, st, store.Now)
	for _, c := range []store.Commit{last, first, second, last} {
		require.NoError(t, c.Wait(bg))
	}
	require.Equal(t, int64(1), syncs.Load())
}

func TestWaitingForALazyStartsItsSync(t *testing.T) {
	st, syncs := counting(t, time.Hour)
	first, second := put(t, st, store.Lazy), put(t, st, store.Lazy)
	require.Zero(t, syncs.Load())
	require.NoError(t, first.Wait(bg))
	require.NoError(t, second.Wait(bg))
	require.Equal(t, int64(1), syncs.Load())
}

func TestANowIsSyncedWithoutAWait(t *testing.T) {
	st, syncs := counting(t, time.Hour)
	put(t, st, store.Now)
	require.Eventually(t, func() bool { return syncs.Load() == 1 }, time.Minute, time.Millisecond)
}

func TestALazyIsSyncedByTheTimer(t *testing.T) {
	st, syncs := counting(t, time.Millisecond)
	put(t, st, store.Lazy)
	require.Eventually(t, func() bool { return syncs.Load() == 1 }, time.Minute, time.Millisecond)
}

func TestACheckStandsForTheLatestSync(t *testing.T) {
	st, syncs := counting(t, time.Hour)
	require.NoError(t, put(t, st, store.Now).Wait(bg))
	for range 3 { // everything is durable: nothing to do
		c, err := st.Apply(bg, &store.Batch{}, store.Now)
		require.NoError(t, err)
		require.NoError(t, c.Wait(bg))
	}
	require.Equal(t, int64(1), syncs.Load())
	put(t, st, store.Lazy)
	c, err := st.Apply(bg, &store.Batch{Appends: []store.Append{{Stream: "s", Expect: 2}}}, store.Now)
	require.NoError(t, err)
	require.NoError(t, c.Wait(bg))
	require.Equal(t, int64(2), syncs.Load())
}
