package pebblestore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/knl-run/knl/kernel/store"
)

// lazyDelay is how long a lazy batch waits for somebody else's sync.
const lazyDelay = 2 * time.Millisecond

// flusher hands batches to the database and knows which sync covers which. The
// Store's mutex guards it.
type flusher struct {
	db    *pebble.DB
	mu    *sync.Mutex  // the Store's
	fault func() error // the Store's
	air   []*flight    // syncs that nobody has seen land, oldest first
	last  *flight      // the latest sync; every batch before it is covered
	lazy  *lazies      // the batches behind it; nil when there are none
	delay time.Duration
}

// flight is one sync on its way to the disk. It is the Commit of the Now batch
// that started it. Who waits first waits at the disk itself: another goroutine
// between the two would cost a beat two more switches.
type flight struct {
	by     *flusher
	once   sync.Once
	batch  *pebble.Batch // until it landed
	landed chan struct{}
	err    error // set before landed closes
}

// Wait implements [store.Commit].
func (f *flight) Wait(ctx context.Context) error {
	if ctx.Done() == nil {
		f.land()
		return f.err
	}
	select {
	case <-f.landed:
		return f.err
	default:
	}
	go f.land()
	select {
	case <-f.landed:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// land waits for the sync and gives the batch back. The disk keeps its faults
// from Pebble, so they are asked for here: a fault is noted before the sync it
// belongs to is reported done.
func (f *flight) land() {
	f.once.Do(func() {
		f.err = f.batch.SyncWait()
		if fault := f.by.fault(); fault != nil {
			f.err = fault
		}
		_ = f.batch.Close()
		f.batch = nil
		close(f.landed)
	})
}

// lazies are the lazy batches that one future sync will cover. It is the Commit
// of each of them.
type lazies struct {
	by    *flusher
	sync  *flight // nil until it starts; guarded by the Store's mutex
	timer *time.Timer
}

// Wait implements [store.Commit]. It starts the sync when nobody has.
func (l *lazies) Wait(ctx context.Context) error { return l.start().Wait(ctx) }

func (l *lazies) start() *flight {
	l.by.mu.Lock()
	defer l.by.mu.Unlock()
	if l.sync == nil {
		l.by.barrier()
	}
	return l.sync
}

// write makes w visible, takes it over, and starts its sync when f asks for it.
func (fl *flusher) write(w *pebble.Batch, f store.Flush) (store.Commit, error) {
	if w.Empty() {
		_ = w.Close()
		return fl.covered(f), nil
	}
	if f == store.Now {
		return fl.launch(w)
	}
	if err := fl.db.Apply(w, pebble.NoSync); err != nil {
		return nil, err
	}
	if fl.lazy == nil {
		l := &lazies{by: fl}
		l.timer = time.AfterFunc(fl.delay, func() { l.start() })
		fl.lazy = l
	}
	return fl.lazy, w.Close()
}

// covered answers the Commit that stands for everything written so far.
func (fl *flusher) covered(f store.Flush) store.Commit {
	switch {
	case fl.lazy == nil && fl.last == nil:
		return store.Durable(nil)
	case fl.lazy == nil:
		return fl.last
	case f == store.Now:
		fl.barrier()
		return fl.last
	}
	return fl.lazy
}

// barrier syncs what was written without a sync of its own.
func (fl *flusher) barrier() {
	w := fl.db.NewBatch()
	_ = w.LogData([]byte{tagFormat}, nil)
	if _, err := fl.launch(w); err != nil {
		f := &flight{landed: make(chan struct{}), err: err}
		f.once.Do(func() { close(f.landed) })
		fl.begin(f)
	}
}

// launch writes w and starts the sync that covers it and all before it.
func (fl *flusher) launch(w *pebble.Batch) (*flight, error) {
	if err := fl.db.ApplyNoSyncWait(w, pebble.Sync); err != nil {
		return nil, err
	}
	f := &flight{by: fl, batch: w, landed: make(chan struct{})}
	fl.begin(f)
	fl.air = append(fl.air, f)
	fl.sweep()
	return f, nil
}

// sweep forgets the syncs that have landed. Syncs land in order, so what was
// started before one that is down needs no more waiting: a commit that nobody
// waits for gives its batch back here.
func (fl *flusher) sweep() {
	for down := len(fl.air) - 1; down >= 0; down-- {
		select {
		case <-fl.air[down].landed:
			for _, f := range fl.air[:down] {
				f.land()
			}
			fl.air = slices.Delete(fl.air, 0, down+1)
			return
		default:
		}
	}
}

func (fl *flusher) begin(f *flight) {
	fl.last = f
	if fl.lazy != nil {
		fl.lazy.timer.Stop()
		fl.lazy.sync = f
		fl.lazy = nil
	}
}

// land starts the last sync and waits until all have ended.
func (fl *flusher) land() {
	if fl.lazy != nil {
		fl.barrier()
	}
	for _, f := range fl.air {
		f.land()
	}
	fl.air = nil
}
