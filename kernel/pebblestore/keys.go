package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/knl-run/knl/kernel/store"
)

// formatVersion is what this package writes and the newest that it reads.
const formatVersion = 1

// The first byte of a key.
const (
	tagFormat = '!'
	tagHead   = 'h'
	tagRecord = 'r'
	tagGroup  = 'g'
	tagIndex  = 'i'
	tagMark   = 'm'
	tagChild  = 'c'
	tagBlob   = 'b'
)

var (
	formatKey = []byte("!format")
	closesKey = []byte("!closes")
)

func headKey(stream string) []byte { return append([]byte{tagHead}, stream...) }

func blobKey(hash [32]byte) []byte { return append([]byte{tagBlob}, hash[:]...) }

// owned answers the prefix of all keys of one kind that belong to a name.
func owned(tag byte, name string, room int) []byte {
	k := make([]byte, 0, 1+2+len(name)+room)
	k = append(k, tag)
	return appendStr(k, name)
}

func numberedKey(tag byte, stream string, n int64) []byte {
	return binary.BigEndian.AppendUint64(owned(tag, stream, 8), uint64(n))
}

func namedKey(tag byte, owner, name string) []byte {
	return append(owned(tag, owner, len(name)), name...)
}

func appendStr(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// cutStr takes a str off the front of b.
func cutStr(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; len(b) < n {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}

// cutNumber takes a number off b, which it must fill.
func cutNumber(b []byte) (int64, bool) {
	if len(b) != 8 {
		return 0, false
	}
	n := int64(binary.BigEndian.Uint64(b))
	return n, n > 0
}

// after answers the first key behind every key that starts with prefix; nil
// when there is none.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// head is the value under 'h'. State points into what was decoded.
type head struct {
	seq    int64
	parent string
	state  []byte
}

func encodeHead(h head) []byte {
	b := make([]byte, 0, 8+2+len(h.parent)+len(h.state))
	b = binary.BigEndian.AppendUint64(b, uint64(h.seq))
	b = appendStr(b, h.parent)
	return append(b, h.state...)
}

func decodeHead(stream string, v []byte) (h head, err error) {
	ok := len(v) >= 8
	if ok {
		h.seq = int64(binary.BigEndian.Uint64(v))
		h.parent, h.state, ok = cutStr(v[8:])
	}
	if !ok || h.seq < 1 {
		return head{}, damaged("stream %q: head of %d bytes does not read", stream, len(v))
	}
	return h, nil
}

// recordSize is the length of a record's value.
func recordSize(r *store.Record) int { return 2 + len(r.Group) + len(r.Body) }

// decodeRecord answers a record whose Body points into v.
func decodeRecord(stream string, seq int64, v []byte) (store.Record, error) {
	group, body, ok := cutStr(v)
	if !ok {
		return store.Record{}, damaged("stream %q: record %d of %d bytes does not read", stream, seq, len(v))
	}
	return store.Record{Seq: seq, Group: group, Body: body}, nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), store.ErrCorrupt)
}
