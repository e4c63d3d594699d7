package kernel_test

import (
	"context"
	"sync"

	"github.com/knl-run/knl/kernel/store"
)

// tape is a store that remembers what it applied, so that a crash can be
// played: what was applied and not waited for may be lost, always from the end.
type tape struct {
	store.Store
	mu      sync.Mutex
	batches []store.Batch
	durable int // batches that a Wait has covered
	waits   int // waits that found something that was not durable yet
}

func newTape() *tape { return &tape{Store: store.NewMem()} }

func (p *tape) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.Store.Apply(ctx, b, f); err != nil {
		return nil, err
	}
	p.batches = append(p.batches, *b)
	return &taped{p, len(p.batches)}, nil
}

type taped struct {
	tape *tape
	n    int
}

func (c *taped) Wait(context.Context) error {
	c.tape.mu.Lock()
	defer c.tape.mu.Unlock()
	if c.tape.durable < c.n {
		c.tape.durable = c.n
		c.tape.waits++
	}
	return nil
}

// state answers how many batches are applied and how many of them are durable.
func (p *tape) state() (applied, durable, waits int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.batches), p.durable, p.waits
}

// crashed answers a tape that holds the first keep batches.
func (p *tape) crashed(keep int) *tape {
	out := newTape()
	for i := range p.batches[:keep] {
		if _, err := out.Apply(context.Background(), &p.batches[i], store.Now); err != nil {
			panic("BUG: a batch applies once more: " + err.Error())
		}
	}
	out.durable = keep
	return out
}
