package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/knl-run/knl/luabind"
)

// errInterrupted is the cause of a context that Ctrl-C, SIGTERM or SIGHUP ended.
var errInterrupted = errors.New("interrupted")

// errUnread is the cause when who read our output has gone: head that has seen
// enough, a pager that was quit, the client of knl mcp.
var errUnread = fmt.Errorf("%w: nobody reads the output", errInterrupted)

// heard is an output that ends the command when nobody reads it any more. The
// end has begun when the write that found out returns: a script that it raises in
// goes no further.
type heard struct {
	io.Writer
	end context.CancelCauseFunc
}

// Write implements [io.Writer].
func (h heard) Write(b []byte) (int, error) {
	n, err := h.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		h.end(errUnread)
	}
	return n, err
}

// surviveUnread makes a write to a pipe without a reader an error that [heard]
// sees. Unasked, the system ends the process there, as kill -9 does; a command
// that has nothing to finish leaves it at that. It is asked for good: the last
// words of a command are writes, too.
var surviveUnread = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) })

// interruptible answers a context that the first SIGINT, SIGTERM or SIGHUP ends,
// with errInterrupted as its cause; so does, by [heard], an output that nobody
// reads. The second one ends the process and what
// scripts have started at once: what was acknowledged is on disk. A terminal that
// closes sends SIGHUP more than once, so that one only begins an end; under nohup
// there is none.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	surviveUnread()
	return onSignals(parent, os.Exit)
}

func onSignals(parent context.Context, exit func(code int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case s := <-signals:
				if n > 0 && s != syscall.SIGHUP {
					luabind.EndProcesses()
					exit(exitInterrupted)
				}
				cancel(errInterrupted)
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

func interrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errInterrupted) }
