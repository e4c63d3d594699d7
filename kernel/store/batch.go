package store

import (
	"crypto/sha256"
	"fmt"
)

// MaxName is the longest name of a stream, group or mark, in bytes.
const MaxName = 4096

// MaxBatch is the most that the records, states and blobs of one Batch may hold
// together, in bytes.
const MaxBatch = 1 << 30

// Check answers what is wrong with the form of b: a name that is empty or too
// long, a stream named twice, a parent on a stream that exists, a blob that is
// not what its hash says. Every Store calls it first and writes nothing when it
// answers an error.
func (b *Batch) Check() error {
	seen := make(map[string]struct{}, len(b.Appends))
	for i := range b.Appends {
		a := &b.Appends[i]
		if err := a.check(); err != nil {
			return fmt.Errorf("append %d: %w", i+1, err)
		}
		if _, twice := seen[a.Stream]; twice {
			return fmt.Errorf("append %d: stream %q is in the batch twice, want once", i+1, a.Stream)
		}
		seen[a.Stream] = struct{}{}
	}
	if n := b.size(); n > MaxBatch {
		return fmt.Errorf("batch holds %d bytes, want at most %d; split it, or keep it as files", n, MaxBatch)
	}
	for i := range b.Blobs {
		if got := sha256.Sum256(b.Blobs[i].Data); got != b.Blobs[i].Hash {
			return fmt.Errorf("blob %d: its %d bytes hash to %x, want %x",
				i+1, len(b.Blobs[i].Data), got[:6], b.Blobs[i].Hash[:6])
		}
	}
	return nil
}

func (b *Batch) size() (n int) {
	for i := range b.Appends {
		n += len(b.Appends[i].State)
		for j := range b.Appends[i].Records {
			n += len(b.Appends[i].Records[j].Body)
		}
	}
	for i := range b.Blobs {
		n += len(b.Blobs[i].Data)
	}
	return n
}

func (a *Append) check() error {
	if err := checkName("stream", a.Stream, 1); err != nil {
		return err
	}
	if err := checkName("parent", a.Parent, 0); err != nil {
		return err
	}
	switch {
	case a.Expect < 0:
		return fmt.Errorf("stream %q: expects seq %d, want 0 or more", a.Stream, a.Expect)
	case a.Parent != "" && a.Expect > 0:
		return fmt.Errorf("stream %q: names a parent at seq %d, want it only where the stream is created", a.Stream, a.Expect)
	case a.Parent == a.Stream:
		return fmt.Errorf("stream %q: is its own parent", a.Stream)
	}
	for i := range a.Records {
		if err := checkName("group", a.Records[i].Group, 0); err != nil {
			return fmt.Errorf("stream %q: record %d: %w", a.Stream, i+1, err)
		}
	}
	for _, m := range a.Marks {
		if err := checkName("mark", m, 1); err != nil {
			return fmt.Errorf("stream %q: %w", a.Stream, err)
		}
	}
	return nil
}

func checkName(what, name string, least int) error {
	if n := len(name); n < least || n > MaxName {
		return fmt.Errorf("%s name is %d bytes long, want %d to %d", what, n, least, MaxName)
	}
	return nil
}

// Conflict answers the error of a stream that stands at got where a Batch
// expected want; it matches [ErrConflict].
func Conflict(stream string, got, want int64) error {
	return fmt.Errorf("stream %q: head is %d, want %d: %w", stream, got, want, ErrConflict)
}

// Durable answers the Commit of something that is durable already, or, with an
// err, of something that never will be.
func Durable(err error) Commit { return durable{err} }
