package kernel

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
)

const maxDetail = 200 // characters of a close detail

// Close ends the session, and a beat that is still open with it. With reason ""
// it is "closed"; detail is cut to 200 characters. Closing twice on one handle
// is one close. A child opened with refund gives what is left of its budget back
// to its parent, or, when that has ended and was to give back itself, to the
// next one above.
func (s *Session) Close(ctx context.Context, reason, detail string) error {
	return s.close(ctx, ending{reason: reason, detail: detail})
}

// CloseAborted ends the session with reason "error" and detail "aborted", for a
// driver that was cut off and may not know it: the epoch rises in the same
// write, so that what it still writes is fenced.
func (s *Session) CloseAborted(ctx context.Context) error {
	return s.close(ctx, ending{reason: "error", detail: "aborted", fence: true})
}

// ending says how a session ends.
type ending struct {
	reason, detail string
	fence          bool // raise the driver epoch too
}

func (s *Session) close(ctx context.Context, c ending) error {
	const method = "close"
	if s.attached {
		return s.attachedFault(method)
	}
	if c.reason == "" {
		c.reason = "closed"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	err := again(ctx, method, func() error { return s.tryClose(ctx, c) })
	if err == nil {
		s.closed = true
	}
	return err
}

func (s *Session) tryClose(ctx context.Context, c ending) error {
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	if err := s.may("close", &s.st); err != nil {
		return err
	}
	fields := map[string]any{"reason": c.reason}
	if c.detail != "" {
		fields["detail"] = cut(c.detail)
	}
	open, err := s.openChildren(ctx)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		fields["open_children"] = open
	}
	p := &part{id: s.id, head: s.head, st: s.st}
	parts := []*part{p}
	if back, err := s.refund(ctx, fields); err != nil {
		return err
	} else if back != nil {
		parts = append(parts, back)
	}
	if p.events, err = s.k.interruption(ctx, s.id, &s.st); err != nil {
		return err
	}
	if c.fence {
		p.events = append(p.events, kernelEvent(DriverChanged, "", map[string]any{"epoch": s.epoch + 1}))
	}
	p.events = append(p.events, kernelEvent(SessionClosed, "", fields))
	if err := s.k.apply(ctx, barrier, parts...); err != nil {
		return err
	}
	s.took(p)
	return nil
}

// openChildren answers the children that have not ended, by opening time. None
// can open before the close is written, for that would move this session.
func (s *Session) openChildren(ctx context.Context) (ids []string, err error) {
	children, err := s.k.store.Children(ctx, s.id)
	if err != nil {
		return nil, err
	}
	opened := map[string]int64{}
	for _, id := range children {
		_, st, err := s.k.load(ctx, "close", id)
		if err != nil {
			return nil, err
		}
		if st.Closed == 0 {
			ids, opened[id] = append(ids, id), st.Opened
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(opened[a], opened[b]), strings.Compare(a, b))
	})
	return ids, nil
}

// refund answers the ledger side of a closing child's remainder, and notes it
// in the child's; nil when nothing goes back.
func (s *Session) refund(ctx context.Context, fields map[string]any) (*part, error) {
	if s.st.Balance == 0 {
		return nil, nil
	}
	p, err := s.refunded(ctx)
	if p == nil || err != nil {
		return nil, err
	}
	fields["returned"] = s.st.Balance
	p.events = []*Event{p.st.ledgerEvent(BudgetReturned, "", map[string]any{"amount": s.st.Balance, "child": s.id})}
	return p, nil
}

// refunded answers the session that a remainder goes back to: the parent, or,
// above parents that have ended, the first that is open, as long as each of them
// was to give back too. What was moved for good stays where it was moved to.
func (s *Session) refunded(ctx context.Context) (*part, error) {
	for st := s.st; st.Refund; {
		id := st.Parent
		head, up, err := s.k.load(ctx, "close", id)
		if err != nil {
			return nil, err
		}
		if up.Closed == 0 {
			return &part{id: id, head: head, st: up}, nil
		}
		st = up
	}
	return nil, nil
}

// cut shortens text to maxDetail characters.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	n := 0
	for i := range text {
		if n == maxDetail {
			return text[:i] + "..."
		}
		n++
	}
	return text
}

// Bracket runs fn on s and closes s behind it, with "scope_exit", or with
// "error" and the text of fn's error, which it answers unchanged. A close that
// fails behind an error is joined to it.
func (s *Session) Bracket(ctx context.Context, fn func(*Session) error) error {
	if err := fn(s); err != nil {
		if cerr := s.Close(context.WithoutCancel(ctx), "error", err.Error()); cerr != nil {
			return errors.Join(err, cerr)
		}
		return err
	}
	return s.Close(ctx, "scope_exit", "")
}
