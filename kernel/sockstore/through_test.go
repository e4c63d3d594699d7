package sockstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/store"
)

// pair answers a store that is held in a folder, and the same one through its
// holder.
func pair(t *testing.T) (dir string, holds store.Store, through *Through) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	holds, held, err := Open(context.Background(), dir, pebblestore.Options{})
	require.NoError(t, err)
	require.True(t, held)
	st, held, err := Open(context.Background(), dir, pebblestore.Options{})
	require.NoError(t, err)
	require.False(t, held)
	return dir, holds, st.(*Through)
}

func record(stream string, expect int64) *store.Batch {
	r := store.Record{Body: []byte(fmt.Sprint(expect + 1))}
	return &store.Batch{Appends: []store.Append{{Stream: stream, Expect: expect, Records: []store.Record{r}, State: []byte("s")}}}
}

// Who works through a holder goes on when it is gone, on the same open store, as
// the holder, with all that was applied.
func TestAStoreOutlivesItsHolder(t *testing.T) {
	ctx := context.Background()
	dir, holds, st := pair(t)
	now, err := st.Apply(ctx, record("a", 0), store.Now)
	require.NoError(t, err)
	require.NoError(t, now.Wait(ctx))
	lazy, err := st.Apply(ctx, record("b", 0), store.Lazy)
	require.NoError(t, err)
	require.NoError(t, holds.Close())

	require.NoError(t, lazy.Wait(ctx), "the holder brought it to disk as it went")
	_, err = st.Apply(ctx, record("a", 1), store.Now)
	require.NoError(t, err)
	_, err = st.Apply(ctx, record("a", 1), store.Now)
	require.ErrorIs(t, err, store.ErrConflict)
	for stream, want := range map[string]int64{"a": 2, "b": 1} {
		head, err := st.Head(ctx, stream)
		require.NoError(t, err)
		require.Equal(t, want, head.Seq)
	}
	n := 0
	for _, err := range st.Records(ctx, "a", 1, 0) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
	other, held, err := Open(ctx, dir, pebblestore.Options{})
	require.NoError(t, err)
	require.False(t, held, "it is held by who went on")
	require.NoError(t, errors.Join(other.Close(), st.Close()))
}

// Nobody goes on with a stream that has less than was applied through its holder.
// What others do goes on, and the store can be opened anew.
func TestAStoreThatLostWhatWasApplied(t *testing.T) {
	ctx := context.Background()
	dir, holds, st := pair(t)
	lazy, err := st.Apply(ctx, record("a", 0), store.Lazy)
	require.NoError(t, err)
	st.lazy["a"] = mark{seq: 2} // as if there had been another
	require.NoError(t, holds.Close())

	require.NoError(t, lazy.Wait(ctx), "this one is there")
	var gone *Gone
	require.ErrorAs(t, st.Ended(), &gone)
	_, err = st.Apply(ctx, record("a", 1), store.Now)
	require.ErrorAs(t, err, &gone)
	_, err = st.Head(ctx, "a")
	require.ErrorAs(t, err, &gone)
	_, err = st.Apply(ctx, record("b", 0), store.Now)
	require.NoError(t, err)
	require.ErrorAs(t, st.Close(), &gone, "what was lost is said at the end, too")
	again, held, err := Open(ctx, dir, pebblestore.Options{})
	require.NoError(t, err)
	require.True(t, held)
	_, err = again.Apply(ctx, record("a", 1), store.Now)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// A holder that closes answers what it has read: of many who write on and on none
// has an error, and nothing is lost or written twice.
func TestAHolderThatClosesAnswersWhatItHasRead(t *testing.T) {
	ctx := context.Background()
	dir, holds, first := pair(t)
	writers := []*Through{first}
	for range 3 {
		st, _, err := Open(ctx, dir, pebblestore.Options{})
		require.NoError(t, err)
		writers = append(writers, st.(*Through))
	}
	const each = 300
	var wg sync.WaitGroup
	half := make(chan struct{}, len(writers))
	failed := make([]error, len(writers))
	for i, st := range writers {
		wg.Go(func() {
			for seq := range int64(each) {
				c, err := st.Apply(ctx, record(fmt.Sprint("s", i), seq), store.Flush(seq%2))
				if err == nil && seq%3 == 0 {
					err = c.Wait(ctx)
				}
				if err != nil {
					failed[i] = fmt.Errorf("record %d: %w", seq, err)
				}
				if seq == each/2 || err != nil && seq < each/2 {
					half <- struct{}{}
				}
				if err != nil {
					return
				}
			}
		})
	}
	<-half
	require.NoError(t, holds.Close())
	wg.Wait()
	require.NoError(t, errors.Join(failed...))
	for i, st := range writers {
		head, err := st.Head(ctx, fmt.Sprint("s", i))
		require.NoError(t, err)
		require.EqualValues(t, each, head.Seq)
	}
	for _, st := range writers {
		require.NoError(t, st.Close())
	}
}

func stopProcess(t *testing.T, c *exec.Cmd) {
	t.Helper()
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool { // the signal is on its way, the process may still answer
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		return err != nil || strings.Contains(string(stat), ") T ")
	}, 20*time.Second, time.Millisecond)
}

// A holder that was stopped is given up: nobody waits for it without end. When it
// goes on, so does who worked through it, and what it had taken is there once.
func TestAStoppedHolderIsGivenUp(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 300 * time.Millisecond
	dir := filepath.Join(t.TempDir(), "db")
	holder := startHolder(t, dir)
	st, held, err := Open(bg, dir, pebblestore.Options{})
	require.NoError(t, err)
	require.False(t, held)
	put(t, st, batch("s", 0, "a"))
	stopProcess(t, holder)
	began := time.Now()
	_, err = st.Apply(bg, batch("s", 1, "b"), store.Now)
	var busy *pebblestore.Held
	require.ErrorAs(t, err, &busy)
	require.Less(t, time.Since(began), 20*time.Second)
	require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool {
		c, err := st.Apply(bg, batch("s", 1, "b"), store.Now)
		return err == nil && c.Wait(bg) == nil || errors.Is(err, store.ErrConflict)
	}, 20*time.Second, 10*time.Millisecond)
	n := 0
	for _, err := range st.Records(bg, "s", 1, 0) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
	require.NoError(t, st.Close())
}

// A run that has ended waits for a stopped holder a few seconds in all, whatever
// it still has to write, and nothing that was acknowledged is lost.
func TestAStoppedHolderDoesNotKeepAnEndedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	holder := startHolder(t, dir)
	st, held, err := Open(bg, dir, pebblestore.Options{})
	require.NoError(t, err)
	require.False(t, held)
	put(t, st, batch("s", 0, "a"))
	run, end := context.WithCancel(bg)
	ctx := context.WithoutCancel(store.Within(run, run))
	stopProcess(t, holder)
	time.AfterFunc(100*time.Millisecond, end)
	began := time.Now()
	for range 3 {
		_, err = st.Apply(ctx, batch("s", 1, "b"), store.Now)
		var busy *pebblestore.Held
		require.ErrorAs(t, err, &busy)
	}
	require.Error(t, st.Close())
	require.Less(t, time.Since(began), 6*time.Second)
	require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
	st, _, err = Open(bg, dir, pebblestore.Options{})
	require.NoError(t, err)
	for r, err := range st.Records(bg, "s", 1, 1) {
		require.NoError(t, err)
		require.Equal(t, "a", string(r.Body))
	}
	require.NoError(t, st.Close())
}

// An ended run writes on through a holder that answers.
func TestAnEndedRunWritesOn(t *testing.T) {
	_, holds, st := pair(t)
	defer func(d time.Duration) { hurry = d }(hurry)
	hurry = 50 * time.Millisecond
	run, end := context.WithCancel(bg)
	ctx := context.WithoutCancel(store.Within(run, run))
	end()
	for i := range int64(5) {
		c, err := st.Apply(ctx, record("a", i), store.Now)
		require.NoError(t, err)
		require.NoError(t, c.Wait(ctx))
		time.Sleep(hurry) // what an answered call has begun ends nothing
	}
	require.NoError(t, errors.Join(st.Close(), holds.Close()))
}

// killed is a holder that applies, and is killed before the record is on disk.
type killed struct {
	store.Store
	applies error // nil: it answers before it goes
}

func (k killed) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	_, err := k.Store.Apply(ctx, b, f)
	return killed{}, errors.Join(err, k.applies)
}

func (killed) Wait(context.Context) error { return &Gone{} }

// succeeded answers a store through a holder that is killed, and what is on disk.
func succeeded(t *testing.T, applies error) (st *Through, disk store.Store) {
	t.Helper()
	disk = store.NewMem()
	st = through(killed{store.NewMem(), applies}, func(context.Context) (store.Store, bool, error) { return disk, true, nil })
	t.Cleanup(func() { _ = st.Close() })
	return st, disk
}

func body(b *store.Batch, text string) *store.Batch {
	b.Appends[0].Records[0].Body = []byte(text)
	return b
}

// A record of somebody else in the place of ours is no proof that ours is on disk,
// and a stream that others write too is gone on with.
func TestARecordOfAnotherIsNotOurs(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		disk string
		want error
	}{
		"nothing there": {"", &Gone{}}, "theirs": {"theirs", &Gone{}}, "ours": {"ours", nil},
	} {
		t.Run("waited for/"+name, func(t *testing.T) {
			st, disk := succeeded(t, nil)
			if c.disk != "" {
				put(t, disk, body(record("s", 0), c.disk))
			}
			commit, err := st.Apply(ctx, body(record("s", 0), "ours"), store.Now)
			require.NoError(t, err)
			require.Equal(t, c.want, commit.Wait(ctx))
			require.NoError(t, st.Ended())
			_, err = st.Head(ctx, "s")
			require.NoError(t, err)
		})
		t.Run("on its way/"+name, func(t *testing.T) {
			st, disk := succeeded(t, &Gone{})
			if c.disk != "" {
				put(t, disk, body(record("s", 0), c.disk))
			}
			commit, err := st.Apply(ctx, body(record("s", 0), "ours"), store.Now)
			if c.disk == "theirs" {
				require.ErrorIs(t, err, store.ErrConflict)
				return
			}
			require.NoError(t, err)
			require.NoError(t, commit.Wait(ctx))
			for r, err := range disk.Records(ctx, "s", 1, 0) {
				require.NoError(t, err)
				require.Equal(t, []any{int64(1), "ours"}, []any{r.Seq, string(r.Body)})
			}
		})
	}
}
