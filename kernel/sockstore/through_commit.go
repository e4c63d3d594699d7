package sockstore

import (
	"context"

	"github.com/knl-run/knl/kernel/store"
)

// landed is the commit of a batch that was there when the store was opened. Its
// holder may be the one that seemed to be gone, so that it is there is not yet
// that it is on disk.
type landed struct{ st store.Store }

// Wait implements [store.Commit].
func (l landed) Wait(ctx context.Context) error {
	c, err := l.st.Apply(ctx, &store.Batch{}, store.Now)
	if err != nil {
		return err
	}
	return c.Wait(ctx)
}

// throughCommit is a batch on its way to the disk of another process.
type throughCommit struct {
	t  *Through
	st store.Store
	store.Commit
	marks map[string]mark
	turn  int64
}

// Wait implements [store.Commit]. When the holder is gone the batch is on disk
// if the store that was opened anew has it.
func (c *throughCommit) Wait(ctx context.Context) error {
	err := c.Commit.Wait(ctx)
	if isGone(err) {
		st, failed := c.t.after(ctx, c.st)
		if failed != nil {
			return failed
		}
		streams, failed := missing(st, c.marks)
		switch {
		case failed != nil:
			return failed
		case len(streams) > 0:
			return err
		}
		return landed{st}.Wait(ctx)
	}
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	if err == nil && c.turn == c.t.turns { // nothing was applied since
		clear(c.t.lazy)
	}
	return err
}
