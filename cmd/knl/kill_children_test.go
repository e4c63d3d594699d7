package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
)

// familyScript runs two children side by side, each with a child of its own,
// under a budget of 30; a resume settles first what a killed run left open.
const familyScript = `
local knl, supervisor = require("knl"), require("supervisor")
local jobs = {}
for i = 1, 2 do
  jobs[i] = { opts = { budget = { amount = 5, refund = true } }, fn = function(c)
    c:spend(1)
    supervisor.child(c, { budget = { amount = 2, refund = true } }, function(g) g:spend(1) end)
  end }
end
return knl.session({ session = arg.session, budget = { amount = 30 } }, function(s)
  supervisor.reclaim(s)
  for _, slot in ipairs(supervisor.parallel(s, jobs)) do
    if not slot.ok then error(slot.err) end
  end
end)
`

// TestKilledInAFamily kills a real run before every write of a parallel, resumes the
// parent and holds: every child has ended, none kept a unit, and what is left and
// what was spent are together what was granted.
func TestKilledInAFamily(t *testing.T) {
	n := 1
	for ; familyKilledAt(t, n); n++ {
	}
	require.Greater(t, n, 10, "the script has more writes than this")
}

// familyKilledAt answers false when the run ended before its n-th write.
func familyKilledAt(t *testing.T, n int) bool {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "family.lua"), []byte(familyScript), 0o644))
	cmd, stopped := child(t, dir, fmt.Sprintf("%d:before", n), "run", "family.lua")
	if stopped {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	ids := sessionIDs(t, dir)
	if len(ids) > 0 && !closed(t, dir, ids[0]) {
		knl(t, dir, "resume", ids[0], "family.lua")
	}
	if len(ids) > 0 {
		require.Equal(t, int64(30), familyUnits(t, dir, ids[0]), "killed at %d", n)
	}
	require.Contains(t, knl(t, dir, "check", "store"), "ok")
	return stopped
}

// familyUnits answers what was spent below root and what root has left; nobody
// else has anything.
func familyUnits(t *testing.T, dir, root string) (units int64) {
	ctx := context.Background()
	st, err := pebblestore.Open(filepath.Join(dir, ".knl"), pebblestore.Options{})
	require.NoError(t, err)
	defer st.Close()
	k := kernel.New(st, kernel.Options{})
	rows, err := k.Tree(ctx, root)
	require.NoError(t, err)
	s, err := k.Attach(ctx, root)
	require.NoError(t, err)
	for _, row := range rows {
		require.NotNil(t, row.ClosedMS, "%s is open", row.Session)
		require.True(t, row.Session == root || *row.Remaining == 0, "%s keeps %d units", row.Session, *row.Remaining)
		units += *row.Remaining
		moves, _, err := s.LedgerView(ctx, kernel.ViewOptions{Sessions: []string{row.Session}})
		require.NoError(t, err)
		for _, m := range moves {
			if m.Kind == kernel.BudgetSpent {
				units += m.Amount
			}
		}
	}
	return units
}
