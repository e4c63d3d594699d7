package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
)

const sessionsUsage = `Lists the sessions of a store, the oldest first. Works beside a running knl run.

A session is "open", "closed", or "mid-beat": a beat has begun and not ended, so
it runs now, or its driver died and the next resume will close it.

JSON:
  { "sessions": [ { "session", "parent"?, "owner", "events", "calls", "epoch",
    "opened_epoch_ms", "closed_epoch_ms"?, "remaining"?, "tag"?, "open_beat"? } ] }`

func sessionsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of a store",
		Long:  sessionsUsage,
		Args:  a.wantArgs(),
		RunE:  a.command(a.sessions),
	}
}

func (a *app) sessions(ctx context.Context, _ []string) error {
	return a.look(ctx, func(p *place) error {
		rows, err := p.kernel.Sessions(ctx, "", 0)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.ui.json(map[string]any{"sessions": nonNil(rows)})
		}
		return a.ui.table(sessionHeads, sessionCells(rows))
	})
}

var sessionHeads = []string{"SESSION", "OPENED", "STATE", "EVENTS", "CALLS", "LEFT", "OWNER", "PARENT"}

func sessionCells(rows []kernel.SessionRow) [][]string {
	cells := make([][]string, len(rows))
	for i := range rows {
		r := &rows[i]
		cells[i] = []string{r.Session, clock(r.OpenedMS), stateOf(r), strconv.FormatInt(r.Events, 10),
			strconv.Itoa(r.Calls), left(r), r.Owner, r.Parent}
	}
	return cells
}

func stateOf(r *kernel.SessionRow) string {
	switch {
	case r.ClosedMS != nil:
		return "closed"
	case r.OpenBeat != "":
		return "mid-beat"
	}
	return "open"
}

// left answers what a session's budget still holds, in its unit.
func left(r *kernel.SessionRow) string {
	if r.Remaining == nil {
		return "-"
	}
	text := strconv.FormatInt(*r.Remaining, 10)
	if r.Tag != "" {
		text += " " + r.Tag
	}
	return text
}

// nonNil answers rows as a list that is [] when it is empty.
func nonNil[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}
