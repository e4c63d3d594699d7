package pebblestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Report is what Check found.
type Report struct {
	Streams, Records, Groups, Marks, Blobs int
	Bytes                                  int64 // of records and blobs, before compression
	Damage                                 []Damage
	More                                   int // damages beyond those listed
}

// Damage is one place where an invariant of the package does not hold.
type Damage struct {
	Rule  string // "P1 dense" … as in the package's documentation
	Where string // `stream "…"`, `blob …`, `key …`
	What  string
}

// String answers "<rule>: <where>: <what>".
func (d Damage) String() string { return d.Rule + ": " + d.Where + ": " + d.What }

// maxDamage bounds the list of a Report.
const maxDamage = 200

// Check reads everything and holds it against the invariants P1–P7. Writing may
// go on meanwhile: it reads a snapshot. Damage is in the Report; an error says
// that the walk itself was cut short.
func (s *Store) Check(ctx context.Context) (Report, error) {
	if err := s.enter(ctx); err != nil {
		return Report{}, err
	}
	defer s.open.RUnlock()
	snap := s.db.NewSnapshot()
	defer snap.Close()
	c := &checker{view: view{from: snap, dir: s.dir}, ctx: ctx, heads: make(map[string]head)}
	c.guarded(func() { c.tables(s) })
	for _, part := range []func(){c.tags, c.readHeads, c.streams, c.owners, c.marks, c.family, c.blobs} {
		c.guarded(part)
	}
	if s.lost != "" {
		c.found("P7 whole", "store", "%s", s.lost)
	}
	c.report.Streams = len(c.heads)
	return c.report, ctx.Err()
}

// checker is one walk.
type checker struct {
	view
	ctx    context.Context
	heads  map[string]head // without State
	report Report
}

// guarded turns a panic over damaged bytes into a finding.
func (c *checker) guarded(part func()) {
	defer func() {
		if r := recover(); r != nil {
			c.found("P6 form", "store", "reading it panics: %v", r)
		}
	}()
	part()
}

func (c *checker) found(rule, where, format string, args ...any) {
	if len(c.report.Damage) == maxDamage {
		c.report.More++
		return
	}
	c.report.Damage = append(c.report.Damage, Damage{rule, where, fmt.Sprintf(format, args...)})
}

// each walks a key range; what cannot be read ends that range only.
func (c *checker) each(where string, lower, upper []byte, fn func(k, v []byte)) {
	err := c.walk(c.ctx, lower, upper, func(k, v []byte) (bool, error) {
		fn(k, v)
		return true, nil
	})
	if err != nil && c.ctx.Err() == nil {
		c.found("P6 form", where, "%v", err)
	}
}

// hop walks a key range and jumps, after each key, to where fn says.
func (c *checker) hop(where string, lower, upper []byte, fn func(k []byte) (next []byte)) {
	it, err := c.from.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		c.found("P6 form", where, "%v", err)
		return
	}
	for more := it.First(); more && c.ctx.Err() == nil; {
		if next := fn(bytes.Clone(it.Key())); next != nil {
			more = it.SeekGE(next)
		} else {
			more = it.Next()
		}
	}
	if err := it.Close(); err != nil {
		c.found("P6 form", where, "%v", err)
	}
}

// tables reads every block of every table: a filter or an index that is damaged
// fails a read that no walk makes.
func (c *checker) tables(s *Store) {
	for name := range c.tableNames(s) {
		err := checkTable(c.ctx, s.disk, filepath.Join(s.dir, name))
		if errors.Is(err, fs.ErrNotExist) && !c.tableNames(s)[name] {
			continue // compacted meanwhile
		}
		if err != nil {
			c.found("P6 form", fmt.Sprintf("table %q", name), "%s", oneLine(err))
		}
	}
}

// tableNames answers the files of the tables that are in use.
func (c *checker) tableNames(s *Store) map[string]bool {
	levels, err := s.db.SSTables()
	if err != nil {
		c.found("P6 form", "store", "%s", oneLine(err))
	}
	names := map[string]bool{}
	for _, level := range levels {
		for _, t := range level {
			names[t.BackingSSTNum.String()+".sst"] = true
		}
	}
	return names
}

func checkTable(ctx context.Context, d *disk, path string) error {
	f, err := d.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(ctx, readable, sstable.ReaderOptions{})
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// oneLine answers the first line of what Pebble says.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// tags looks for keys of no known kind (P6).
func (c *checker) tags() {
	known := []byte{tagHead, tagRecord, tagGroup, tagIndex, tagMark, tagChild, tagBlob}
	c.hop("store", nil, nil, func(k []byte) []byte {
		switch {
		case len(k) == 0:
			c.found("P6 form", "store", "a key is empty")
			return nil
		case bytes.Equal(k, formatKey), bytes.Equal(k, closesKey):
			return nil
		case !bytes.Contains(known, k[:1]):
			c.found("P6 form", fmt.Sprintf("key %x", k), "is of no known kind")
		}
		return after(k[:1])
	})
}

func (c *checker) readHeads() {
	c.each("heads", headKey(""), after(headKey("")), func(k, v []byte) {
		name := string(k[1:])
		h, err := decodeHead(name, v)
		if err != nil {
			c.found("P6 form", where(name), "head of %d bytes does not read", len(v))
		}
		h.state = nil
		c.heads[name] = h
	})
}

func (c *checker) streams() {
	for _, name := range slices.Sorted(maps.Keys(c.heads)) {
		c.guarded(func() { c.stream(name, c.heads[name]) })
	}
}

func where(stream string) string { return fmt.Sprintf("stream %q", stream) }

// stream checks P1 and P3 of one stream.
func (c *checker) stream(name string, h head) {
	first := make(map[string]int64) // what the records say
	prefix, last := owned(tagRecord, name, 0), int64(0)
	c.each(where(name), prefix, after(prefix), func(k, v []byte) {
		c.report.Records++
		c.report.Bytes += int64(len(v))
		seq, ok := cutNumber(k[len(prefix):])
		if !ok {
			c.found("P6 form", where(name), "record key %x does not read", k)
			return
		}
		if seq != last+1 {
			c.found("P1 dense", where(name), "record %d follows record %d", seq, last)
		}
		last = seq
		r, err := decodeRecord(name, seq, v)
		if err != nil {
			c.found("P6 form", where(name), "record %d of %d bytes does not read", seq, len(v))
			return
		}
		if _, begun := first[r.Group]; !begun && r.Group != "" {
			first[r.Group] = seq
		}
	})
	if last != h.seq && h.seq > 0 {
		c.found("P1 dense", where(name), "head is %d, last record is %d", h.seq, last)
	}
	c.groups(name, first)
	c.index(name, first)
}

// groups holds the keys 'g' of a stream against its records.
func (c *checker) groups(name string, first map[string]int64) {
	prefix, listed := owned(tagGroup, name, 0), make(map[string]bool)
	c.each(where(name), prefix, after(prefix), func(k, v []byte) {
		c.report.Groups++
		seq, ok := cutNumber(k[len(prefix):])
		switch {
		case !ok:
			c.found("P6 form", where(name), "group key %x does not read", k)
		case first[string(v)] != seq:
			c.found("P3 groups", where(name), "group %q is listed at record %d, begins at %d", v, seq, first[string(v)])
		}
		listed[string(v)] = true
	})
	for _, g := range slices.Sorted(maps.Keys(first)) {
		if !listed[g] {
			c.found("P3 groups", where(name), "group %q begins at record %d and is not listed", g, first[g])
		}
	}
}

// index holds the keys 'i' of a stream against its records.
func (c *checker) index(name string, first map[string]int64) {
	prefix, found := owned(tagIndex, name, 0), make(map[string]bool)
	c.each(where(name), prefix, after(prefix), func(k, v []byte) {
		g := string(k[len(prefix):])
		found[g] = true
		if seq, ok := cutNumber(v); !ok || first[g] != seq {
			c.found("P3 groups", where(name), "group %q is indexed at record %d, begins at %d", g, seq, first[g])
		}
	})
	for _, g := range slices.Sorted(maps.Keys(first)) {
		if !found[g] {
			c.found("P3 groups", where(name), "group %q begins at record %d and is not indexed", g, first[g])
		}
	}
}

// owners looks for keys of streams that have no head (P2).
func (c *checker) owners() {
	for _, tag := range []byte{tagRecord, tagGroup, tagIndex, tagMark} {
		c.hop("store", []byte{tag}, after([]byte{tag}), func(k []byte) []byte {
			name, _, ok := cutStr(k[1:])
			if !ok {
				c.found("P6 form", fmt.Sprintf("key %x", k), "does not read")
				return nil
			}
			if _, known := c.heads[name]; !known {
				c.found("P2 owned", where(name), "has keys of kind %q and no head", tag)
			}
			return after(owned(tag, name, 0))
		})
	}
}

func (c *checker) marks() {
	c.each("marks", []byte{tagMark}, after([]byte{tagMark}), func(k, v []byte) {
		c.report.Marks++
		if name, mark, ok := cutStr(k[1:]); ok && (len(mark) == 0 || len(v) != 0) {
			c.found("P6 form", where(name), "mark key %x does not read", k)
		}
	})
}

// family checks P4 from both sides.
func (c *checker) family() {
	listed := make(map[string]string) // child → parent
	c.each("children", []byte{tagChild}, after([]byte{tagChild}), func(k, _ []byte) {
		parent, child, ok := cutStr(k[1:])
		if !ok {
			c.found("P6 form", fmt.Sprintf("key %x", k), "does not read")
			return
		}
		listed[string(child)] = parent
		if h, known := c.heads[string(child)]; !known || h.parent != parent {
			c.found("P4 family", where(string(child)), "is listed under %q, its head says %q", parent, h.parent)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(c.heads)) {
		if p := c.heads[name].parent; p != "" && listed[name] != p {
			c.found("P4 family", where(name), "has parent %q and is not listed under it", p)
		}
	}
}

func (c *checker) blobs() {
	c.each("blobs", []byte{tagBlob}, after([]byte{tagBlob}), func(k, v []byte) {
		c.report.Blobs++
		c.report.Bytes += int64(len(v))
		if got := sha256.Sum256(v); !bytes.Equal(k[1:], got[:]) {
			c.found("P5 blobs", fmt.Sprintf("blob %x", k[1:]), "its %d bytes hash to %x", len(v), got[:6])
		}
	})
}
