package sockstore

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/knl-run/knl/kernel/store"
)

// Through is a store that another process holds. When that process is gone the
// next call opens the store anew, which may make this process its holder. What
// was applied through the connection before is looked for first: a store that
// has lost some of it stays gone.
type Through struct {
	open func() (st store.Store, held bool, err error)

	mu    sync.Mutex
	st    store.Store
	gone  <-chan struct{} // closed when st has lost its holder; nil: st is held here
	stop  context.CancelFunc
	seen  map[string]int64 // by stream, the last record applied that is not known to be on disk
	turns int64            // how many batches were applied
	ended error            // why the store cannot be gone on with
}

func through(st store.Store, open func() (store.Store, bool, error)) *Through {
	t := &Through{open: open, seen: map[string]int64{}}
	t.use(st, false)
	return t
}

// use goes on with st.
func (t *Through) use(st store.Store, held bool) {
	t.st, t.gone, t.stop = st, nil, func() {}
	if held {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	tokens, gone := st.Watch(ctx, ".holder"), make(chan struct{}) // no session is named so
	t.gone, t.stop = gone, stop
	go func() {
		defer close(gone)
		for range tokens {
		}
	}()
}

// Ended answers why the store cannot be gone on with, nil while it can: it has to
// be opened by whoever still wants it.
func (t *Through) Ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// current answers the store to ask, opened anew where that must be.
func (t *Through) current() (store.Store, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.gone:
		err := t.again()
		return t.st, err
	default:
		return t.st, t.ended
	}
}

// after answers the store to ask when st has lost its holder.
func (t *Through) after(st store.Store) (store.Store, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.st != st {
		return t.st, t.ended
	}
	err := t.again()
	return t.st, err
}

// again opens the store anew and looks for what was applied.
func (t *Through) again() error {
	if t.ended != nil {
		return t.ended
	}
	st, held, err := t.open()
	if err != nil {
		return err
	}
	for stream, seq := range t.seen {
		head, err := st.Head(context.Background(), stream)
		if err != nil {
			return errors.Join(err, st.Close())
		}
		if head.Seq < seq {
			_, t.ended = t.st.Head(context.Background(), stream)
			return errors.Join(t.ended, st.Close())
		}
	}
	t.stop()
	_ = t.st.Close() // it is gone
	t.seen = map[string]int64{}
	t.use(st, held)
	return nil
}

// Close implements [store.Store].
func (t *Through) Close() error {
	st, err := t.current() // of one that has lost its holder it is seen that all is there
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	if err != nil {
		return err
	}
	return st.Close()
}

func isGone(err error) bool {
	var gone *Gone
	return errors.As(err, &gone)
}

// reading asks for what may be asked twice.
func reading[T any](t *Through, ask func(store.Store) (T, error)) (answer T, err error) {
	st, err := t.current()
	if err != nil {
		return answer, err
	}
	if answer, err = ask(st); !isGone(err) {
		return answer, err
	}
	if st, err = t.after(st); err != nil {
		return answer, err
	}
	return ask(st)
}

// Apply implements [store.Store]. A batch that was on its way when the holder
// went may be applied or not: it is sent again, and a conflict then says nothing.
func (t *Through) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	st, err := t.current()
	if err != nil {
		return nil, err
	}
	commit, err := st.Apply(ctx, b, f)
	if isGone(err) && writes(b) {
		if next, failed := t.after(st); failed == nil {
			again, failed := next.Apply(ctx, b, f)
			if !errors.Is(failed, store.ErrConflict) {
				st, commit, err = next, again, failed
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return t.applied(b, st, commit), nil
}

// writes says whether a batch cannot be applied twice.
func writes(b *store.Batch) bool {
	for i := range b.Appends {
		if len(b.Appends[i].Records) > 0 {
			return true
		}
	}
	return false
}

func (t *Through) applied(b *store.Batch, st store.Store, c store.Commit) store.Commit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.st == st {
		t.turns++
		for i := range b.Appends {
			a := &b.Appends[i]
			t.seen[a.Stream] = max(t.seen[a.Stream], a.Expect+int64(len(a.Records)))
		}
	}
	return &throughCommit{t, st, c, t.turns}
}

// throughCommit is a batch on its way to the disk of another process.
type throughCommit struct {
	t  *Through
	st store.Store
	store.Commit
	turn int64
}

// Wait implements [store.Commit]. When the holder is gone the batch is on disk
// if the store that was opened anew has it.
func (c *throughCommit) Wait(ctx context.Context) error {
	err := c.Commit.Wait(ctx)
	if isGone(err) {
		_, err = c.t.after(c.st)
		return err
	}
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	if err == nil && c.turn == c.t.turns { // nothing was applied since
		clear(c.t.seen)
	}
	return err
}

// Head implements [store.Store].
func (t *Through) Head(ctx context.Context, stream string) (store.Head, error) {
	return reading(t, func(st store.Store) (store.Head, error) { return st.Head(ctx, stream) })
}

// Records implements [store.Store].
func (t *Through) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		st, err := t.current()
		for again := true; err == nil; again = false {
			for r, failed := range st.Records(ctx, stream, from, to) {
				if again && isGone(failed) {
					err = failed
					break
				}
				if !yield(r, failed) {
					return
				}
				from = r.Seq + 1
			}
			if err == nil {
				return
			}
			st, err = t.after(st)
		}
		yield(store.Record{}, err)
	}
}

// Groups implements [store.Store].
func (t *Through) Groups(ctx context.Context, stream string, n int) ([]store.Group, error) {
	return reading(t, func(st store.Store) ([]store.Group, error) { return st.Groups(ctx, stream, n) })
}

// FindGroup implements [store.Store].
func (t *Through) FindGroup(ctx context.Context, stream, group string) (int64, error) {
	return reading(t, func(st store.Store) (int64, error) { return st.FindGroup(ctx, stream, group) })
}

// Marked implements [store.Store].
func (t *Through) Marked(ctx context.Context, stream, name string) (bool, error) {
	return reading(t, func(st store.Store) (bool, error) { return st.Marked(ctx, stream, name) })
}

// Blob implements [store.Store].
func (t *Through) Blob(ctx context.Context, hash [32]byte) ([]byte, error) {
	return reading(t, func(st store.Store) ([]byte, error) { return st.Blob(ctx, hash) })
}

// Streams implements [store.Store].
func (t *Through) Streams(ctx context.Context, after string, limit int) ([]store.StreamInfo, error) {
	return reading(t, func(st store.Store) ([]store.StreamInfo, error) { return st.Streams(ctx, after, limit) })
}

// Children implements [store.Store].
func (t *Through) Children(ctx context.Context, parent string) ([]string, error) {
	return reading(t, func(st store.Store) ([]string, error) { return st.Children(ctx, parent) })
}

// Watch implements [store.Store].
func (t *Through) Watch(ctx context.Context, stream string) <-chan struct{} {
	st, err := t.current()
	if err != nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return st.Watch(ctx, stream)
}
