package sockstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/knl-run/knl/kernel/store"
)

// kind says what a frame is.
type kind byte

const (
	kApply kind = iota + 1
	kWait
	kHead
	kPage
	kGroups
	kFindGroup
	kMarked
	kBlob
	kStreams
	kChildren
	kWatch
	kCancel

	kAnswer
	kFault
	kDurable
	kToken
	kEnd
)

// maxFrame leaves room for the names of a batch that is as large as one may be.
const maxFrame = store.MaxBatch + 64<<20

// headerSize is the call and the kind.
const headerSize = 8 + 1

// frame is one message.
type frame struct {
	call uint64
	kind kind
	body []byte
}

// encode answers the bytes of a frame. body was made by newBody.
func (f frame) encode() []byte {
	b := f.body
	if b == nil {
		b = newBody()
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	binary.BigEndian.PutUint64(b[4:], f.call)
	b[12] = byte(f.kind)
	return b
}

// newBody answers an empty payload behind room for the frame's own fields.
func newBody() []byte { return make([]byte, 4+headerSize, 128) }

func readFrame(r io.Reader) (frame, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < headerSize || n > maxFrame {
		return frame{}, fmt.Errorf("frame of %d bytes, want %d to %d", n, headerSize, maxFrame)
	}
	// The buffer grows with what arrives: a length alone takes no memory.
	var buf bytes.Buffer
	buf.Grow(int(min(n, 64<<10)))
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		return frame{}, fmt.Errorf("frame of %d bytes cut short: %w", n, err)
	}
	b := buf.Bytes()
	return frame{call: binary.BigEndian.Uint64(b), kind: kind(b[8]), body: b[headerSize:]}, nil
}

func putInt(b []byte, n int64) []byte     { return binary.AppendVarint(b, n) }
func putBytes(b, v []byte) []byte         { return append(binary.AppendUvarint(b, uint64(len(v))), v...) }
func putText(b []byte, s string) []byte   { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
func putHash(b []byte, h [32]byte) []byte { return append(b, h[:]...) }

// reader takes a payload apart. After the first thing that does not read, all
// the rest read as zero; done says so.
type reader struct {
	b   []byte
	bad bool
}

var errPayload = errors.New("payload does not read; want one of this version")

func (r *reader) done() error {
	if r.bad || len(r.b) > 0 {
		return errPayload
	}
	return nil
}

func (r *reader) int() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

// take answers the next n bytes, as the reader's caller's own.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.bad, r.b = true, nil
		return nil
	}
	r.b = r.b[size:]
	return r.take(n)
}

func (r *reader) text() string { return string(r.bytes()) }

func (r *reader) hash() (h [32]byte) {
	copy(h[:], r.take(32))
	return h
}

// list calls one n times, n being the next number, while there is something to
// read.
func (r *reader) list(one func()) {
	for n := r.int(); n > 0 && !r.bad; n-- {
		one()
	}
}

func putBatch(b []byte, batch *store.Batch) []byte {
	b = putInt(b, int64(len(batch.Appends)))
	for i := range batch.Appends {
		b = putAppend(b, &batch.Appends[i])
	}
	b = putInt(b, int64(len(batch.Blobs)))
	for i := range batch.Blobs {
		b = putBytes(putHash(b, batch.Blobs[i].Hash), batch.Blobs[i].Data)
	}
	return b
}

func (r *reader) batch() *store.Batch {
	b := &store.Batch{}
	r.list(func() { b.Appends = append(b.Appends, r.append()) })
	r.list(func() { b.Blobs = append(b.Blobs, store.Blob{Hash: r.hash(), Data: r.bytes()}) })
	return b
}

func putAppend(b []byte, a *store.Append) []byte {
	b = putText(putInt(putText(b, a.Stream), a.Expect), a.Parent)
	b = putBytes(putRecords(b, a.Records), a.State)
	b = putInt(b, int64(len(a.Marks)))
	for _, m := range a.Marks {
		b = putText(b, m)
	}
	return b
}

func (r *reader) append() store.Append {
	a := store.Append{Stream: r.text(), Expect: r.int(), Parent: r.text(), Records: r.records(), State: r.bytes()}
	r.list(func() { a.Marks = append(a.Marks, r.text()) })
	return a
}

func putRecords(b []byte, rows []store.Record) []byte {
	b = putInt(b, int64(len(rows)))
	for i := range rows {
		b = putBytes(putText(putInt(b, rows[i].Seq), rows[i].Group), rows[i].Body)
	}
	return b
}

func (r *reader) records() (rows []store.Record) {
	r.list(func() { rows = append(rows, store.Record{Seq: r.int(), Group: r.text(), Body: r.bytes()}) })
	return rows
}

func putHead(b []byte, h store.Head) []byte { return putBytes(putInt(b, h.Seq), h.State) }

func (r *reader) head() store.Head { return store.Head{Seq: r.int(), State: r.bytes()} }

// codes are the errors that keep their identity across the wire, by position.
var codes = []error{
	nil, store.ErrConflict, store.ErrNotFound, store.ErrCorrupt, store.ErrBusy, store.ErrClosed,
	context.Canceled, context.DeadlineExceeded,
}

func putFault(b []byte, err error) []byte {
	code := 0
	for i, known := range codes {
		if known != nil && errors.Is(err, known) {
			code = i
			break
		}
	}
	return putText(putInt(b, int64(code)), err.Error())
}

// fault answers the error that putFault wrote.
func (r *reader) fault() error {
	code, text := r.int(), r.text()
	if err := r.done(); err != nil {
		return err
	}
	f := &remote{text: text}
	if code > 0 && code < int64(len(codes)) {
		f.is = codes[code]
	}
	return f
}

// remote is an error of the other side: its text, and the error it matches.
type remote struct {
	text string
	is   error
}

func (f *remote) Error() string { return f.text }
func (f *remote) Unwrap() error { return f.is }
