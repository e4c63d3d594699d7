package kernel

import (
	"context"
	"errors"
)

// enter waits for the session's turn; after it, leave gives the turn back.
func (b *beat) enter(ctx context.Context, method string) (Outcome, bool) {
	s := b.s
	conf := func(why string) (Outcome, bool) {
		return failed(StageConf, &Detail{Message: method + ": " + why}), false
	}
	switch {
	case s == nil:
		return conf("got no session")
	case b.d == nil:
		return conf("got no device")
	case s.attached:
		return stateFailed(s.attachedFault(method)), false
	case b.d.LLM == nil && method == "beat":
		return conf("the device has no llm: give one to device or with")
	case inside(ctx, s.id):
		return conf("session " + s.id + " is in a beat already, and this runs inside it: open a child session")
	}
	ctx = context.WithValue(ctx, beatKey{}, &lineage{s.id, ctx.Value(beatKey{})})
	if b.o.Deadline.IsZero() {
		b.ctx, b.cancel = context.WithCancel(ctx)
	} else {
		b.ctx, b.cancel = context.WithDeadlineCause(ctx, b.o.Deadline, errDeadline)
	}
	select {
	case s.beating <- struct{}{}:
		return Outcome{}, true
	case <-b.ctx.Done():
		defer b.cancel()
		return b.stop(method), false
	}
}

func (b *beat) leave() {
	b.cancel()
	<-b.s.beating
}

var errDeadline = errors.New("the deadline of the beat passed")

type beatKey struct{}

// lineage is the chain of sessions whose beats a context runs inside.
type lineage struct {
	id    string
	outer any
}

func inside(ctx context.Context, id string) bool {
	for l, _ := ctx.Value(beatKey{}).(*lineage); l != nil; l, _ = l.outer.(*lineage) {
		if l.id == id {
			return true
		}
	}
	return false
}

// ready says whether the session can be driven now, and closes a beat of this
// driver that a failed write left open.
func (b *beat) ready(method string) error {
	if b.ctx.Err() != nil {
		return wrap(method, context.Cause(b.ctx))
	}
	st, err := b.s.usable(b.ctx, method)
	if err != nil || st.Open == "" {
		return err
	}
	_, err = b.s.drive(b.ctx, method, lazy, func(st *state) ([]*Event, error) {
		return b.s.k.interruption(b.ctx, b.s.id, st)
	})
	return err
}
