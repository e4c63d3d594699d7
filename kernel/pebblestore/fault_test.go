package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/kernel/store/storetest"
)

// failing is a file system whose n-th operation since it was armed answers err,
// or with onwards every operation from the n-th.
type failing struct {
	n       int64
	onwards bool
	kinds   func(errorfs.Op) bool
	err     error

	armed, hit atomic.Bool
	count      atomic.Int64
}

func (f *failing) over(below vfs.FS) vfs.FS {
	return errorfs.Wrap(below, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !f.armed.Load() || !f.kinds(op) {
			return nil
		}
		if i := f.count.Add(1) - 1; i == f.n || f.onwards && i > f.n {
			f.hit.Store(true)
			return fmt.Errorf("injected: %w", f.err)
		}
		return nil
	}))
}

func anyOp(errorfs.Op) bool { return true }

func writes(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose
}

// TestEveryFailingOperation fails the n-th operation of a fixed history, for
// every n, once and for good. Whatever happens, nothing hangs or ends the
// process, and what was acknowledged is there when the disk is well again.
func TestEveryFailingOperation(t *testing.T) {
	for _, c := range []struct {
		name    string
		onwards bool
		kinds   func(errorfs.Op) bool
	}{
		{"the n-th operation fails", false, anyOp},
		{"all from the n-th fail", true, anyOp},
		{"all writes from the n-th fail", true, writes},
	} {
		t.Run(c.name, func(t *testing.T) {
			step := int64(1)
			if testing.Short() { // for the race detector, which is slow
				step = 7
			}
			n, hit := int64(0), true
			for ; hit; n += step {
				hit = failAt(t, n, c.onwards, c.kinds)
			}
			require.Greater(t, n, int64(80), "the history has that many operations")
		})
	}
}

func failAt(t *testing.T, n int64, onwards bool, kinds func(errorfs.Op) bool) bool {
	mem := vfs.NewCrashableMem()
	f := &failing{n: n, onwards: onwards, kinds: kinds, err: syscall.EIO}
	f.armed.Store(true)
	h := newHistory(storetest.NewModel())
	before := goleak.IgnoreCurrent()
	if st, err := Open("db", Options{FS: f.over(mem), memTable: tinyTables}); err == nil {
		if err := work(h, st); err != nil {
			broken(t, st, h, err, !kinds(errorfs.Op{Kind: errorfs.OpFileRead}))
		}
		_ = st.Close()
		goleak.VerifyNone(t, before) // Pebble leaks where its own Open meets a fault
	}
	if n%2 == 0 { // the machine stopped too
		mem = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(n), 1))})
	}
	st := reopen(t, mem)
	grown := newHistory(h.recovered(t, st))
	require.NoError(t, work(grown, st), "the store is as good as new")
	require.NoError(t, st.Close())
	return f.hit.Load()
}

// broken checks a store that has met a fault: it acknowledges nothing more and
// answers the first fault, and while the disk reads, what was applied does too.
func broken(t *testing.T, st *Store, h *history, err error, reads bool) {
	require.NotErrorIs(t, err, store.ErrConflict)
	if st.Fault() == nil {
		return // the fault was one of reading, and the call answered it
	}
	_, again := st.Apply(bg, &store.Batch{}, store.Now)
	require.EqualError(t, again, st.Fault().Error())
	if reads {
		h.now().Holds(t, st)
	}
}

func TestAFullDiskEndsWritingAndNotReading(t *testing.T) {
	for _, n := range []int64{0, 7, 20, 40} { // log, flushes, manifest
		f := &failing{n: n, onwards: true, kinds: writes, err: syscall.ENOSPC}
		h := newHistory(storetest.NewModel())
		st, err := Open("db", Options{FS: f.over(vfs.NewMem()), memTable: tinyTables})
		require.NoError(t, err)
		f.armed.Store(true)
		err = work(h, st)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Regexp(t, `^store "db": (writing|syncing|creating) \S+: no space left on device; nothing acknowledged is lost: make room, then open it again$`, err.Error())
		h.now().Holds(t, st)
		_, err = st.Apply(bg, &store.Batch{}, store.Now)
		require.EqualError(t, err, st.Fault().Error())
		require.EqualError(t, st.Compact(bg), st.Fault().Error())
		require.EqualError(t, st.Close(), st.Fault().Error())
	}
}

func TestFaultsOfOpeningAreClear(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EROFS:  `store "db": .*read-only file system; use a folder that you may write`,
		syscall.EACCES: `store "db": .*permission denied; use a folder that you may write`,
		syscall.ENOSPC: `store "db": .*no space left on device; nothing acknowledged is lost: make room, then open it again`,
	} {
		for _, dir := range []string{"db", "new"} {
			mem := vfs.NewMem()
			require.NoError(t, mem.MkdirAll("db", 0o700))
			f := &failing{onwards: true, kinds: writes, err: errno}
			f.armed.Store(true)
			_, err := Open(dir, Options{FS: f.over(mem)})
			require.ErrorIs(t, err, errno)
			require.Regexp(t, strings.Replace(want, "db", dir, 1), err.Error())
			require.False(t, errors.Is(err, store.ErrCorrupt))
		}
	}
}

func TestCompactionsRunOnlyBetweenOpeningAndAFault(t *testing.T) {
	d := newDisk(vfs.NewMem(), "db")
	allowed := pebbleOptions(d, 0).CompactionConcurrencyRange
	usually, _ := allowed()
	require.Zero(t, usually)
	d.opened.Store(true)
	usually, _ = allowed()
	require.Equal(t, 1, usually)
	d.freeze(syscall.EIO)
	usually, atMost := allowed()
	require.Zero(t, usually)
	require.Equal(t, 1, atMost, "Pebble divides by it")
}
