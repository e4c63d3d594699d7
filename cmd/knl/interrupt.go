package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of a context that Ctrl-C or SIGTERM ended.
var errInterrupted = errors.New("interrupted")

// interruptible answers a context that the first SIGINT or SIGTERM ends, with
// errInterrupted as its cause. The second one ends the process at once: what
// was acknowledged is on disk.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	return onSignals(parent, os.Exit)
}

func onSignals(parent context.Context, exit func(code int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-signals:
				if n > 0 {
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
