// Command knl runs Lua scripts whose agent loops are durable, and looks at the
// sessions they leave.
//
//	file          holds
//	main.go       the command table, the global flags, the exit codes
//	ui.go         the only writer to a terminal; ui_screen.go the lines at its foot
//	fault.go      errors with an exit code and a next step
//	store.go      opening a store for a run or for a look; ids by their prefix
//	run.go …      one file a command, its usage text on top
package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

const usage = `knl runs agent loops written in Lua. A session is a log on disk: what was
acknowledged survives kill -9, and a session that has not ended can be resumed.

stdout carries results, everything else is stderr. With --json stdout is one
JSON document (log: one a line).

Exit codes:
  0    done, or the verdict is ok
  1    raised: the script, a spec, a check or the store failed
  2    usage: the command line is wrong
  3    the verdict failed
  4    stopped: budget, contract, context, limit, or the model refused
  75   deferred: later is better
  130  interrupted by Ctrl-C, SIGTERM, SIGHUP, or since nobody reads its output;
       the sessions can be resumed`

// The exit codes, the same for every command.
const (
	exitDone        = 0
	exitRaised      = 1
	exitUsage       = 2
	exitVerdict     = 3
	exitStopped     = 4
	exitDeferred    = 75
	exitInterrupted = 130
)

// reasons are the names of the exit codes on screen and in JSON.
var reasons = map[int]string{
	exitDone:        "done",
	exitRaised:      "raised",
	exitUsage:       "usage",
	exitVerdict:     "verdict_failed",
	exitStopped:     "stopped",
	exitDeferred:    "deferred",
	exitInterrupted: "interrupted",
}

// commands is the command table, in the order of the help.
var commands = []func(*app) *cobra.Command{
	runCommand, resumeCommand,
	sessionsCommand, logCommand, showCommand, treeCommand,
	exportCommand, replayCommand, doctorCommand,
	specCommand, vendorCommand, typesCommand, checkCommand, mcpCommand,
}

// app is one call of knl.
type app struct {
	ui    *ui
	flags globals
	name  string // of the command, as errors name it
	err   error  // what the command ended with
}

// globals are the flags that every command takes.
type globals struct {
	store      string
	json       bool
	durability string
	model      string
}

func main() {
	keepInherited()
	collectOrphans()
	ctx, end := context.WithCancelCause(context.Background())
	a := &app{ui: newUI(os.Stdout, os.Stderr), name: "knl"}
	a.ui.hear(end)
	os.Exit(a.run(ctx, os.Args[1:]))
}

// hear makes end the answer to an output that nobody reads. A terminal, which is
// more than a writer, has no such end.
func (u *ui) hear(end context.CancelCauseFunc) {
	if !u.outTTY {
		u.out = heard{u.out, end}
	}
	if !u.errTTY {
		u.err = heard{u.err, end}
	}
}

// run executes one command line and answers the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.help(ctx, cmd) })
	err := root.ExecuteContext(ctx)
	if err != nil {
		err = usageFault(err)
	} else {
		err = a.err
	}
	if errors.Is(err, syscall.EPIPE) && interrupted(ctx) {
		err = &fault{code: exitInterrupted} // what could not be written is no news to who stopped reading
	}
	return a.ui.end(a.name, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "knl",
		Short: "Durable agent loops in Lua",
		Long:  usage,
		Args:  cobra.ArbitraryArgs,

		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.flags.store, "store", ".knl", `folder of the store, or "mem"`)
	f.BoolVar(&a.flags.json, "json", false, "print JSON")
	f.StringVar(&a.flags.durability, "durability", "output", `"output": on disk before it matters outside; "strict": at every record`)
	f.StringVar(&a.flags.model, "model", "", "the script's default port, as provider:name")
	root.SetFlagErrorFunc(a.flagFault)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.name = commandName(cmd)
		if a.flags.store == "" {
			return misuse("", `--store: got "", want a folder or mem`)
		}
		return oneOf("--durability", a.flags.durability, "output", "strict")
	}
	root.SetHelpCommand(helpCommand(a))
	for _, make := range commands {
		root.AddCommand(make(a))
	}
	return root
}

// command wraps what a command does: its error is kept, so that only mistakes
// of the command line reach cobra.
func (a *app) command(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.err = do(cmd.Context(), args)
		return nil
	}
}

// commandName answers "check store" of the command knl check store.
func commandName(cmd *cobra.Command) string {
	if _, name, ok := strings.Cut(cmd.CommandPath(), " "); ok {
		return name
	}
	return "knl"
}
