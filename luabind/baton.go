package luabind

import (
	"context"
	"sync"
)

// baton is the right to run Lua in one VM. It is handed over in the order in
// which it was asked for, so that no task starves.
type baton struct {
	mu    sync.Mutex
	held  bool
	queue []chan struct{}
}

// take waits for the baton.
func (b *baton) take() {
	if turn := b.ask(); turn != nil {
		<-turn
	}
}

// takeWithin waits for the baton at most until ctx is done.
func (b *baton) takeWithin(ctx context.Context) error {
	turn := b.ask()
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !b.leave(turn) {
		b.pass() // it was ours already
	}
	return ctx.Err()
}

// ask answers nil when the caller holds the baton now, else the channel that
// says when.
func (b *baton) ask() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.held {
		b.held = true
		return nil
	}
	turn := make(chan struct{}, 1)
	b.queue = append(b.queue, turn)
	return turn
}

// leave takes turn out of the queue and says whether it still stood there.
func (b *baton) leave(turn chan struct{}) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, waiting := range b.queue {
		if waiting == turn {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			return true
		}
	}
	return false
}

// pass hands the baton to who asked first.
func (b *baton) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.held {
		panic("BUG: luabind: the baton is passed by one who does not hold it")
	}
	if len(b.queue) == 0 {
		b.held = false
		return
	}
	b.queue[0] <- struct{}{}
	b.queue = b.queue[1:]
}
