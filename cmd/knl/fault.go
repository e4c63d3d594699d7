package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/luabind"
)

// fault is an error with the code it ends the command with and, where there is
// one, the next step.
type fault struct {
	code int
	err  error // nil: the code alone says it, the command has printed why
	hint string
}

func (f *fault) Error() string {
	if f.err == nil {
		return reasons[f.code]
	}
	return f.err.Error()
}

func (f *fault) Unwrap() error { return f.err }

// misuse answers the fault of a wrong command line.
func misuse(hint, format string, args ...any) *fault {
	return &fault{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// asFault answers err as a fault; what is not one yet was a failure.
func asFault(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{code: exitRaised, err: err}
}

// textOf answers what went wrong without the prefix that the command's own
// name replaces.
func textOf(err error) string {
	var k *kernel.Error
	if errors.As(err, &k) && k.Error() == err.Error() {
		return k.Message
	}
	return err.Error()
}

// usageFault answers cobra's error as one of the command line.
func usageFault(err error) error {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return misuse("knl help shows what there is", "%s", err)
}

// flagFault says what is wrong with a flag, with the nearest name.
func (a *app) flagFault(cmd *cobra.Command, err error) error {
	a.name = commandName(cmd)
	hint := cmd.CommandPath() + " --help lists the flags"
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return misuse(hint, "%s", err)
	}
	var names []string
	add := func(f *pflag.Flag) { names = append(names, "--"+f.Name) }
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	got := "--" + missing.GetSpecifiedName()
	if shorts := missing.GetSpecifiedShortnames(); shorts != "" {
		got = "-" + missing.GetSpecifiedName()
	}
	return misuse(hint, "flag %s is unknown%s", got, near(got, names))
}

// unknownCommand says which command was meant.
func unknownCommand(root *cobra.Command, got string) error {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	if strings.HasSuffix(got, ".lua") {
		return misuse("knl run "+got, "command %q is unknown: a script is run with knl run", got)
	}
	return misuse(root.CommandPath()+" --help lists the commands", "command %q is unknown%s", got, near(got, names))
}

// near answers ` (did you mean "x"?)`, or nothing when no name is near.
func near(got string, names []string) string {
	if s := luabind.Suggest(got, names); strings.HasPrefix(s, "did you mean") {
		return " (" + s + ")"
	}
	return ""
}

// oneOf checks the value of a flag.
func oneOf(flag, got string, want ...string) error {
	if slices.Contains(want, got) {
		return nil
	}
	return misuse("", "%s: got %q, want %s", flag, got, strings.Join(want, " or "))
}

// wantArgs checks the arguments of a command against what its usage line calls
// them; a last name that ends in "…" takes any number.
func (a *app) wantArgs(names ...string) cobra.PositionalArgs {
	least, most := len(names), len(names)
	if n := len(names); n > 0 && strings.HasSuffix(names[n-1], "…") {
		least, most = n-1, -1
	}
	return func(cmd *cobra.Command, args []string) error {
		a.name = commandName(cmd)
		hint := "knl " + commandName(cmd) + " --help"
		switch {
		case len(args) < least:
			return misuse(hint, "got no %s", names[len(args)])
		case most >= 0 && len(args) > most:
			return misuse(hint, "argument %q is one too many", args[most])
		}
		return nil
	}
}

// version answers the version that the build recorded.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
