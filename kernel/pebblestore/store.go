package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/knl-run/knl/kernel/store"
)

// Store is an open folder.
type Store struct {
	view // of db
	db   *pebble.DB
	disk *disk
	lock io.Closer // the folder's; nil over a file system that is not the machine's

	// open is held for reading by every call while it touches db, never across
	// a caller's code, and for writing by Close.
	open   sync.RWMutex
	closed bool

	// stripes order the batches of one stream; a batch holds those of all its
	// streams from its check to its commit. What mu and the flusher guard is
	// held for a look only, so that writers of other streams go on meanwhile.
	stripes [64]sync.Mutex
	mu      sync.Mutex // guards streams and the names in it
	streams map[string]position
	flush   flusher
	closes  uint64      // times that this store was closed
	wrote   atomic.Bool // since it was opened
	lost    string      // what a closed store has lost since; "" for nothing

	watch store.Watchers
}

var _ store.Store = (*Store)(nil)

// position is what Apply must know of a stream to append to it, and its head.
type position struct {
	seq    int64
	parent string
	state  []byte   // beside the head; nobody changes the bytes
	group  string   // of the last record that had one and was staged since loading
	names  *names   // nil: ask the database
	groups []string // begun by the batch that is being staged
	marks  []string // named by it
}

// names are all groups and marks of a stream that was created by this Store:
// what is not among them is new, and the database need not be asked, which
// costs more than the rest of a small batch.
type names struct {
	groups, marks map[string]struct{}
}

// maxNames bounds the names of one stream; past it the database is asked again.
const maxNames = 1 << 16

func (n *names) hasGroup(group string) bool {
	if n == nil {
		return false
	}
	_, ok := n.groups[group]
	return ok
}

// settle moves what a written batch has named to what is known.
func (at *position) settle() {
	if n := at.names; n != nil {
		for _, g := range at.groups {
			n.groups[g] = struct{}{}
		}
		for _, m := range at.marks {
			n.marks[m] = struct{}{}
		}
		if len(n.groups)+len(n.marks) > maxNames {
			at.names = nil
		}
	}
	at.groups, at.marks = nil, nil
}

// maxPositions bounds the cache of positions; past it the cache starts anew.
const maxPositions = 4096

// enter opens a call, which ends with s.open.RUnlock.
func (s *Store) enter(ctx context.Context) error {
	s.open.RLock()
	err := ctx.Err()
	if s.closed {
		err = fmt.Errorf("store %q: %w", s.dir, store.ErrClosed)
	}
	if err != nil {
		s.open.RUnlock()
	}
	return err
}

// Fault answers what ended writing, nil while the store takes writes.
func (s *Store) Fault() error {
	fault := s.disk.broken()
	if fault == nil {
		return nil
	}
	return describe(s.dir, fault)
}

// Apply implements [store.Store].
func (s *Store) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.open.RUnlock()
	defer s.lockStreams(b)()
	if err := s.Fault(); err != nil {
		return nil, err
	}
	w := s.db.NewBatch()
	moved, err := s.stage(w, b)
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	commit, err := s.flush.write(w, f)
	if err != nil {
		return nil, s.storage(err)
	}
	if len(moved) > 0 {
		s.wrote.Store(true)
		s.remember(moved)
	}
	s.watch.Moved(b)
	return commit, nil
}

var stripeSeed = maphash.MakeSeed()

// lockStreams takes the stripes of a batch's streams, in order, and answers
// what gives them back.
func (s *Store) lockStreams(b *store.Batch) (unlock func()) {
	var mask uint64
	for i := range b.Appends {
		mask |= 1 << (maphash.String(stripeSeed, b.Appends[i].Stream) % uint64(len(s.stripes)))
	}
	for m := mask; m != 0; m &= m - 1 {
		s.stripes[bits.TrailingZeros64(m)].Lock()
	}
	return func() {
		for m := mask; m != 0; m &= m - 1 {
			s.stripes[bits.TrailingZeros64(m)].Unlock()
		}
	}
}

// stage puts b into w and answers where it leaves the streams it appends to.
func (s *Store) stage(w *pebble.Batch, b *store.Batch) (map[string]position, error) {
	moved := make(map[string]position, len(b.Appends))
	for i := range b.Appends {
		a := &b.Appends[i]
		at, err := s.position(a.Stream)
		if err != nil {
			return nil, err
		}
		if at.seq != a.Expect {
			return nil, store.Conflict(a.Stream, at.seq, a.Expect)
		}
		if len(a.Records) == 0 {
			continue
		}
		if moved[a.Stream], err = s.stageAppend(w, a, at); err != nil {
			return nil, err
		}
	}
	for i := range b.Blobs {
		if err := s.stageBlob(w, &b.Blobs[i]); err != nil {
			return nil, err
		}
	}
	return moved, nil
}

// position answers where a stream stands, from the cache or from its head.
func (s *Store) position(stream string) (position, error) {
	s.mu.Lock()
	at, cached := s.streams[stream]
	s.mu.Unlock()
	if cached {
		return at, nil
	}
	h, err := s.head(stream)
	at = position{seq: h.seq, parent: h.parent, state: h.state}
	if err == nil && h.seq == 0 {
		at.names = &names{map[string]struct{}{}, map[string]struct{}{}}
	}
	return at, err
}

func (s *Store) remember(moved map[string]position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) > maxPositions {
		clear(s.streams)
	}
	for name, at := range moved {
		at.settle()
		s.streams[name] = at
	}
}

// stageAppend writes the records of one stream and everything that P1–P4 ask
// for beside them. A batch takes any key and value, so its Set has no error.
func (s *Store) stageAppend(w *pebble.Batch, a *store.Append, at position) (position, error) {
	if at.seq == 0 && a.Parent != "" {
		at.parent = a.Parent
		_ = w.Set(namedKey(tagChild, a.Parent, a.Stream), nil, nil)
	}
	begun := make(map[string]struct{})
	for i := range a.Records {
		r := &a.Records[i]
		at.seq++
		stageRecord(w, a.Stream, at.seq, r)
		if r.Group == "" || r.Group == at.group {
			continue
		}
		if err := s.stageGroup(w, a.Stream, r.Group, &at, begun); err != nil {
			return at, err
		}
		at.group = r.Group
	}
	row := encodeHead(head{seq: at.seq, parent: at.parent, state: a.State})
	_ = w.Set(headKey(a.Stream), row, nil)
	at.state = row[len(row)-len(a.State):]
	for _, name := range a.Marks {
		_ = w.Set(namedKey(tagMark, a.Stream, name), nil, nil)
	}
	at.marks = a.Marks
	return at, nil
}

// stageRecord encodes into the batch's own memory: a large body is copied once.
func stageRecord(w *pebble.Batch, stream string, seq int64, r *store.Record) {
	key := numberedKey(tagRecord, stream, seq)
	op := w.SetDeferred(len(key), recordSize(r))
	copy(op.Key, key)
	binary.BigEndian.PutUint16(op.Value, uint16(len(r.Group)))
	copy(op.Value[2:], r.Group)
	copy(op.Value[2+len(r.Group):], r.Body)
	_ = op.Finish()
}

// stageGroup enters a group into the index unless it began before, in the store
// or in this batch.
func (s *Store) stageGroup(w *pebble.Batch, stream, group string, at *position, begun map[string]struct{}) error {
	if _, known := begun[group]; known || at.names.hasGroup(group) {
		return nil
	}
	begun[group] = struct{}{}
	at.groups = append(at.groups, group)
	key := namedKey(tagIndex, stream, group)
	if at.names == nil {
		known, err := s.has(key)
		if known || err != nil {
			return err
		}
	}
	_ = w.Set(key, binary.BigEndian.AppendUint64(nil, uint64(at.seq)), nil)
	_ = w.Set(numberedKey(tagGroup, stream, at.seq), []byte(group), nil)
	return nil
}

func (s *Store) stageBlob(w *pebble.Batch, blob *store.Blob) error {
	key := blobKey(blob.Hash)
	kept, err := s.has(key)
	if kept || err != nil {
		return err
	}
	_ = w.Set(key, blob.Data, nil)
	return nil
}

// Watch implements [store.Store].
func (s *Store) Watch(ctx context.Context, stream string) <-chan struct{} {
	return s.watch.Watch(ctx, stream)
}

// Compact rewrites the folder to its smallest form.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.open.RUnlock()
	if err := s.Fault(); err != nil {
		return err
	}
	return s.storage(s.db.Compact(ctx, []byte{0}, []byte{0xff}, false))
}

// Close implements [store.Store]. It waits for the disk; what it answers is the
// fault that ended writing, if one did.
func (s *Store) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.watch.Close()
	err := s.countClose()
	s.flush.land()
	err = errors.Join(err, s.db.Close())
	if err == nil && s.wrote.Load() && s.Fault() == nil {
		err = s.noteClose()
	}
	if fault := s.Fault(); fault != nil && !errors.Is(fault, errReadOnly) {
		err = fault
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
