package store

import (
	"context"
	"sync"
)

// Watchers wakes those who wait for a stream to move. Implementations of Store
// keep one; its zero value is ready.
type Watchers struct {
	mu     sync.Mutex
	byName map[string]map[chan struct{}]struct{}
	closed bool
	done   sync.WaitGroup
	quit   chan struct{}
}

// Watch answers a channel as [Store].Watch describes it.
func (w *Watchers) Watch(ctx context.Context, stream string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	if w.quit == nil {
		w.quit = make(chan struct{})
		w.byName = make(map[string]map[chan struct{}]struct{})
	}
	if w.byName[stream] == nil {
		w.byName[stream] = make(map[chan struct{}]struct{})
	}
	w.byName[stream][ch] = struct{}{}
	w.done.Go(func() { w.await(ctx, stream, ch) })
	return ch
}

// await ends a watch when its context or the store does.
func (w *Watchers) await(ctx context.Context, stream string, ch chan struct{}) {
	select {
	case <-ctx.Done():
	case <-w.quit:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byName[stream], ch)
	if len(w.byName[stream]) == 0 {
		delete(w.byName, stream)
	}
	close(ch)
}

// Moved wakes the watchers of the streams that b wrote to. It never blocks: a
// watcher that has not taken its last token gets no second one.
func (w *Watchers) Moved(b *Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byName) == 0 {
		return
	}
	for i := range b.Appends {
		if len(b.Appends[i].Records) == 0 {
			continue
		}
		for ch := range w.byName[b.Appends[i].Stream] {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

// Close ends every watch, and those to come at once.
func (w *Watchers) Close() {
	w.mu.Lock()
	if !w.closed && w.quit != nil {
		close(w.quit)
	}
	w.closed = true
	w.mu.Unlock()
	w.done.Wait()
}
