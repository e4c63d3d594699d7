package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel"
)

const treeUsage = `Shows a session and every session below it, parents before their children.
ID is a whole id, a unique beginning or ending of one, or "last". Works beside a running knl run.

JSON:
  { "tree": [ { …as in knl sessions, "depth", "open_children": [ids] } ] }`

func treeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "tree ID",
		Short: "Show a session and its children",
		Long:  treeUsage,
		Args:  a.wantArgs("session ID"),
		RunE:  a.command(a.tree),
	}
}

func (a *app) tree(ctx context.Context, args []string) error {
	return a.look(ctx, func(p *place) error {
		id, err := p.session(ctx, args[0])
		if err != nil {
			return err
		}
		rows, err := p.kernel.Tree(ctx, id)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.ui.json(map[string]any{"tree": rows})
		}
		return a.ui.table(sessionHeads[:len(sessionHeads)-1], treeCells(rows))
	})
}

func treeCells(rows []kernel.TreeRow) [][]string {
	flat := make([]kernel.SessionRow, len(rows))
	for i, r := range rows {
		flat[i] = r.SessionRow
	}
	cells := sessionCells(flat)
	for i, r := range rows {
		cells[i] = cells[i][:len(cells[i])-1]
		if r.Depth > 0 {
			cells[i][0] = strings.Repeat("   ", r.Depth-1) + "└─ " + r.Session
		}
	}
	return cells
}
