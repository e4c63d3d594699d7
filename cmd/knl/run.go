package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/luabind"
)

const runUsage = `Runs a Lua script. Flags stand before the script; what follows it is the
script's, as arg[1], arg[2], … The store is opened when the script first opens
a session.

stdout is the script's. With --json it is one document instead, and what the
script prints goes to stderr. A terminal gets a line for each session that runs:
its beats, tokens and balance, and what it does now. The value that the script returns decides: a
table with ok = false is a failed verdict (exit 3), a stopped or refused Outcome
exits 4, an error Outcome 1.

The first Ctrl-C ends the call in flight, records that and ends the run; the
second ends the process at once. Either way the session can be resumed.

JSON:
  { "result": value | null, "reason": "done" | "raised" | "stopped" |
    "verdict_failed" | "interrupted", "exit": n, "sessions": [ids],
    "beats", "input_tokens", "output_tokens", "error"?: { "message", "traceback"? } }`

// runFlags are the flags of knl run and knl resume.
type runFlags struct {
	timeout      time.Duration
	instructions int64
	memory       byteSize
	quiet        bool
}

func runCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run script.lua [args…]",
		Short: "Run a script",
		Long:  runUsage,
		Args:  a.wantArgs("script", "args…"),
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.runScript(ctx, f, script{path: args[0], args: args[1:]})
		}),
	}
	f.register(cmd)
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&f.timeout, "timeout", 0, "end the script after this long, as in 90s or 2h (0: never)")
	flags.Int64Var(&f.instructions, "max-instructions", 0, "end the script after this many VM instructions (0: never)")
	flags.Var(&f.memory, "memory", "end the script above this much memory, as in 512M (default 1G)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no live lines on a terminal, no summary at the end")
	flags.SetInterspersed(false)
}

// leastMemory is what a script needs beside knl itself.
const leastMemory = 32 << 20

func (f *runFlags) limits() (luabind.Limits, error) {
	if f.timeout < 0 || f.instructions < 0 {
		return luabind.Limits{}, misuse("", "--timeout and --max-instructions want a number that is not negative")
	}
	if f.memory > 0 && f.memory < leastMemory {
		return luabind.Limits{}, misuse("", "--memory wants at least 32M: knl itself takes about 20M")
	}
	return luabind.Limits{Time: f.timeout, Instructions: f.instructions, Memory: int64(f.memory)}, nil
}

// runScript runs s and reports how it ended.
func (a *app) runScript(ctx context.Context, f runFlags, s script) (err error) {
	if s.limits, err = f.limits(); err != nil {
		return err
	}
	if err := errors.Join(scriptFault(s.path), modelFault(a.flags.model)); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	h := a.newHost()
	h.terminal = terminal()
	calm := func() {}
	if !f.quiet {
		calm = h.live(ctx)
	}
	defer calm()
	s.host, s.stdout = h, a.ui.out
	if a.flags.json {
		s.stdout = a.ui.err
	}
	if s.session != "" {
		if s.session, err = h.resumable(ctx, s.session); err != nil {
			return errors.Join(err, h.stores.close())
		}
	}
	began := time.Now()
	r := s.run(ctx)
	stopped := interrupted(ctx)
	calm()
	t := h.tally(context.WithoutCancel(ctx))
	r.err = errors.Join(r.err, h.stores.close())
	if a.flags.json && r.err == nil {
		r.err = r.odd
	}
	code, why := r.reason(stopped)
	why = h.mask.Mask(why)
	if !f.quiet {
		took := time.Since(began)
		if a.ui.errTTY && len(t.sessions) > 1 {
			for _, line := range fitted(h.lines(context.WithoutCancel(ctx), time.Now(), true), 20) {
				a.ui.note("%s", line)
			}
		}
		a.summary(t, code, took)
	}
	if a.flags.json {
		r.value = h.maskedJSON(r.value)
		if err := a.ui.json(r.document(code, why, h.mask.Mask(scriptTrace(r.err)), t)); err != nil {
			return err
		}
	}
	if code == exitDone {
		return nil
	}
	return &fault{code: code, err: ended{why, r.err}}
}

// ended is why a run is not done: words of its own, and the raised error behind
// them.
type ended struct {
	why string
	err error
}

func (e ended) Error() string { return e.why }
func (e ended) Unwrap() error { return e.err }

// runDoc is the JSON of a run.
type runDoc struct {
	Result   json.RawMessage `json:"result"`
	Reason   string          `json:"reason"`
	Exit     int             `json:"exit"`
	Sessions []string        `json:"sessions"`
	Beats    int64           `json:"beats"`
	In       int64           `json:"input_tokens"`
	Out      int64           `json:"output_tokens"`
	Error    *errorDoc       `json:"error,omitempty"`
}

type errorDoc struct {
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

func (r *result) document(code int, why, trace string, t tally) runDoc {
	d := runDoc{Result: r.value, Reason: reasons[code], Exit: code, Sessions: t.sessions, Beats: t.beats, In: t.in, Out: t.out}
	if d.Result == nil {
		d.Result = json.RawMessage("null")
	}
	if code != exitDone {
		d.Error = &errorDoc{why, trace}
	}
	return d
}

// summary says on one line what the run did.
func (a *app) summary(t tally, code int, took time.Duration) {
	words := []string{reasons[code]}
	if n := len(t.sessions); n == 1 {
		words = append(words, "session "+t.sessions[0])
	} else if n > 1 {
		words = append(words, fmt.Sprintf("%d sessions", n))
	}
	if t.beats > 0 {
		words = append(words, fmt.Sprintf("%s, %d tokens in, %d out", count(t.beats, "beat"), t.in, t.out))
	}
	if len(t.left) > 0 {
		words = append(words, "left "+strings.Join(t.left, ", "))
	}
	a.ui.note("knl: %s, %s", strings.Join(words, ", "), took.Round(time.Millisecond))
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}

// byteSize is a flag's number of bytes: 1073741824, 512M, 1G.
type byteSize int64

// String answers the size as it is given.
func (b *byteSize) String() string { return strconv.FormatInt(int64(*b), 10) }

// Type names the value in the help.
func (b *byteSize) Type() string { return "bytes" }

// Set reads a size.
func (b *byteSize) Set(text string) error {
	digits := strings.TrimRight(text, "KMGkmg")
	n, err := strconv.ParseInt(digits, 10, 64)
	shift, known := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[strings.ToUpper(text[len(digits):])]
	if err != nil || !known || n <= 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("got %q, want a size such as 512M or 2G", text)
	}
	*b = byteSize(n << shift)
	return nil
}
