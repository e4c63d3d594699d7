package sockstore

import (
	"context"
	"sync"
)

// watch is a channel that one goroutine feeds and another may end.
type watch struct {
	mu    sync.Mutex
	ended bool
	ch    chan struct{}
	over  chan struct{} // closed with ch
}

func (w *watch) token() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.ch)
		close(w.over)
	}
}

// Watch implements [store.Store]. It answers once the holder watches; a watch
// that cannot begin answers a closed channel.
func (s *client) Watch(ctx context.Context, stream string) <-chan struct{} {
	w := &watch{ch: make(chan struct{}, 1), over: make(chan struct{})}
	if err := s.usable(ctx); err != nil {
		w.end()
		return w.ch
	}
	begun := make(chan frame, 1)
	call := s.c.begin(func(f frame) {
		switch f.kind {
		case kAnswer:
			begun <- f
		case kToken:
			w.token()
		default: // an end or a fault
			w.end()
		}
	})
	err := s.c.send(ctx, frame{call, kWatch, putText(newBody(), stream)})
	if err != nil {
		w.end()
	}
	select {
	case <-begun:
	case <-ctx.Done():
	case <-s.c.gone:
	case <-w.over:
	}
	s.c.running.Go(func() { s.follow(ctx, call, w) })
	return w.ch
}

// follow ends a watch on this side, whether or not the other answers.
func (s *client) follow(ctx context.Context, call uint64, w *watch) {
	select {
	case <-ctx.Done():
		s.c.cancel(call)
	case <-s.c.gone:
	case <-w.over:
	}
	s.c.end(call)
	w.end()
}
