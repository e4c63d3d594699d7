package main

import (
	"context"
	"strings"

	"charm.land/fang/v2"
	"github.com/spf13/cobra"
)

const helpUsage = `Shows what a command does, what it prints and how it ends.`

func helpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Show the help of a command",
		Long:  helpUsage,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, name := range args {
				next, _, err := at.Find([]string{name})
				if err != nil || next == at {
					return unknownCommand(at, name)
				}
				at = next
			}
			return at.Help()
		},
	}
}

// help prints the help of cmd. Fang asks the terminal for its colours, which
// takes a while: so it gets a command line of its own, and only when there is
// help to print.
func (a *app) help(ctx context.Context, cmd *cobra.Command) {
	root := a.root()
	root.SetArgs(append(strings.Fields(cmd.CommandPath())[1:], "--help"))
	if err := fang.Execute(ctx, root, fang.WithVersion(version()), fang.WithoutManpage()); err != nil {
		a.err = err
	}
}
