package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

const resumeUsage = `Runs a script and offers it a session to go on with, as arg.session. A script
that opens its session so needs no other change:

  knl.session({ session = arg.session }, function(s) … end)

Under knl run arg.session is nil and a new session is opened. ID is a whole id, a
unique beginning or ending of one, or "last". Flags stand before ID; what follows
the script is the script's. All else is as with knl run.`

func resumeCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "resume ID script.lua [args…]",
		Short: "Run a script on a session that has not ended",
		Long:  resumeUsage,
		Args:  a.wantArgs("session ID", "script", "args…"),
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.runScript(ctx, f, script{path: args[1], args: args[2:], session: args[0]})
		}),
	}
	f.register(cmd)
	return cmd
}

// resumable answers the id that prefix begins, of a session in the run's store
// that has not ended.
func (h *host) resumable(ctx context.Context, prefix string) (string, error) {
	dir := h.stores.dir
	if dir == memory {
		return "", misuse("", "--store mem is new in every run: there is nothing to resume")
	}
	if err := isStore(dir); err != nil {
		return "", err
	}
	st, err := h.stores.open("")
	if err != nil {
		return "", storeFault(err)
	}
	p := placeOf(dir, st, false)
	id, err := p.session(ctx, prefix)
	if err != nil {
		return "", err
	}
	row, err := p.row(ctx, id)
	if err == nil && row.ClosedMS != nil {
		err = &fault{code: exitUsage, err: fmt.Errorf("session %s has ended", id), hint: "knl run begins a new one"}
	}
	return id, err
}
