package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// refresh is how often the lines of a run are looked at.
const refresh = 250 * time.Millisecond

// live shows at the foot of a terminal a line for each session of the run that
// has not ended, until stop: what it has done, and what it does now. It stands
// before the script, for what that writes goes above the lines.
func (h *host) live(ctx context.Context) (stop func()) {
	s := h.app.ui.screen()
	if s == nil {
		return func() {}
	}
	h.app.ui.out, h.app.ui.err = s.above(h.app.ui.out), s.above(h.app.ui.err)
	h.terminal = s.asked(h.terminal)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // an interrupted run still ends its calls
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(refresh)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.show(h.lines(ctx, time.Now(), false))
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		s.end()
	}
}

// lines answers a line for each session that has not ended, each child below
// its parent; when the run is over, for those that have, too.
func (h *host) lines(ctx context.Context, now time.Time, over bool) []string {
	driven := h.drivenNow()
	children, known := map[string][]*drive{}, map[string]bool{}
	for _, d := range driven {
		known[d.session.ID()] = true
	}
	for _, d := range driven {
		parent := d.session.Parent()
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], d)
	}
	var out []string
	var walk func(of string, depth int)
	walk = func(of string, depth int) {
		for _, d := range children[of] {
			d.catchUp(ctx)
			if over || !d.ended() {
				out = append(out, strings.Repeat("  ", depth)+d.line(now, over))
			}
			walk(d.session.ID(), depth+1)
		}
	}
	walk("", 0)
	return out
}

func (d *drive) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// line says how a session gets on.
func (d *drive) line(now time.Time, over bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.session.ID()
	words := []string{"…" + id[max(0, len(id)-8):], count(d.beats, "beat"), fmt.Sprintf("%s tokens in, %s out", short(d.in), short(d.out))}
	if d.granted {
		words = append(words, short(d.left)+" left")
	}
	switch {
	case d.closed:
		words = append(words, "ended")
	case over:
		words = append(words, "open")
	default:
		words = append(words, d.doing(now))
	}
	return strings.Join(words, "  ")
}

// doing says what runs now, and for how long.
func (d *drive) doing(now time.Time) string {
	what, since := "script", time.Time{}
	switch {
	case len(d.calls) > 0:
		names := slices.Sorted(maps.Values(d.calls))
		what, since = visible(strings.Join(slices.Compact(names), ", ")), d.since
	case !d.model.IsZero():
		what, since = "model", d.model
	}
	if span := now.Sub(since).Truncate(time.Second); !since.IsZero() && span > 0 {
		what += " " + span.String()
	}
	return what
}

// short answers a number in few characters: 999, 1.2k, 34k, 5.6M.
func short(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		switch {
		case n < unit.size:
			continue
		case n < 10*unit.size:
			return fmt.Sprintf("%d.%d%s", n/unit.size, n%unit.size*10/unit.size, unit.name)
		}
		return fmt.Sprintf("%d%s", n/unit.size, unit.name)
	}
	return fmt.Sprint(n)
}
