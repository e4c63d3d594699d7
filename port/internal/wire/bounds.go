package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/port"
)

// MaxBody is how many bytes a provider may answer to one call: more does not
// fit into an event.
const MaxBody = 64 << 20

// ErrTooLong is what reading behind MaxBody answers. The readers of events have
// a bound of their own for one of them.
var ErrTooLong = fmt.Errorf("the answer is longer than knl takes: %d MiB, and 32 MiB in one event", MaxBody>>20)

// Beginning bounds a body by a mebibyte and ends there as if it ended: of a
// failure nobody reads more.
func Beginning(body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, 1<<20), body}
}

// Cap bounds a body by MaxBody.
func Cap(body io.ReadCloser) io.ReadCloser { return &capped{body, MaxBody} }

type capped struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *capped) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, ErrTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// The bounds of a call in seconds: what holds when conf says nothing, and a
// month, behind which nothing is a limit.
const (
	defaultTimeout = 600
	maxTimeout     = 31 * 24 * 3600
)

// Within bounds a call by conf.timeout, 600 seconds where it says none, and by
// the deadline of its beat.
func Within(ctx context.Context, timeout float64, deadline time.Time) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	end := time.Now().Add(time.Duration(min(timeout, maxTimeout) * float64(time.Second)))
	late := fmt.Errorf("no whole answer within %g seconds: conf.timeout sets how long a call may take", timeout)
	if !deadline.IsZero() && deadline.Before(end) {
		end, late = deadline, context.DeadlineExceeded
	}
	return context.WithDeadlineCause(ctx, end, late)
}

// Ended answers why a call has no answer. What ended the call goes before what
// the connection says about it: outer is the caller's context, inner the one
// with the call's own bounds.
func Ended(outer, inner context.Context, err error) *kernel.CallError {
	var failed *kernel.CallError
	switch {
	case errors.Is(outer.Err(), context.Canceled):
		return port.ClassifyError(outer.Err())
	case inner.Err() != nil:
		return port.ClassifyError(context.Cause(inner))
	case errors.As(err, &failed):
		return failed
	case errors.Is(err, ErrTooLong):
		return &kernel.CallError{Kind: kernel.Server, Message: err.Error(), Retry: new(bool)}
	}
	return port.ClassifyError(err)
}
