package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/sockstore"
	"github.com/knl-run/knl/kernel/store"
)

const logUsage = `Prints the events of a session, one a line: seq, time, kind, beat, data. Data
longer than 160 characters is cut, and the line says by how much; --json cuts
nothing. ID is a whole id, a unique beginning or ending of one, or "last".

With -f it goes on with what is recorded next, also beside the knl run that
records it, until the session is closed or Ctrl-C.

JSON, one event a line:
  { "seq", "epoch_ms", "kind", "beat"?, "meta": {…}, "data": {…} }`

// logFlags are the flags of knl log.
type logFlags struct {
	follow bool
	from   int64
	last   int64
}

func logCommand(a *app) *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "log ID",
		Short: "Print the events of a session",
		Long:  logUsage,
		Args:  a.wantArgs("session ID"),
		RunE: a.command(func(ctx context.Context, args []string) error {
			if f.from < 1 || f.last < 0 {
				return misuse("", "--from and --last want whole numbers from 1")
			}
			return a.log(ctx, args[0], f)
		}),
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what is recorded next")
	cmd.Flags().Int64Var(&f.from, "from", 1, "begin at this seq")
	cmd.Flags().Int64VarP(&f.last, "last", "n", 0, "print the last N events only (0: all)")
	return cmd
}

func (a *app) log(ctx context.Context, id string, f logFlags) error {
	if f.follow {
		return a.follow(ctx, id, f)
	}
	return a.look(ctx, func(p *place) error {
		l, err := p.logOf(ctx, a, id, f)
		if err != nil {
			return err
		}
		return l.print(ctx)
	})
}

// logReader prints a session's log up to where it stands, and on from there.
type logReader struct {
	a    *app
	s    *kernel.Session
	next int64 // the seq to print next
	over bool  // session_closed was printed
}

func (p *place) logOf(ctx context.Context, a *app, prefix string, f logFlags) (*logReader, error) {
	id, err := p.session(ctx, prefix)
	if err != nil {
		return nil, err
	}
	s, err := p.kernel.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	l := &logReader{a: a, s: s, next: f.from}
	if f.last > 0 {
		n, err := s.Len(ctx)
		if err != nil {
			return nil, err
		}
		l.next = max(l.next, n-f.last+1)
	}
	return l, nil
}

// page is how many events are read at a time.
const page = 512

func (l *logReader) print(ctx context.Context) error {
	for {
		rows, more, err := l.s.Scan(ctx, kernel.Where{From: l.next, Limit: page})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := l.a.event(r.Event); err != nil {
				return err
			}
			l.next = r.Event.Seq + 1
			l.over = l.over || r.Event.Kind == kernel.SessionClosed
		}
		if !more {
			return nil
		}
	}
}

// eventDoc is an event as JSON.
type eventDoc struct {
	Seq     int64           `json:"seq"`
	EpochMS int64           `json:"epoch_ms"`
	Kind    string          `json:"kind"`
	Beat    string          `json:"beat,omitempty"`
	Meta    json.RawMessage `json:"meta"`
	Data    json.RawMessage `json:"data"`
}

func docOf(ev *kernel.Event) eventDoc {
	return eventDoc{ev.Seq, ev.EpochMS, ev.Kind, ev.Beat, ev.Meta, ev.Data}
}

// event prints one event.
func (a *app) event(ev *kernel.Event) error {
	if a.flags.json {
		return a.ui.json(docOf(ev))
	}
	data := string(ev.Data)
	if !bytes.Equal(ev.Meta, []byte("{}")) {
		data += " meta " + string(ev.Meta)
	}
	beat := ev.Beat
	if beat == "" {
		beat = "-"
	}
	return a.ui.line("%6d  %s  %s  %s  %s", ev.Seq, a.ui.style(faint, clock(ev.EpochMS)),
		a.ui.style(bold, fmt.Sprintf("%-16s", visible(ev.Kind))), a.ui.style(faint, visible(beat)), cut(data, 160))
}

// pause is how long knl log -f waits before it looks again whether somebody
// has taken the store up.
const pause = 200 * time.Millisecond

// follow prints a log as it grows. It holds the store only while it reads, or
// reaches it through the process that holds it: a knl run may start beside it.
func (a *app) follow(ctx context.Context, id string, f logFlags) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	var l *logReader
	for {
		before := stirred(a.flags.store)
		err := a.look(ctx, func(p *place) (err error) {
			if l == nil {
				l, err = p.logOf(ctx, a, id, f)
			} else {
				l.s, err = p.kernel.Attach(ctx, l.s.ID())
			}
			if err != nil {
				return err
			}
			return l.tail(ctx, p)
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passing(err), err != nil && l == nil && !goes(err):
			return err
		case err == nil && l.over:
			return nil
		}
		for ctx.Err() == nil && err == nil && stirred(a.flags.store) == before {
			sleep(ctx, pause)
		}
		if err != nil {
			sleep(ctx, pause)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// stirred answers when files of a store last came or went: a process that takes
// a store up makes some.
func stirred(dir string) time.Time {
	info, err := os.Stat(dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// tail prints what is there and, when another process holds the store, what it
// records from now on.
func (l *logReader) tail(ctx context.Context, p *place) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	moved := p.store.Watch(ctx, l.s.ID())
	for {
		if err := l.print(ctx); err != nil || l.over || !p.shared {
			return err
		}
		if _, ok := <-moved; !ok {
			return nil
		}
	}
}

// passing says whether a store that cannot be read now may be read soon: its
// holder has just gone, or just come.
func passing(err error) bool {
	return goes(err) || errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrClosed)
}

// goes says whether the holder has just gone, so that the next look finds out who
// holds the store now.
func goes(err error) bool {
	var gone *sockstore.Gone
	return errors.As(err, &gone)
}
