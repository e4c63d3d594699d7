// Package store declares what the kernel asks of a place that keeps sessions,
// and ships one that keeps them in memory.
//
// A store is a set of streams. A stream is a dense sequence of records
// numbered from 1, plus one head: the number of the last record and a small
// opaque state that the kernel folds from the records and lays beside them, so
// that opening a session does not read its whole log. A store does not know
// what a record means; it knows order, atomicity and durability.
//
// # What a store promises
//
//	S1 atomic   a [Batch] is applied whole or not at all, also across a crash
//	S2 fenced   a Batch is applied only if every stream it names stands where
//	            the Batch expects it; else [ErrConflict] and nothing is written
//	S3 dense    the records of a stream are 1…Head.Seq, without a gap
//	S4 ordered  if the Commit of b is durable, so is every Commit of this
//	            process that Apply returned before b's
//	S5 visible  what Apply returned is seen by every later read of this store,
//	            durable or not
//	S6 once     a blob is kept once, whatever the number of batches naming it
//
// # The caller's contract
//
//  1. Read a stream's Head, decide, and Apply a Batch that names that Head as
//     the expectation. On ErrConflict read again and decide again.
//  2. Before anything that depends on a Batch leaves the process, Wait for its
//     Commit. By S4 waiting for the last one is enough.
//  3. A stream read while it grows is read up to where it stood at the call.
//     Watch first, read, then wait for a token: nothing is missed.
//  4. Close waits for what was applied. After it every call answers
//     [ErrClosed]; another Close does nothing.
//
// # Bad input
//
// The form of a Batch is checked by [Batch].Check in every implementation, so
// the same mistake has the same text everywhere, and nothing is written.
//
// Every implementation passes storetest.Run.
package store

import (
	"context"
	"errors"
	"iter"
)

// Errors that a Store answers, to be matched with errors.Is. Whatever else an
// implementation answers is a storage fault.
var (
	// ErrConflict says that a stream does not stand where the Batch expected it.
	ErrConflict = errors.New("stream moved")
	// ErrNotFound says that there is no such stream or blob.
	ErrNotFound = errors.New("not found")
	// ErrCorrupt says that a stored byte is not what was written.
	ErrCorrupt = errors.New("stored bytes are damaged")
	// ErrBusy says that the store is held elsewhere or overloaded; asking again may help.
	ErrBusy = errors.New("store is busy")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store is closed")
)

// Head is where a stream stands.
type Head struct {
	Seq   int64  // number of the last record; 0 when the stream does not exist
	State []byte // what the kernel folded from records 1…Seq; opaque here
}

// Record is one entry of a stream.
type Record struct {
	Seq   int64  // set by the reader; Apply derives it from the expectation
	Group string // the beat it belongs to; "" for none
	Body  []byte // opaque here
}

// Append is the part of a Batch that touches one stream.
type Append struct {
	Stream string
	Expect int64  // the Head.Seq it was decided on; 0 creates the stream
	Parent string // on creation only: lists Stream among Parent's children
	// Records become Expect+1, Expect+2, …. May be empty: then only the
	// expectation is checked and nothing else of the Append is written.
	Records []Record
	State   []byte   // the new Head.State
	Marks   []string // names now taken within the stream (call ids); see Marked
}

// Blob is a payload kept once under its content hash.
type Blob struct {
	Hash [32]byte // SHA-256 of Data
	Data []byte
}

// Batch is one atomic write. A stream appears in it at most once.
type Batch struct {
	Appends []Append
	Blobs   []Blob
}

// Flush says when the bytes of a Batch start on their way to the disk.
type Flush int

const (
	// Now starts the flush at once; Commit.Wait waits for it.
	Now Flush = iota
	// Lazy leaves the flush to the next Now, to Commit.Wait, or to the store's
	// own timer (a few milliseconds), whichever comes first.
	Lazy
)

// Commit is an applied Batch on its way to the disk. The Commit of a Batch
// without records stands for all that was applied before it (S4).
type Commit interface {
	// Wait answers when the Batch is durable, or why it cannot become so. It may
	// be called any number of times, from any goroutine, or never, also after
	// the store was closed.
	Wait(ctx context.Context) error
}

// StreamInfo is one row of a listing.
type StreamInfo struct {
	Stream string
	Head   Head
}

// Store keeps streams. All methods may be called from any goroutine. Byte
// slices handed in are not kept and byte slices handed out are the caller's.
type Store interface {
	// Apply writes b (S1, S2). Errors: ErrConflict, ErrBusy, ErrClosed, or a
	// storage fault, after which nothing of b is visible.
	Apply(ctx context.Context, b *Batch, f Flush) (Commit, error)
	// Head answers where stream stands; a stream that does not exist has Seq 0
	// and no error.
	Head(ctx context.Context, stream string) (Head, error)
	// Records reads from ≤ seq ≤ to in order; to 0 means the end. A fault is
	// yielded once, with a zero Record, and ends the sequence.
	Records(ctx context.Context, stream string, from, to int64) iter.Seq2[Record, error]
	// Groups answers the last n groups of a stream, oldest first, each with the
	// seq of its first record; n ≤ 0 means all.
	Groups(ctx context.Context, stream string, n int) ([]Group, error)
	// FindGroup answers the seq of the first record of a group, or ErrNotFound.
	FindGroup(ctx context.Context, stream, group string) (int64, error)
	// Marked says whether name was put among a stream's Marks.
	Marked(ctx context.Context, stream, name string) (bool, error)
	// Blob answers the payload under hash, verified, or ErrNotFound.
	Blob(ctx context.Context, hash [32]byte) ([]byte, error)
	// Streams lists streams in order of name, those after the given one, at most
	// limit; limit ≤ 0 means all.
	Streams(ctx context.Context, after string, limit int) ([]StreamInfo, error)
	// Children lists the streams created with this parent, in order of name.
	Children(ctx context.Context, parent string) ([]string, error)
	// Watch answers a channel that receives a token, coalesced, after stream
	// moved; the channel closes when ctx ends or the store closes.
	Watch(ctx context.Context, stream string) <-chan struct{}
	// Close flushes and releases the store.
	Close() error
}

// Group is one row of a stream's group index.
type Group struct {
	ID    string
	First int64 // seq of its first record
}
