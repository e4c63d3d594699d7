package kernel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/knl-run/knl/kernel/store"
)

const (
	bodyMagic = 1       // version of the record body
	blobMin   = 4 << 10 // strings from this size on are kept once, by content hash
)

// encode answers the record of ev and the blobs it refers to.
//
// A body is: version byte, uvarint epoch_ms, then kind and meta as
// length-prefixed text, then data as segments until the end. A segment is
// uvarint 2n and n literal bytes, or uvarint 2n+1 and the 32-byte hash of a
// blob of n bytes. Blobs are whole JSON strings, quotes included.
func (ev *Event) encode() (store.Record, []store.Blob) {
	b := make([]byte, 0, 32+len(ev.Kind)+len(ev.Meta)+len(ev.Data))
	b = append(b, bodyMagic)
	b = binary.AppendUvarint(b, uint64(ev.EpochMS))
	b = appendText(b, ev.Kind)
	b = appendText(b, string(ev.Meta))
	b, blobs := appendSegments(b, ev.Data)
	return store.Record{Group: ev.Beat, Body: b}, blobs
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendSegments(b, data []byte) ([]byte, []store.Blob) {
	var blobs []store.Blob
	rest := data
	for len(rest) >= blobMin {
		from, to := largeString(rest)
		if from < 0 {
			break
		}
		b = append(binary.AppendUvarint(b, uint64(from)<<1), rest[:from]...)
		blob := store.Blob{Hash: sha256.Sum256(rest[from:to]), Data: rest[from:to]}
		b = append(binary.AppendUvarint(b, uint64(to-from)<<1|1), blob.Hash[:]...)
		blobs = append(blobs, blob)
		rest = rest[to:]
	}
	if len(rest) > 0 {
		b = append(binary.AppendUvarint(b, uint64(len(rest))<<1), rest...)
	}
	return b, blobs
}

// largeString finds the first JSON string of at least blobMin bytes in valid
// JSON text that starts outside a string.
func largeString(text []byte) (from, to int) {
	for i := 0; i < len(text); {
		q := bytes.IndexByte(text[i:], '"')
		if q < 0 {
			return -1, -1
		}
		from = i + q
		for to = from + 1; text[to] != '"'; to++ {
			n := bytes.IndexAny(text[to:], `"\`)
			if to += n; text[to] == '"' {
				break
			}
			to++
		}
		to++
		if to-from >= blobMin {
			return from, to
		}
		i = to
	}
	return -1, -1
}

// decodeEvent reads a record back; blob answers the payload under a hash.
func decodeEvent(r store.Record, blob func([32]byte) ([]byte, error)) (*Event, error) {
	c := cursor{b: r.Body}
	if v := c.byte(); v != bodyMagic && !c.bad {
		return nil, fmt.Errorf("record %d: body version %d, want %d: %w", r.Seq, v, bodyMagic, store.ErrCorrupt)
	}
	ev := &Event{Seq: r.Seq, Beat: r.Group, EpochMS: int64(c.uvarint()), sound: true}
	ev.Kind = string(c.text())
	ev.Meta = c.text()
	for len(c.b) > 0 && !c.bad {
		n := c.uvarint()
		if n&1 == 0 {
			seg := c.take(n >> 1)
			if len(c.b) == 0 && ev.Data == nil {
				ev.Data = seg
				break
			}
			ev.Data = append(ev.Data, seg...)
			continue
		}
		var h [32]byte
		copy(h[:], c.take(32))
		if c.bad {
			break
		}
		payload, err := blob(h)
		if err != nil {
			return nil, fmt.Errorf("record %d: payload %x: %w", r.Seq, h[:6], err)
		}
		if got := uint64(len(payload)); got != n>>1 {
			return nil, fmt.Errorf("record %d: payload %x has %d bytes, want %d: %w", r.Seq, h[:6], got, n>>1, store.ErrCorrupt)
		}
		ev.Data = append(ev.Data, payload...)
	}
	if c.bad || len(ev.Data) == 0 || len(ev.Meta) == 0 {
		return nil, fmt.Errorf("record %d: body ends early: %w", r.Seq, store.ErrCorrupt)
	}
	return ev, nil
}

// kindOf answers the kind of a record without decoding the rest of it.
func kindOf(r store.Record) string {
	c := cursor{b: r.Body}
	c.byte()
	c.uvarint()
	return string(c.text())
}

// cursor reads length-prefixed fields and remembers the first overrun.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) text() []byte { return c.take(c.uvarint()) }
