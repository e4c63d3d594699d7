package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/knl-run/knl/luabind"
)

// errInterrupted is the cause of a context that Ctrl-C, SIGTERM or SIGHUP ended.
var errInterrupted = errors.New("interrupted")

// interruptible answers a context that the first SIGINT, SIGTERM or SIGHUP ends,
// with errInterrupted as its cause. The second one ends the process and what
// scripts have started at once: what was acknowledged is on disk. A terminal that
// closes sends SIGHUP more than once, so that one only begins an end; under nohup
// there is none.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
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
