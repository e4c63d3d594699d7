package luabind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	lua "github.com/yuin/gopher-lua"
)

// lineLimit is the length of a line that ask takes.
const lineLimit = 64 << 10

// asking is held by whoever asks at the terminal: there is one, and one human.
var asking = make(chan struct{}, 1)

// stdTerm is std.term: the human who started the run.
func stdTerm(o StdOptions) *Module {
	return &Module{
		Name: "std.term",
		Doc:  "The human at the terminal.",
		Funcs: []Func{{
			Name: "ask",
			Args: []Arg{
				{Name: "prompt", Kind: Text, Doc: "written to stderr, control characters as escapes"},
				{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
					{Name: "timeout", Kind: Seconds, Optional: true, Doc: "then the answer is nil, \"timeout\" (default: none)"},
				}},
			},
			Returns: "string?, string?",
			Doc: "The line that is typed, without its end; nil and \"timeout\", or nil and \"closed\" when the terminal ended. " +
				"Tasks that ask at once take turns. What was typed before the question was there is no answer to it, and is thrown away. Raises (kind unsupported) when stdin and stderr are not a terminal.",
			Fn: func(c *Call) (int, error) { return ask(c, o) },
		}},
		Open:  func(vm *VM) (any, error) { return vm, nil },
		Close: func(state any) error { return flushed(state.(*VM)) },
		Fault: stdFault,
	}
}

// flushed writes what a masking writer of the VM still holds.
func flushed(vm *VM) error {
	var errs []error
	for _, w := range []io.Writer{vm.config.Stdout, vm.config.Stderr} {
		if f, ok := w.(interface{ Flush() error }); ok {
			errs = append(errs, f.Flush())
		}
	}
	return errors.Join(errs...)
}

func ask(c *Call, o StdOptions) (int, error) {
	prompt, opts := c.String(1), c.Options(2)
	span := opts.Seconds("timeout", 0)
	if opts.Has("timeout") && span <= 0 {
		return 0, c.Mistake("option %q: got %s, want seconds above 0", "timeout", show(opts.Value("timeout")))
	}
	if o.Terminal == nil {
		return 0, &stdError{kind: noWay, text: "there is no terminal to ask at: stdin and stderr must be one"}
	}
	vm := c.VM()
	line, err := blockFor(c, func(ctx context.Context) (string, error) {
		within, stop := ctx, context.CancelFunc(func() {})
		if span > 0 {
			within, stop = context.WithTimeout(ctx, span)
		}
		defer stop()
		line, err := askLine(within, o.Terminal, func() error {
			_, err := io.WriteString(vm.config.Stderr, plainText(prompt))
			return errors.Join(err, flushed(vm))
		})
		if err != nil && ctx.Err() == nil && within.Err() != nil {
			err = errTooLate
		}
		return line, err
	})
	switch {
	case errors.Is(err, errTooLate):
		return c.Return(lua.LNil, lua.LString("timeout"))
	case errors.Is(err, io.EOF):
		return c.Return(lua.LNil, lua.LString("closed"))
	case err != nil:
		return 0, err
	}
	return c.Return(lua.LString(line))
}

var errTooLate = errors.New("nobody answered in time")

// askLine waits for its turn, opens the terminal, which forgets what was typed
// before, shows the prompt and reads a line. It closes the terminal, which ends a
// read that nobody answers.
func askLine(ctx context.Context, open func() (io.ReadCloser, error), prompt func() error) (string, error) {
	select {
	case asking <- struct{}{}:
		defer func() { <-asking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	in, err := open()
	if err != nil {
		return "", &stdError{kind: noWay, text: fmt.Sprintf("there is no terminal to ask at: %s", err), cause: err}
	}
	if err := prompt(); err != nil {
		return "", errors.Join(err, in.Close())
	}
	type typed struct {
		line string
		err  error
	}
	done := make(chan typed, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(in, lineLimit)).ReadString('\n')
		if line != "" && errors.Is(err, io.EOF) {
			err = nil // the last line of a terminal that ended, or a very long one
		}
		done <- typed{line, err}
	}()
	select {
	case t := <-done:
		in.Close()
		return strings.TrimRight(t.line, "\r\n"), t.err
	case <-ctx.Done():
		in.Close()
		select { // the reader ends with the file, where the system lets it
		case <-done:
		case <-time.After(drainGrace):
		}
		return "", ctx.Err()
	}
}

// plainText spells control characters other than line ends, so that a prompt,
// which may be a model's, cannot drive the terminal.
func plainText(text string) string {
	var out strings.Builder
	for _, char := range strings.ToValidUTF8(text, "\uFFFD") {
		if unicode.IsControl(char) && char != '\n' || unicode.Is(unicode.Bidi_Control, char) {
			quoted := strconv.QuoteRuneToASCII(char)
			out.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		out.WriteRune(char)
	}
	return out.String()
}
