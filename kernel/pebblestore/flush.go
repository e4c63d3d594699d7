package pebblestore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/knl-run/knl/kernel/store"
)

// lazyDelay is how long a lazy batch waits, at least, for somebody else's sync;
// it waits at most twice as long.
const lazyDelay = 2 * time.Millisecond

// flusher hands batches to the database and knows which sync covers which. Its
// mutex is held for a look at what follows it, never for a write.
//
// A sync covers what was written before it was started. So launch takes the
// lazies that have been written off the flusher first and writes then: each of
// them stands before its batch in the log.
type flusher struct {
	db    *pebble.DB
	fault func() error // the Store's
	delay time.Duration

	mu    sync.Mutex
	air   []*flight   // syncs that nobody has seen land, oldest first
	last  *flight     // the latest sync; every batch before it is covered
	lazy  *lazies     // the batches behind it; nil when there are none
	due   *lazies     // what timer starts when it is still lazy then
	timer *time.Timer // runs while there are lazies, and once more
}

// flight is one sync on its way to the disk. It is the Commit of the Now batch
// that started it. Who waits first waits at the disk itself: another goroutine
// between the two would cost a beat two more switches.
type flight struct {
	by      *flusher
	written chan struct{} // closes when the batch is in the log, or err says why not
	once    sync.Once
	batch   *pebble.Batch // until it landed; nil when it could not be written
	landed  chan struct{}
	err     error // set before landed closes
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

// down says whether the sync has landed.
func (f *flight) down() bool {
	select {
	case <-f.landed:
		return true
	default:
		return false
	}
}

// land waits for the sync and gives the batch back. The disk keeps its faults
// from Pebble, so they are asked for here: a fault is noted before the sync it
// belongs to is reported done.
func (f *flight) land() {
	f.once.Do(func() {
		<-f.written
		if f.batch != nil {
			f.err = f.batch.SyncWait()
			if fault := f.by.fault(); fault != nil {
				f.err = fault
			}
			_ = f.batch.Close()
			f.batch = nil
		}
		close(f.landed)
	})
}

// lazies are the lazy batches that one future sync will cover. It is the Commit
// of each of them.
type lazies struct {
	by   *flusher
	sync *flight // nil until it starts; guarded by the flusher's mutex
}

// Wait implements [store.Commit]. It starts the sync when nobody has.
func (l *lazies) Wait(ctx context.Context) error { return l.start().Wait(ctx) }

func (l *lazies) start() *flight {
	fl := l.by
	fl.mu.Lock()
	f := l.sync
	if f != nil {
		fl.mu.Unlock()
		return f
	}
	f = fl.begin() // l is the flusher's: one that is taken off it has its sync
	fl.mu.Unlock()
	w := fl.db.NewBatch()
	_ = w.LogData([]byte{tagFormat}, nil)
	_ = f.put(w) // what it came to is in the flight
	return f
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
	_ = w.Close()
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.lazy == nil {
		fl.lazy = &lazies{by: fl}
		if fl.due == nil {
			fl.arm()
		}
	}
	return fl.lazy, nil
}

// arm has tick look at the lazies of this moment after the delay. Under mu.
//
// Nearly all lazies are taken along by a barrier within less: one timer for all
// of them is set some hundred times a second where one for each is set, and
// stopped, at every beat.
func (fl *flusher) arm() {
	fl.due = fl.lazy
	if fl.timer == nil {
		fl.timer = time.AfterFunc(fl.delay, fl.tick)
		return
	}
	fl.timer.Reset(fl.delay)
}

// tick starts the sync of lazies that have waited since the last tick.
func (fl *flusher) tick() {
	fl.mu.Lock()
	old := fl.due
	fl.due = nil
	late := old == fl.lazy
	if !late && fl.lazy != nil {
		fl.arm()
	}
	fl.mu.Unlock()
	if late {
		old.start().land()
	}
}

// covered answers the Commit that stands for everything written so far.
func (fl *flusher) covered(f store.Flush) store.Commit {
	fl.mu.Lock()
	lazy, last := fl.lazy, fl.last
	fl.mu.Unlock()
	switch {
	case lazy == nil && last == nil:
		return store.Durable(nil)
	case lazy == nil:
		return last
	case f == store.Now:
		return lazy.start()
	}
	return lazy
}

// launch writes w and starts the sync that covers it and all before it.
func (fl *flusher) launch(w *pebble.Batch) (*flight, error) {
	fl.mu.Lock()
	f := fl.begin()
	fl.mu.Unlock()
	return f, f.put(w)
}

// begin answers a new sync, of every lazy batch that was written. Under mu.
func (fl *flusher) begin() *flight {
	f := &flight{by: fl, written: make(chan struct{}), landed: make(chan struct{})}
	fl.last = f
	if fl.lazy != nil {
		fl.lazy.sync = f
		fl.lazy = nil
	}
	fl.air = append(slices.DeleteFunc(fl.air, (*flight).down), f)
	return f
}

// put writes the batch that the sync is of.
func (f *flight) put(w *pebble.Batch) error {
	err := f.by.db.ApplyNoSyncWait(w, pebble.Sync)
	if f.err = err; err == nil {
		f.batch = w
	}
	close(f.written)
	return err
}

// land starts the last sync and waits until all have ended.
func (fl *flusher) land() {
	fl.mu.Lock()
	lazy := fl.lazy
	fl.mu.Unlock()
	if lazy != nil {
		lazy.start()
	}
	fl.mu.Lock()
	air := fl.air
	fl.mu.Unlock()
	for _, f := range air { // begun by a timer, too
		f.land()
	}
}
