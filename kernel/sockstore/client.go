package sockstore

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/knl-run/knl/kernel/store"
)

// client is a store in another process.
type client struct {
	c *conn

	mu      sync.Mutex
	closed  bool
	applied bool  // something was
	settled error // what became of all that was applied; set by Close
}

// Dial answers the store that is served at path. Its Close ends the connection
// and leaves the holder alone. Errors: nobody listens, does not answer in time,
// or speaks another version.
func Dial(path string) (store.Store, error) { return dialWithin(path, helloTime) }

func dialWithin(path string, wait time.Duration) (store.Store, error) {
	c, err := dial(path, wait)
	if err != nil {
		return nil, err
	}
	return &client{c: c}, nil
}

func (s *client) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("store %q: %w", s.c.lost.Dir, store.ErrClosed)
	}
	return nil
}

func (s *client) ask(ctx context.Context, k kind, body []byte) (*reader, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	return s.c.ask(ctx, k, body)
}

// Apply implements [store.Store].
func (s *client) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	durable, err := s.c.apply(ctx, b, f)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.applied = true
	s.mu.Unlock()
	return &commit{s: s, now: f == store.Now, durable: durable}, nil
}

// commit is a batch that another process applied.
type commit struct {
	s       *client
	now     bool
	durable chan frame // the second answer of a Now

	mu   sync.Mutex
	done bool
	err  error
}

// Wait implements [store.Commit].
func (m *commit) Wait(ctx context.Context) error {
	if err, done := m.known(); done {
		return err
	}
	var err error
	if m.now {
		var f frame
		if f, err = m.s.c.await(ctx, m.durable); err == nil {
			m.durable <- f // for whoever else waits
			_, err = opened(f)
		}
	} else {
		_, err = m.s.c.ask(ctx, kWait, nil)
	}
	return m.settle(ctx, err)
}

func (m *commit) known() (error, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err, m.done
}

// settle keeps an answer that will not change. When the connection ended by
// Close, what Close learned is the answer.
func (m *commit) settle(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return err
	}
	m.s.mu.Lock()
	if m.s.closed && err == error(m.s.c.lost) {
		err = m.s.settled
	}
	m.s.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.done {
		m.done, m.err = true, err
	}
	return m.err
}

// Head implements [store.Store].
func (s *client) Head(ctx context.Context, stream string) (store.Head, error) {
	r, err := s.ask(ctx, kHead, putText(newBody(), stream))
	if err != nil {
		return store.Head{}, err
	}
	return r.head(), r.done()
}

// Records implements [store.Store], a page a call.
func (s *client) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		next := max(from, 1)
		for {
			rows, end, err := s.page(ctx, stream, next, to)
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for i := range rows {
				if err := s.usable(ctx); err != nil {
					yield(store.Record{}, err)
					return
				}
				if !yield(rows[i], nil) {
					return
				}
			}
			if next += int64(len(rows)); next > end || len(rows) == 0 {
				return
			}
			to = end
		}
	}
}

func (s *client) page(ctx context.Context, stream string, from, to int64) (rows []store.Record, end int64, err error) {
	r, err := s.ask(ctx, kPage, putInt(putInt(putText(newBody(), stream), from), to))
	if err != nil {
		return nil, 0, err
	}
	end, rows = r.int(), r.records()
	return rows, end, r.done()
}

// Groups implements [store.Store].
func (s *client) Groups(ctx context.Context, stream string, n int) (rows []store.Group, err error) {
	r, err := s.ask(ctx, kGroups, putInt(putText(newBody(), stream), int64(n)))
	if err != nil {
		return nil, err
	}
	r.list(func() { rows = append(rows, store.Group{ID: r.text(), First: r.int()}) })
	return rows, r.done()
}

// FindGroup implements [store.Store].
func (s *client) FindGroup(ctx context.Context, stream, group string) (int64, error) {
	r, err := s.ask(ctx, kFindGroup, putText(putText(newBody(), stream), group))
	if err != nil {
		return 0, err
	}
	return r.int(), r.done()
}

// Marked implements [store.Store].
func (s *client) Marked(ctx context.Context, stream, name string) (bool, error) {
	r, err := s.ask(ctx, kMarked, putText(putText(newBody(), stream), name))
	if err != nil {
		return false, err
	}
	return r.int() == 1, r.done()
}

// Blob implements [store.Store].
func (s *client) Blob(ctx context.Context, hash [32]byte) ([]byte, error) {
	r, err := s.ask(ctx, kBlob, putHash(newBody(), hash))
	if err != nil {
		return nil, err
	}
	return r.bytes(), r.done()
}

// streamsPage bounds what one frame lists.
const streamsPage = 1000

// Streams implements [store.Store], a page a call.
func (s *client) Streams(ctx context.Context, after string, limit int) (rows []store.StreamInfo, err error) {
	for limit <= 0 || len(rows) < limit {
		n := streamsPage
		if limit > 0 {
			n = min(n, limit-len(rows))
		}
		r, err := s.ask(ctx, kStreams, putInt(putText(newBody(), after), int64(n)))
		if err != nil {
			return nil, err
		}
		had := len(rows)
		r.list(func() { rows = append(rows, store.StreamInfo{Stream: r.text(), Head: r.head()}) })
		if err := r.done(); err != nil {
			return nil, err
		}
		if len(rows)-had < n {
			break
		}
		after = rows[len(rows)-1].Stream
	}
	return rows, nil
}

// Children implements [store.Store].
func (s *client) Children(ctx context.Context, parent string) (names []string, err error) {
	r, err := s.ask(ctx, kChildren, putText(newBody(), parent))
	if err != nil {
		return nil, err
	}
	r.list(func() { names = append(names, r.text()) })
	return names, r.done()
}

// settleTime bounds the wait of Close for a holder that does not answer.
const settleTime = 10 * time.Second

// Close implements [store.Store]: it waits for what this side applied and hangs
// up.
func (s *client) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	applied := s.applied
	s.mu.Unlock()
	var err error
	if applied {
		ctx, stop := context.WithTimeout(context.Background(), settleTime)
		defer stop()
		_, err = s.c.ask(ctx, kWait, nil)
		s.mu.Lock()
		s.settled = err
		s.mu.Unlock()
	}
	s.c.hangUp()
	return err
}
