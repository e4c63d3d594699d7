package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHangup proves that a terminal that closes ends a run as SIGTERM does, and
// that its second word does not cut that end short.
func TestHangup(t *testing.T) {
	code := make(chan int, 1)
	ctx, stop := onSignals(context.Background(), func(c int) { code <- c })
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	if signal.Ignored(syscall.SIGHUP) { // the tests run under nohup, where a run goes on
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, ctx.Err())
		return
	}
	<-ctx.Done()
	require.True(t, interrupted(ctx))
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, code)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	require.Equal(t, exitInterrupted, <-code)
}
