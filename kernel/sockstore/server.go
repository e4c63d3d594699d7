package sockstore

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel/store"
)

// Server answers calls on a socket out of a store.
type Server struct {
	st      store.Store
	ln      net.Listener
	cleanup func()
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Serve makes the socket at path and answers on it out of st until ctx ends or
// Close is called. Only who holds the store may serve it.
func Serve(ctx context.Context, st store.Store, path string) (*Server, error) {
	ln, cleanup, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("socket %q: %w", path, err)
	}
	s := &Server{st: st, ln: ln, cleanup: cleanup}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.running.Go(s.accept)
	s.running.Go(func() {
		<-s.ctx.Done()
		_ = ln.Close()
	})
	return s, nil
}

// Close reads no more calls, answers those that it has read, hangs up on every
// client and removes the socket. The store stays open.
func (s *Server) Close() error {
	s.cancel()
	s.running.Wait()
	s.cleanup()
	return nil
}

func (s *Server) accept() {
	for s.ctx.Err() == nil {
		conn, err := s.ln.Accept()
		if err != nil {
			// Too many open files, say: it passes, and a closed listener ends it.
			select {
			case <-s.ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		s.running.Go(func() { s.attend(conn) })
	}
}

// parting is how long a client may take to read what it is still owed.
const parting = 2 * time.Second

// attend serves one connection to its end. When the server closes, what was read
// is answered before the connection is: so a client knows of each call whether it
// had an effect.
func (s *Server) attend(conn net.Conn) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	defer conn.Close()
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // frees who reads or writes
	defer context.AfterFunc(s.ctx, func() {
		_ = conn.SetReadDeadline(time.Now())
		_ = conn.SetWriteDeadline(time.Now().Add(parting))
	})()
	if _, err := greet(conn, helloTime); err != nil {
		return
	}
	l := &line{
		st: s.st, ctx: ctx, cancel: cancel, serving: s.ctx,
		out: make(chan []byte, 16), slots: make(chan struct{}, maxCalls), watches: make(chan struct{}, maxWatches),
		calls: make(map[uint64]context.CancelFunc),
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write(conn)
	}()
	l.read(bufio.NewReaderSize(conn, 64<<10))
	if s.ctx.Err() == nil { // it is the client that ended it
		cancel()
	}
	l.running.Wait()
	close(l.out)
	<-written
}

// What one connection may have open at a time. Beyond maxCalls it is not read
// from; beyond maxWatches it is told so.
const (
	maxCalls   = 128
	maxWatches = 4096
)

// line is one connection. A client that does not read fills out, then its
// calls' goroutines wait, then read waits: nothing outside the line does (W2).
type line struct {
	st      store.Store
	ctx     context.Context // of the connection
	cancel  context.CancelFunc
	serving context.Context // ends when the server closes; watches end with it
	out     chan []byte
	slots   chan struct{}
	watches chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	calls map[uint64]context.CancelFunc

	applying sync.Mutex   // keeps last in the order of the store (W3)
	last     store.Commit // of the latest apply
}

func (l *line) write(conn net.Conn) {
	for {
		select {
		case b, more := <-l.out:
			if !more {
				return
			}
			if _, err := conn.Write(b); err != nil {
				l.cancel()
				return
			}
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *line) send(f frame) {
	select {
	case l.out <- f.encode():
	case <-l.ctx.Done():
	}
}

// read starts every call that arrives whole, until something does not.
func (l *line) read(r *bufio.Reader) {
	for {
		f, err := readFrame(r)
		if err != nil || f.kind == 0 || f.kind > kCancel {
			return
		}
		if f.kind == kCancel {
			l.end(f.call)
			continue
		}
		room := l.slots
		if f.kind == kWatch {
			room = l.watches
		}
		if !l.admit(room, f) {
			continue
		}
		ctx := l.begin(f.call)
		l.running.Go(func() {
			defer func() { l.end(f.call); <-room }()
			l.call(ctx, f)
		})
	}
}

// admit takes a place for a call; calls wait for one, watches do not.
func (l *line) admit(room chan struct{}, f frame) bool {
	if f.kind == kWatch {
		select {
		case room <- struct{}{}:
			return true
		default:
			err := fmt.Errorf("connection has %d watches, want no more: %w", maxWatches, store.ErrBusy)
			l.send(frame{f.call, kFault, putFault(newBody(), err)})
			return false
		}
	}
	select {
	case room <- struct{}{}:
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *line) begin(call uint64) context.Context {
	ctx, cancel := context.WithCancel(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[call] = cancel
	return ctx
}

func (l *line) end(call uint64) {
	l.mu.Lock()
	cancel := l.calls[call]
	delete(l.calls, call)
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// call runs one call and sends what it answers.
func (l *line) call(ctx context.Context, f frame) {
	r := &reader{b: f.body}
	switch f.kind {
	case kApply:
		l.apply(ctx, f.call, r)
		return
	case kWatch:
		l.watch(ctx, f.call, r)
		return
	}
	body, err := l.answer(ctx, f.kind, r)
	l.reply(f.call, kAnswer, body, err)
}

func (l *line) reply(call uint64, k kind, body []byte, err error) {
	if err != nil {
		k, body = kFault, putFault(newBody(), err)
	}
	l.send(frame{call, k, body})
}

// apply answers when the batch is applied, and for a Now again when it is
// durable.
func (l *line) apply(ctx context.Context, call uint64, r *reader) {
	f, b := store.Flush(r.int()), r.batch()
	if err := r.done(); err != nil {
		l.reply(call, kAnswer, nil, err)
		return
	}
	l.applying.Lock()
	c, err := l.st.Apply(ctx, b, f)
	if err == nil {
		l.last = c
	}
	l.applying.Unlock()
	l.reply(call, kAnswer, nil, err)
	if err == nil && f == store.Now {
		l.reply(call, kDurable, nil, c.Wait(l.ctx))
	}
}

// watch sends tokens until the watch ends. The channel is taken before the
// answer, so that the client's next read comes after it.
func (l *line) watch(ctx context.Context, call uint64, r *reader) {
	stream := r.text()
	if err := r.done(); err != nil {
		l.reply(call, kAnswer, nil, err)
		return
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(l.serving, end)()
	tokens := l.st.Watch(ctx, stream)
	l.send(frame{call: call, kind: kAnswer})
	for range tokens {
		l.send(frame{call: call, kind: kToken})
	}
	l.send(frame{call: call, kind: kEnd})
}
