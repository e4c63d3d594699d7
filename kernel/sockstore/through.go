package sockstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel/store"
)

// Through is a store that another process holds. When that process is gone the
// next call opens the store anew, which may make this process its holder.
//
// What is on disk then is a beginning of what was applied. A batch whose Wait had
// not answered is looked for by its bytes, for others write too: it is there, or
// its caller hears that it is not. A stream of which a lazy batch is missing stays
// gone: its writers have built on it.
type Through struct {
	open func(ctx context.Context) (st store.Store, held bool, err error)

	mu    sync.Mutex
	st    store.Store
	gone  <-chan struct{} // closed when st has lost its holder; nil: st is held here
	stop  context.CancelFunc
	lazy  map[string]mark  // by stream, the last lazy record that is not known to be on disk
	lost  map[string]error // streams that cannot be gone on with
	turns int64            // how many batches were applied
	tried time.Time        // when opening anew failed last
	err   error            // and why
}

// mark is a record as it was applied.
type mark struct {
	seq int64
	sum [sha256.Size]byte
}

func markOf(r store.Record, seq int64) mark {
	h := sha256.New()
	h.Write([]byte(r.Group))
	h.Write([]byte{0})
	h.Write(r.Body)
	return mark{seq, [sha256.Size]byte(h.Sum(nil))}
}

// isIn says whether st has the record.
func (m mark) isIn(st store.Store, stream string) (bool, error) {
	for r, err := range st.Records(context.Background(), stream, m.seq, m.seq) {
		return err == nil && markOf(r, r.Seq) == m, err
	}
	return false, nil
}

// marksOf answers the last record of each stream that b appends to.
func marksOf(b *store.Batch) map[string]mark {
	marks := map[string]mark{}
	for i := range b.Appends {
		if a := &b.Appends[i]; len(a.Records) > 0 {
			n := len(a.Records)
			marks[a.Stream] = markOf(a.Records[n-1], a.Expect+int64(n))
		}
	}
	return marks
}

// missing answers the streams whose record is not in st.
func missing(st store.Store, marks map[string]mark) (streams []string, err error) {
	for stream, m := range marks {
		there, err := m.isIn(st, stream)
		if err != nil {
			return nil, err
		}
		if !there {
			streams = append(streams, stream)
		}
	}
	return streams, nil
}

func through(st store.Store, open func(context.Context) (store.Store, bool, error)) *Through {
	t := &Through{open: open, lazy: map[string]mark{}, lost: map[string]error{}}
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

// Ended answers why some of the store cannot be gone on with, nil while all of it
// can. Whoever begins on it should open it anew; what was begun goes on here.
func (t *Through) Ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, err := range t.lost {
		return err
	}
	return nil
}

// current answers the store to ask of a stream, opened anew where that must be.
func (t *Through) current(ctx context.Context, streams ...string) (store.Store, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.gone:
		if err := t.again(ctx); err != nil {
			return nil, err
		}
	default:
	}
	return t.st, t.without(streams)
}

// after answers the store to ask when st has lost its holder.
func (t *Through) after(ctx context.Context, st store.Store, streams ...string) (store.Store, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.st == st {
		if err := t.again(ctx); err != nil {
			return nil, err
		}
	}
	return t.st, t.without(streams)
}

func (t *Through) without(streams []string) error {
	for _, stream := range streams {
		if err := t.lost[stream]; err != nil {
			return err
		}
	}
	return nil
}

// again opens the store anew and looks for what nobody waits for. Where that has
// just failed it is tried again by a run that goes on and by no other: its many
// last calls wait no longer than one.
func (t *Through) again(ctx context.Context) error {
	run := store.RunOf(ctx)
	if ends := run == nil || run.Err() != nil; ends && t.err != nil && time.Since(t.tried) < hurry {
		return t.err
	}
	st, held, err := t.open(context.WithoutCancel(ctx))
	t.tried, t.err = time.Now(), err
	if err != nil {
		return err
	}
	streams, err := missing(st, t.lazy)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	for _, stream := range streams {
		_, t.lost[stream] = t.st.Head(context.Background(), stream) // says who is gone
	}
	t.stop()
	_ = t.st.Close() // it is gone
	if held {        // what is there was read from the disk
		clear(t.lazy)
	}
	for _, stream := range streams {
		delete(t.lazy, stream)
	}
	t.use(st, held)
	return nil
}

// Close implements [store.Store]. What a stream has lost it says, too: its last
// writer may not have asked since.
func (t *Through) Close() error {
	st, err := t.current(context.Background()) // of one that has lost its holder it is seen that all is there
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	if err != nil {
		return err
	}
	for _, lost := range t.lost {
		err = lost
	}
	return errors.Join(err, st.Close())
}

func isGone(err error) bool {
	var gone *Gone
	return errors.As(err, &gone)
}

// reading asks for what may be asked twice.
func reading[T any](ctx context.Context, t *Through, ask func(store.Store) (T, error), streams ...string) (answer T, err error) {
	st, err := t.current(ctx, streams...)
	if err != nil {
		return answer, err
	}
	if answer, err = ask(st); !isGone(err) {
		return answer, err
	}
	if st, err = t.after(ctx, st, streams...); err != nil {
		return answer, err
	}
	return ask(st)
}

// Apply implements [store.Store]. A batch that was on its way when the holder
// went is sent again, unless it is there.
func (t *Through) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	marks := marksOf(b)
	streams := make([]string, 0, len(marks))
	for stream := range marks {
		streams = append(streams, stream)
	}
	st, err := t.current(ctx, streams...)
	if err != nil {
		return nil, err
	}
	commit, err := st.Apply(ctx, b, f)
	if isGone(err) && len(marks) > 0 {
		if st, err = t.after(ctx, st, streams...); err != nil {
			return nil, err
		}
		if commit, err = st.Apply(ctx, b, f); errors.Is(err, store.ErrConflict) {
			commit, err = landed{st}, conflict(st, b, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return t.applied(marks, f, st, commit), nil
}

// conflict answers err, or nil when it is b itself that stands in b's way.
func conflict(st store.Store, b *store.Batch, err error) error {
	for i := range b.Appends {
		a := &b.Appends[i]
		at, n := a.Expect+1, int64(len(a.Records))
		if n == 0 {
			continue
		}
		same := int64(0)
		for r, failed := range st.Records(context.Background(), a.Stream, at, at+n-1) {
			if failed != nil {
				return failed
			}
			if own := a.Records[r.Seq-at]; own.Group != r.Group || !bytes.Equal(own.Body, r.Body) {
				return err
			}
			same++
		}
		if same < n {
			return err
		}
	}
	return nil
}

func (t *Through) applied(marks map[string]mark, f store.Flush, st store.Store, c store.Commit) store.Commit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.st == st {
		t.turns++
		if f == store.Lazy {
			maps.Copy(t.lazy, marks)
		}
	}
	return &throughCommit{t, st, c, marks, t.turns}
}

// Head implements [store.Store].
func (t *Through) Head(ctx context.Context, stream string) (store.Head, error) {
	return reading(ctx, t, func(st store.Store) (store.Head, error) { return st.Head(ctx, stream) }, stream)
}

// Records implements [store.Store].
func (t *Through) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		st, err := t.current(ctx, stream)
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
			st, err = t.after(ctx, st, stream)
		}
		yield(store.Record{}, err)
	}
}

// Groups implements [store.Store].
func (t *Through) Groups(ctx context.Context, stream string, n int) ([]store.Group, error) {
	return reading(ctx, t, func(st store.Store) ([]store.Group, error) { return st.Groups(ctx, stream, n) }, stream)
}

// FindGroup implements [store.Store].
func (t *Through) FindGroup(ctx context.Context, stream, group string) (int64, error) {
	return reading(ctx, t, func(st store.Store) (int64, error) { return st.FindGroup(ctx, stream, group) }, stream)
}

// Marked implements [store.Store].
func (t *Through) Marked(ctx context.Context, stream, name string) (bool, error) {
	return reading(ctx, t, func(st store.Store) (bool, error) { return st.Marked(ctx, stream, name) }, stream)
}

// Blob implements [store.Store].
func (t *Through) Blob(ctx context.Context, hash [32]byte) ([]byte, error) {
	return reading(ctx, t, func(st store.Store) ([]byte, error) { return st.Blob(ctx, hash) })
}

// Streams implements [store.Store].
func (t *Through) Streams(ctx context.Context, after string, limit int) ([]store.StreamInfo, error) {
	return reading(ctx, t, func(st store.Store) ([]store.StreamInfo, error) { return st.Streams(ctx, after, limit) })
}

// Children implements [store.Store].
func (t *Through) Children(ctx context.Context, parent string) ([]string, error) {
	return reading(ctx, t, func(st store.Store) ([]string, error) { return st.Children(ctx, parent) })
}

// Watch implements [store.Store].
func (t *Through) Watch(ctx context.Context, stream string) <-chan struct{} {
	st, err := t.current(ctx, stream)
	if err != nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return st.Watch(ctx, stream)
}
