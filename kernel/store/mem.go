package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Mem is a Store in memory. What it applied is as durable as it ever gets, so
// its Commits are done at once. It is the reference that others are held
// against.
type Mem struct {
	mu      sync.RWMutex
	streams map[string]*memStream
	blobs   map[[32]byte][]byte
	closed  bool
	watch   Watchers
}

// memStream is one stream. Records and groups only grow, so a slice taken under
// the lock stays right after it.
type memStream struct {
	parent  string
	state   []byte
	records []Record
	groups  []Group
	first   map[string]int64 // group → seq of its first record
	marks   map[string]struct{}
}

// NewMem answers an empty store.
func NewMem() *Mem {
	return &Mem{streams: make(map[string]*memStream), blobs: make(map[[32]byte][]byte)}
}

// Apply implements [Store].
func (m *Mem) Apply(ctx context.Context, b *Batch, _ Flush) (Commit, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	for i := range b.Appends {
		a := &b.Appends[i]
		if got := m.streams[a.Stream].seq(); got != a.Expect {
			return nil, Conflict(a.Stream, got, a.Expect)
		}
	}
	for i := range b.Appends {
		if len(b.Appends[i].Records) > 0 {
			m.append(&b.Appends[i])
		}
	}
	for i := range b.Blobs {
		if _, kept := m.blobs[b.Blobs[i].Hash]; !kept {
			m.blobs[b.Blobs[i].Hash] = bytes.Clone(b.Blobs[i].Data)
		}
	}
	m.watch.Moved(b)
	return Durable(nil), nil
}

func (m *Mem) append(a *Append) {
	s := m.streams[a.Stream]
	if s == nil {
		s = &memStream{parent: a.Parent, first: make(map[string]int64), marks: make(map[string]struct{})}
		m.streams[a.Stream] = s
	}
	for i := range a.Records {
		s.add(&a.Records[i])
	}
	s.state = bytes.Clone(a.State)
	for _, name := range a.Marks {
		s.marks[name] = struct{}{}
	}
}

func (s *memStream) add(r *Record) {
	seq := s.seq() + 1
	s.records = append(s.records, Record{Seq: seq, Group: r.Group, Body: bytes.Clone(r.Body)})
	if _, known := s.first[r.Group]; !known && r.Group != "" {
		s.first[r.Group] = seq
		s.groups = append(s.groups, Group{ID: r.Group, First: seq})
	}
}

func (s *memStream) seq() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s.records))
}

func (s *memStream) head() Head {
	if s == nil {
		return Head{}
	}
	return Head{Seq: s.seq(), State: bytes.Clone(s.state)}
}

// usable is asked under the lock.
func (m *Mem) usable(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// read runs fn under the read lock with the named stream, nil when there is none.
func (m *Mem) read(ctx context.Context, stream string, fn func(*memStream)) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	fn(m.streams[stream])
	return nil
}

// Head implements [Store].
func (m *Mem) Head(ctx context.Context, stream string) (h Head, err error) {
	err = m.read(ctx, stream, func(s *memStream) { h = s.head() })
	return h, err
}

// Records implements [Store].
func (m *Mem) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var rows []Record
		err := m.read(ctx, stream, func(s *memStream) {
			if s != nil {
				rows = between(s.records, from, to)
			}
		})
		for i := 0; i < len(rows) && err == nil; i++ {
			r := rows[i]
			r.Body = bytes.Clone(r.Body)
			if !yield(r, nil) {
				return
			}
			err = m.read(ctx, "", func(*memStream) {})
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// between cuts the records from ≤ seq ≤ to out of a dense slice; to 0 is the end.
func between(rows []Record, from, to int64) []Record {
	from = max(from, 1)
	if n := int64(len(rows)); to <= 0 || to > n {
		to = n
	}
	if from > to {
		return nil
	}
	return rows[from-1 : to]
}

// Groups implements [Store].
func (m *Mem) Groups(ctx context.Context, stream string, n int) (groups []Group, err error) {
	err = m.read(ctx, stream, func(s *memStream) {
		if s == nil {
			return
		}
		groups = s.groups
		if n > 0 && n < len(groups) {
			groups = groups[len(groups)-n:]
		}
		groups = slices.Clone(groups)
	})
	return groups, err
}

// FindGroup implements [Store].
func (m *Mem) FindGroup(ctx context.Context, stream, group string) (seq int64, err error) {
	err = m.read(ctx, stream, func(s *memStream) {
		if s != nil {
			seq = s.first[group]
		}
	})
	if err == nil && seq == 0 {
		err = fmt.Errorf("stream %q: group %q: %w", stream, group, ErrNotFound)
	}
	return seq, err
}

// Marked implements [Store].
func (m *Mem) Marked(ctx context.Context, stream, name string) (taken bool, err error) {
	err = m.read(ctx, stream, func(s *memStream) {
		if s != nil {
			_, taken = s.marks[name]
		}
	})
	return taken, err
}

// Blob implements [Store].
func (m *Mem) Blob(ctx context.Context, hash [32]byte) (data []byte, err error) {
	kept := false
	err = m.read(ctx, "", func(*memStream) { data, kept = m.blobs[hash] })
	if err == nil && !kept {
		err = fmt.Errorf("blob %x: %w", hash[:6], ErrNotFound)
	}
	return bytes.Clone(data), err
}

// Streams implements [Store].
func (m *Mem) Streams(ctx context.Context, after string, limit int) (rows []StreamInfo, err error) {
	err = m.read(ctx, "", func(*memStream) {
		for name, s := range m.streams {
			if name > after {
				rows = append(rows, StreamInfo{Stream: name, Head: s.head()})
			}
		}
	})
	slices.SortFunc(rows, func(a, b StreamInfo) int { return cmp.Compare(a.Stream, b.Stream) })
	if limit > 0 && limit < len(rows) {
		rows = rows[:limit]
	}
	return rows, err
}

// Children implements [Store].
func (m *Mem) Children(ctx context.Context, parent string) (names []string, err error) {
	err = m.read(ctx, "", func(*memStream) {
		for _, name := range slices.Sorted(maps.Keys(m.streams)) {
			if m.streams[name].parent == parent && parent != "" {
				names = append(names, name)
			}
		}
	})
	return names, err
}

// Watch implements [Store].
func (m *Mem) Watch(ctx context.Context, stream string) <-chan struct{} {
	return m.watch.Watch(ctx, stream)
}

// Close implements [Store].
func (m *Mem) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.watch.Close()
	return nil
}

// durable is the Commit of what is settled.
type durable struct{ err error }

func (d durable) Wait(context.Context) error { return d.err }
