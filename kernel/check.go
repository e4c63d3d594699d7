package kernel

import (
	"context"
	"fmt"

	"github.com/knl-run/knl/kernel/store"
)

// Problem is one thing that [Check] found wrong.
type Problem struct {
	Session string
	Seq     int64 // 0: of the session as a whole
	Rule    string
	Text    string
}

// String answers "session <id>: event <seq>: <rule>: <text>".
func (p Problem) String() string {
	at := "session " + p.Session
	if p.Seq > 0 {
		at += fmt.Sprintf(": event %d", p.Seq)
	}
	return at + ": " + p.Rule + ": " + p.Text
}

// Check reads every session of the store and holds it against the kernel's
// invariants: the log decodes, the state beside the head is the fold of the
// log (I1, I2), every request rebuilds to its hash (I5), and what a child was
// granted its parent has paid (I6). It reports to found and goes on; its error
// is of the store.
func (k *Kernel) Check(ctx context.Context, found func(Problem)) (sessions int, events int64, err error) {
	infos, err := k.store.Streams(ctx, "", 0)
	if err != nil {
		return 0, 0, wrap("check", err)
	}
	paid := map[string]map[string]int64{}
	report := func(p Problem) {
		if ctx.Err() == nil { // else it is what the end of ctx did
			found(p)
		}
	}
	for _, in := range infos {
		if ctx.Err() != nil {
			return sessions, events, wrap("check", context.Cause(ctx))
		}
		c := checker{k: k, id: in.Stream, found: report, reserved: paid, lost: map[int64]bool{}}
		c.run(ctx, in.Head)
		sessions, events = sessions+1, events+in.Head.Seq
	}
	return sessions, events, nil
}

type checker struct {
	k        *Kernel
	id       string
	found    func(Problem)
	reserved map[string]map[string]int64 // parent → child → amount
	lost     map[int64]bool              // requests that do not rebuild
}

func (c *checker) report(seq int64, rule, format string, args ...any) {
	c.found(Problem{Session: c.id, Seq: seq, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) run(ctx context.Context, head store.Head) {
	want, err := decodeState(c.id, head.State)
	if err != nil {
		c.report(0, "I1", "%s", err)
	}
	var st state
	s := c.k.handle(c.id, head, want, nil)
	next := int64(1)
	for r, err := range c.k.store.Records(ctx, c.id, 1, head.Seq) {
		if err != nil {
			c.report(r.Seq, "log", "%s", err)
			return
		}
		if r.Seq != next {
			c.report(r.Seq, "log", "event %d out of order, want %d", r.Seq, next)
		}
		next = r.Seq + 1
		ev, err := c.k.event(ctx, r)
		if err != nil {
			c.report(r.Seq, "log", "%s", err)
			continue
		}
		st.apply(ev)
		c.event(ctx, s, ev)
	}
	if next <= head.Seq {
		c.report(next, "log", "the log has %d events, its head says %d", next-1, head.Seq)
		return
	}
	if st != want {
		c.report(0, "I1", "state beside the head is %s, the log folds to %s", want.encode(), st.encode())
	}
}

func (c *checker) event(ctx context.Context, s *Session, ev *Event) {
	switch ev.Kind {
	case LLMRequest:
		if fieldOf(ev.Data, "hash") == nil {
			return // a caller's
		}
		c.request(ctx, s, ev)
	case BudgetGranted:
		if parent := ev.note().Parent; parent != "" {
			c.paid(ctx, parent, ev)
		}
	}
}

// request holds I5. What stands on a request that does not rebuild does not either, and
// is not read: reading what is damaged takes a second each time.
func (c *checker) request(ctx context.Context, s *Session, ev *Event) {
	d, err := readRecipe(ev)
	switch {
	case err != nil:
	case c.lost[d.Base]:
		err = fmt.Errorf("stands on the request of event %d, which does not rebuild", d.Base)
	default:
		_, err = s.rebuild(ctx, ev)
	}
	if err != nil {
		c.lost[ev.Seq] = true
		c.report(ev.Seq, "I5", "%s", err)
	}
}

// paid holds I6: a grant that came from a parent stands on the parent's ledger
// as a reservation of the same amount for this child.
func (c *checker) paid(ctx context.Context, parent string, ev *Event) {
	if c.reserved[parent] == nil {
		evs, err := c.k.events(ctx, parent, 1, 0)
		if err != nil {
			c.report(ev.Seq, "I6", "parent %s: %s", parent, err)
			return
		}
		c.reserved[parent] = map[string]int64{}
		for _, up := range evs {
			if up.Kind == BudgetReserved {
				d := up.note()
				c.reserved[parent][d.Child] = d.Amount
			}
		}
	}
	if got, want := c.reserved[parent][c.id], ev.note().Amount; got != want {
		c.report(ev.Seq, "I6", "granted %d, parent %s has reserved %d for this child", want, parent, got)
	}
}
