package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/store"
)

const checkStoreUsage = `Reads everything in a store and holds it against what must be true: the records
of every session are dense, its state is the fold of its log, every request
rebuilds to its hash, every budget was paid for, every payload has its hash.
Nothing is written. Exits 1 when something is wrong.

Beside a running knl run the check goes through that process and leaves out what
only the holder of the files can see ("complete" is false).

JSON:
  { "ok", "complete", "sessions", "events", "problems": [ { "where", "seq"?,
    "rule", "text" } ], "more" }`

func checkCommand(a *app) *cobra.Command {
	check := &cobra.Command{
		Use:   "check",
		Short: "Check a store for damage",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse("knl check store", "got nothing to check, want store")
			}
			return misuse("knl check store", "%q cannot be checked, want store", args[0])
		},
	}
	check.AddCommand(&cobra.Command{
		Use:   "store",
		Short: "Check a store for damage",
		Long:  checkStoreUsage,
		Args:  a.wantArgs(),
		RunE:  a.command(a.checkStore),
	})
	return check
}

// checkDoc is the JSON of a check.
type checkDoc struct {
	OK       bool         `json:"ok"`
	Complete bool         `json:"complete"`
	Sessions int          `json:"sessions"`
	Events   int64        `json:"events"`
	Problems []problemDoc `json:"problems"`
	More     int          `json:"more"`
}

type problemDoc struct {
	Where string `json:"where"`
	Seq   int64  `json:"seq,omitempty"`
	Rule  string `json:"rule"`
	Text  string `json:"text"`
}

// maxProblems bounds the list of a check.
const maxProblems = 1000

func (d *checkDoc) found(p problemDoc) {
	if len(d.Problems) == maxProblems {
		d.More++
		return
	}
	d.Problems = append(d.Problems, p)
}

func (a *app) checkStore(ctx context.Context, _ []string) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	d := checkDoc{Problems: []problemDoc{}}
	err := a.look(ctx, func(p *place) (err error) {
		if st, ours := p.store.(*pebblestore.Store); ours {
			d.Complete = true
			if err := d.files(ctx, st); err != nil {
				return err
			}
		}
		d.Sessions, d.Events, err = p.kernel.Check(ctx, func(p kernel.Problem) {
			d.found(problemDoc{"session " + p.Session, p.Seq, p.Rule, p.Text})
		})
		return err
	})
	if interrupted(ctx) {
		d.Complete = false
		if err := a.listed(&d); err != nil { // what was found stands
			return err
		}
		return &fault{code: exitInterrupted, err: errInterrupted}
	}
	if errors.Is(err, store.ErrCorrupt) { // so much that it does not open
		d.found(problemDoc{Where: "files", Rule: "open", Text: err.Error()})
	} else if err != nil {
		return err
	}
	return a.checked(&d)
}

// files checks what lies below the sessions.
func (d *checkDoc) files(ctx context.Context, st *pebblestore.Store) error {
	report, err := st.Check(ctx)
	for _, damage := range report.Damage {
		d.found(problemDoc{Where: damage.Where, Rule: damage.Rule, Text: damage.What})
	}
	d.More += report.More
	return err
}

// checked says what came of a check.
func (a *app) checked(d *checkDoc) error {
	d.OK = len(d.Problems) == 0
	if err := a.listed(d); err != nil {
		return err
	}
	switch {
	case !d.OK:
		return &fault{code: exitRaised, err: fmt.Errorf("store %q: %s", a.flags.store, count(int64(len(d.Problems)+d.More), "problem"))}
	case a.flags.json:
		return nil
	case !d.Complete:
		a.ui.note("the files themselves were not checked: another process holds them")
	}
	return a.ui.line("ok: %s, %s", count(int64(d.Sessions), "session"), count(d.Events, "event"))
}

// listed prints the problems, or all that is known as JSON.
func (a *app) listed(d *checkDoc) error {
	if a.flags.json {
		return a.ui.json(d)
	}
	for _, p := range d.Problems {
		at := p.Where
		if p.Seq > 0 {
			at += fmt.Sprintf(": event %d", p.Seq)
		}
		if err := a.ui.line("%s: %s: %s", visible(at), visible(p.Rule), visible(p.Text)); err != nil {
			return err
		}
	}
	return nil
}
