package sockstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel/store"
)

// Gone is the error of a call whose holder ended, or hung up, before answering.
type Gone struct {
	Dir string
	PID int // of the holder
}

// Error names the holder and what to do.
func (g *Gone) Error() string {
	return fmt.Sprintf("store %q: process %d, which held it, is gone; open the store again", g.Dir, g.PID)
}

// conn is the client's end of a connection: numbered calls and who waits for
// what they answer.
type conn struct {
	net.Conn
	lost *Gone         // what calls answer once gone is closed
	out  chan []byte   // to the writing goroutine
	gone chan struct{} // closed when the connection has ended

	running sync.WaitGroup

	mu    sync.Mutex
	next  uint64
	calls map[uint64]func(frame) // called by the reading goroutine; must not block
}

func dial(path string, wait time.Duration) (*conn, error) {
	dir := filepath.Dir(path)
	nc, err := net.DialTimeout("unix", address(path), wait)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", dir, err)
	}
	pid, err := greet(nc, wait)
	if err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("store %q: hello to its holder: %w", dir, err)
	}
	c := &conn{
		Conn: nc, lost: &Gone{Dir: dir, PID: pid},
		out: make(chan []byte, 16), gone: make(chan struct{}), calls: make(map[uint64]func(frame)),
	}
	c.running.Go(c.read)
	c.running.Go(c.write)
	return c, nil
}

// hangUp ends the connection and waits for its goroutines.
func (c *conn) hangUp() {
	_ = c.Close()
	c.running.Wait()
}

func (c *conn) read() {
	defer close(c.gone)
	defer c.Close()
	r := bufio.NewReaderSize(c.Conn, 64<<10)
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		c.mu.Lock()
		deliver := c.calls[f.call]
		c.mu.Unlock()
		if deliver != nil {
			deliver(f)
		}
	}
}

func (c *conn) write() {
	for {
		select {
		case b := <-c.out:
			if _, err := c.Write(b); err != nil {
				_ = c.Close()
				return
			}
		case <-c.gone:
			return
		}
	}
}

// begin numbers a call and says who gets its answers.
func (c *conn) begin(deliver func(frame)) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.calls[c.next] = deliver
	return c.next
}

func (c *conn) end(call uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, call)
}

// patience is how long a holder may take to answer one call: one that was stopped
// never does, and who waits for a record to reach the disk waits for nothing else.
// When the run is over that somebody has ended, it gets hurry from then on: that
// somebody waits, too.
var (
	patience = 20 * time.Second
	hurry    = 2 * time.Second
)

// givesUp ends the connection to a holder that takes longer than that for a call
// of ctx.
func (c *conn) givesUp(ctx context.Context) (stop func()) {
	var mu sync.Mutex
	answered := false
	timer := time.AfterFunc(patience, func() { _ = c.Close() })
	calm := func() bool { return true }
	if run := store.RunOf(ctx); run != nil {
		calm = context.AfterFunc(run, func() {
			mu.Lock()
			defer mu.Unlock()
			if !answered {
				timer.Reset(min(hurry, patience))
			}
		})
	}
	return func() {
		calm()
		mu.Lock()
		defer mu.Unlock()
		answered = true
		timer.Stop()
	}
}

// send hands a frame to the writing goroutine.
func (c *conn) send(ctx context.Context, f frame) error {
	defer c.givesUp(ctx)()
	select {
	case c.out <- f.encode():
		return nil
	case <-c.gone:
		return c.lost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cancel tells the other side that nobody waits for a call. It does not wait for
// a side that does not listen.
func (c *conn) cancel(call uint64) {
	c.running.Go(func() { _ = c.send(context.Background(), frame{call: call, kind: kCancel}) })
}

// ask is a call of one question and one answer.
func (c *conn) ask(ctx context.Context, k kind, body []byte) (*reader, error) {
	answers := make(chan frame, 1)
	call := c.begin(func(f frame) {
		select {
		case answers <- f:
		default: // one answer is all there is
		}
	})
	defer c.end(call)
	if err := c.send(ctx, frame{call, k, body}); err != nil {
		return nil, err
	}
	f, err := c.await(ctx, answers)
	if err != nil && ctx.Err() != nil {
		c.cancel(call)
	}
	if err != nil {
		return nil, err
	}
	return opened(f)
}

// await takes the next answer. One that has arrived counts, whatever else has
// happened.
func (c *conn) await(ctx context.Context, answers chan frame) (frame, error) {
	defer c.givesUp(ctx)()
	select {
	case f := <-answers:
		return f, nil
	case <-ctx.Done():
		return frame{}, ctx.Err()
	case <-c.gone:
	}
	select {
	case f := <-answers:
		return f, nil
	default:
		return frame{}, c.lost
	}
}

// opened answers the payload of a frame, or the fault in it.
func opened(f frame) (*reader, error) {
	r := &reader{b: f.body}
	if f.kind == kFault {
		return nil, r.fault()
	}
	return r, nil
}

// grace is how long a cancelled Apply still waits to learn what became of it.
const grace = 2 * time.Second

// apply sends a batch and answers once it is applied. durable gets the second
// answer of a Now.
func (c *conn) apply(ctx context.Context, b *store.Batch, f store.Flush) (durable chan frame, err error) {
	answers := make(chan frame, 2)
	got := 0
	var call uint64
	call = c.begin(func(fr frame) {
		answers <- fr
		if got++; got == 2 || fr.kind == kFault || f != store.Now {
			c.end(call)
		}
	})
	body := putBatch(putInt(newBody(), int64(f)), b)
	if err := c.send(ctx, frame{call, kApply, body}); err != nil {
		c.end(call)
		return nil, err
	}
	fr, err := c.await(ctx, answers)
	if err != nil && errors.Is(err, ctx.Err()) {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer stop()
		if fr, err = c.await(last, answers); err != nil {
			err = fmt.Errorf("%w; the batch may be applied or not: read the head", ctx.Err())
		}
	}
	if err != nil {
		return nil, err
	}
	_, err = opened(fr)
	return answers, err
}
