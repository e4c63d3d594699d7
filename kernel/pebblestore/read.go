package pebblestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/knl-run/knl/kernel/store"
)

// view reads keys: of the database as it stands, or of a snapshot of it.
type view struct {
	from pebble.Reader
	dir  string
}

// storage says where a fault of the database happened and, when bytes are
// damaged, says that in the words of package store.
func (w view) storage(err error) error {
	if err == nil {
		return nil
	}
	return describe(w.dir, err)
}

// value hands fn the bytes under key, which are fn's only until it returns.
func (w view) value(key []byte, fn func([]byte) error) (found bool, err error) {
	v, done, err := w.from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, w.storage(err)
	}
	err = fn(v)
	return true, errors.Join(err, w.storage(done.Close()))
}

func (w view) has(key []byte) (bool, error) {
	return w.value(key, func([]byte) error { return nil })
}

// head reads a stream's head; its seq is 0 when there is none.
func (w view) head(stream string) (h head, err error) {
	_, err = w.value(headKey(stream), func(v []byte) error {
		h, err = decodeHead(stream, v)
		h.state = bytes.Clone(h.state)
		return err
	})
	return h, err
}

// walk calls fn with each key and value in [lower, upper), in order, until fn
// answers false or an error.
func (w view) walk(ctx context.Context, lower, upper []byte, fn func(k, v []byte) (bool, error)) error {
	return w.scan(lower, upper, (*pebble.Iterator).First, (*pebble.Iterator).Next, func(k, v []byte) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return fn(k, v)
	})
}

type step func(*pebble.Iterator) bool

func (w view) scan(lower, upper []byte, start, next step, fn func(k, v []byte) (bool, error)) error {
	it, err := w.from.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return w.storage(err)
	}
	more := start(it)
	for more && err == nil {
		var v []byte
		if v, err = it.ValueAndErr(); err != nil {
			break
		}
		if more, err = fn(it.Key(), v); more && err == nil {
			more = next(it)
		}
	}
	// An iterator repeats its own fault at Close.
	if closing := it.Close(); err == nil || errors.Is(closing, err) {
		err = w.storage(closing)
	}
	return err
}

// Head implements [store.Store]. A beat asks several times; what this Store
// wrote last it still knows.
func (s *Store) Head(ctx context.Context, stream string) (store.Head, error) {
	if err := s.enter(ctx); err != nil {
		return store.Head{}, err
	}
	defer s.open.RUnlock()
	s.mu.Lock()
	at, cached := s.streams[stream]
	s.mu.Unlock()
	if cached {
		return store.Head{Seq: at.seq, State: bytes.Clone(at.state)}, nil
	}
	h, err := s.head(stream)
	return store.Head{Seq: h.seq, State: h.state}, err
}

// How much Records reads at once: pages grow, so that a short read stays cheap.
const (
	firstPage = 32
	lastPage  = 1024
	pageBytes = 1 << 20
)

// Records implements [store.Store]. It reads in pages and holds nothing while
// the caller looks at one; records never change, so the pages of a stream that
// grows meanwhile fit together.
func (s *Store) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		h, err := s.Head(ctx, stream)
		if to <= 0 || to > h.Seq {
			to = h.Seq
		}
		rows := firstPage
		for next := max(from, 1); err == nil && next <= to; {
			var page []store.Record
			if page, err = s.page(ctx, stream, next, min(to, next+int64(rows)-1)); err != nil {
				break
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			next += int64(len(page))
			rows = min(2*rows, lastPage)
		}
		if err != nil {
			yield(store.Record{}, err)
		}
	}
}

// page reads the records from ≤ seq ≤ to, fewer when they are large, at least
// one. All of them exist (P1): a gap is damage.
func (s *Store) page(ctx context.Context, stream string, from, to int64) ([]store.Record, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.open.RUnlock()
	rows := make([]store.Record, 0, to-from+1)
	prefix := owned(tagRecord, stream, 0)
	next, size := from, 0
	err := s.walk(ctx, numberedKey(tagRecord, stream, from), numberedKey(tagRecord, stream, to+1), func(k, v []byte) (bool, error) {
		if seq, ok := cutNumber(k[len(prefix):]); !ok || seq != next {
			return false, damaged("stream %q: record %d is missing", stream, next)
		}
		r, err := decodeRecord(stream, next, bytes.Clone(v))
		if err != nil {
			return false, err
		}
		rows = append(rows, r)
		next++
		size += len(v)
		return size < pageBytes, nil
	})
	if err == nil && next <= to && size < pageBytes {
		err = damaged("stream %q: record %d is missing", stream, next)
	}
	return rows, err
}

// Groups implements [store.Store].
func (s *Store) Groups(ctx context.Context, stream string, n int) ([]store.Group, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.open.RUnlock()
	var groups []store.Group
	prefix := owned(tagGroup, stream, 0)
	err := s.scan(prefix, after(prefix), (*pebble.Iterator).Last, (*pebble.Iterator).Prev, func(k, v []byte) (bool, error) {
		first, ok := cutNumber(k[len(prefix):])
		if !ok {
			return false, damaged("stream %q: key %x in its group index does not read", stream, k)
		}
		groups = append(groups, store.Group{ID: string(v), First: first})
		return n <= 0 || len(groups) < n, ctx.Err()
	})
	slices.Reverse(groups)
	return groups, err
}

// FindGroup implements [store.Store].
func (s *Store) FindGroup(ctx context.Context, stream, group string) (first int64, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.open.RUnlock()
	found, err := s.value(namedKey(tagIndex, stream, group), func(v []byte) error {
		var ok bool
		if first, ok = cutNumber(v); !ok {
			return damaged("stream %q: group %q: index entry of %d bytes, want 8", stream, group, len(v))
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("stream %q: group %q: %w", stream, group, store.ErrNotFound)
	}
	return first, err
}

// Marked implements [store.Store].
func (s *Store) Marked(ctx context.Context, stream, name string) (bool, error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.open.RUnlock()
	if taken, known := s.takenName(stream, name); known {
		return taken, nil
	}
	return s.has(namedKey(tagMark, stream, name))
}

// takenName answers from memory whether a mark is there, when memory has all.
func (s *Store) takenName(stream, name string) (taken, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.streams[stream]
	if at.names == nil {
		return false, false
	}
	_, taken = at.names.marks[name]
	return taken, true
}

// Blob implements [store.Store].
func (s *Store) Blob(ctx context.Context, hash [32]byte) (data []byte, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.open.RUnlock()
	found, err := s.value(blobKey(hash), func(v []byte) error {
		if sha256.Sum256(v) != hash {
			return damaged("blob %x: its %d bytes hash to something else", hash[:6], len(v))
		}
		data = append([]byte{}, v...)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("blob %x: %w", hash[:6], store.ErrNotFound)
	}
	return data, err
}

// Streams implements [store.Store].
func (s *Store) Streams(ctx context.Context, from string, limit int) ([]store.StreamInfo, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.open.RUnlock()
	var rows []store.StreamInfo
	err := s.walk(ctx, append(headKey(from), 0), after(headKey("")), func(k, v []byte) (bool, error) {
		name := string(k[1:])
		h, err := decodeHead(name, bytes.Clone(v))
		rows = append(rows, store.StreamInfo{Stream: name, Head: store.Head{Seq: h.seq, State: h.state}})
		return limit <= 0 || len(rows) < limit, err
	})
	return rows, err
}

// Children implements [store.Store].
func (s *Store) Children(ctx context.Context, parent string) ([]string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.open.RUnlock()
	var names []string
	prefix := owned(tagChild, parent, 0)
	err := s.walk(ctx, prefix, after(prefix), func(k, _ []byte) (bool, error) {
		names = append(names, string(k[len(prefix):]))
		return true, nil
	})
	return names, err
}
