package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel/store"
)

// Model is what a store should hold, as plain maps. It is kept by whoever draws
// a history; a Batch is put into it only when the store took it.
type Model struct {
	Streams map[string]*ModelStream
	Blobs   map[[32]byte]string
}

// ModelStream is one stream of a Model.
type ModelStream struct {
	Parent, State string
	Rows          []string // group + "|" + body
	Marks         map[string]bool
}

// NewModel answers an empty Model.
func NewModel() *Model {
	return &Model{Streams: map[string]*ModelStream{}, Blobs: map[[32]byte]string{}}
}

// Clone answers a Model that shares nothing with m.
func (m *Model) Clone() *Model {
	c := NewModel()
	c.Blobs = maps.Clone(m.Blobs)
	for name, s := range m.Streams {
		d := *s
		d.Rows, d.Marks = slices.Clone(s.Rows), maps.Clone(s.Marks)
		c.Streams[name] = &d
	}
	return c
}

// Seq answers where a stream stands.
func (m *Model) Seq(stream string) int64 {
	if s := m.Streams[stream]; s != nil {
		return int64(len(s.Rows))
	}
	return 0
}

// Fits says whether every expectation of b holds.
func (m *Model) Fits(b *store.Batch) bool {
	for _, a := range b.Appends {
		if m.Seq(a.Stream) != a.Expect {
			return false
		}
	}
	return true
}

// Put applies b.
func (m *Model) Put(b *store.Batch) {
	for _, a := range b.Appends {
		if len(a.Records) == 0 {
			continue
		}
		s := m.Streams[a.Stream]
		if s == nil {
			s = &ModelStream{Parent: a.Parent, Marks: map[string]bool{}}
			m.Streams[a.Stream] = s
		}
		for _, r := range a.Records {
			s.Rows = append(s.Rows, r.Group+"|"+string(r.Body))
		}
		for _, name := range a.Marks {
			s.Marks[name] = true
		}
		s.State = string(a.State)
	}
	for _, b := range b.Blobs {
		m.Blobs[b.Hash] = string(b.Data)
	}
}

// Holds fails t unless st holds exactly what m does, read by every method.
func (m *Model) Holds(t require.TestingT, st store.Store) {
	listed, err := st.Streams(bg, "", 0)
	require.NoError(t, err)
	names := []string{}
	for _, row := range listed {
		names = append(names, row.Stream)
	}
	require.True(t, slices.Equal(slices.Sorted(maps.Keys(m.Streams)), names), "streams are %v", names)
	kids := map[string][]string{}
	for _, name := range names {
		m.Streams[name].holds(t, st, name)
		if p := m.Streams[name].Parent; p != "" {
			kids[p] = append(kids[p], name)
		}
	}
	for _, parent := range drawnStreams {
		got, err := st.Children(bg, parent)
		require.NoError(t, err)
		require.True(t, slices.Equal(kids[parent], got), "children of %s: %v", parent, got)
	}
	for hash, want := range m.Blobs {
		got, err := st.Blob(bg, hash)
		require.NoError(t, err)
		same(t, want, string(got))
	}
}

// same compares payloads; a report of how two of 64 MB differ would take hours.
func same(t require.TestingT, want, got string) {
	require.True(t, want == got, "got %d bytes, %.80q; want %d bytes, %.80q", len(got), got, len(want), want)
}

func (s *ModelStream) holds(t require.TestingT, st store.Store, name string) {
	h, err := st.Head(bg, name)
	require.NoError(t, err)
	require.Equal(t, int64(len(s.Rows)), h.Seq, name)
	require.Equal(t, s.State, string(h.State), name)
	var groups []store.Group
	n := 0
	for r, err := range st.Records(bg, name, 1, 0) {
		require.NoError(t, err)
		require.Less(t, n, len(s.Rows), name)
		same(t, s.Rows[n], r.Group+"|"+string(r.Body))
		n++
		require.Equal(t, int64(n), r.Seq)
		known := slices.ContainsFunc(groups, func(g store.Group) bool { return g.ID == r.Group })
		if r.Group != "" && !known {
			groups = append(groups, store.Group{ID: r.Group, First: r.Seq})
		}
	}
	require.Equal(t, len(s.Rows), n, name)
	listed, err := st.Groups(bg, name, 0)
	require.NoError(t, err)
	require.True(t, slices.Equal(groups, listed), "%s: groups %v, want %v", name, listed, groups)
	for _, g := range groups {
		first, err := st.FindGroup(bg, name, g.ID)
		require.NoError(t, err)
		require.Equal(t, g.First, first)
	}
	for _, mark := range drawnNames {
		taken, err := st.Marked(bg, name, mark)
		require.NoError(t, err)
		require.Equal(t, s.Marks[mark], taken, "%s: mark %q", name, mark)
	}
}

var (
	drawnStreams = []string{"a", "b", "ab", "c\x00", "c"}
	drawnNames   = []string{"x", "y", "xy", "z"}
)

// DrawBatch draws a batch, most often one that fits m.
func DrawBatch(t *rapid.T, m *Model) *store.Batch {
	b := &store.Batch{}
	streams := rapid.SliceOfNDistinct(rapid.SampledFrom(drawnStreams), 0, 3, rapid.ID).Draw(t, "streams")
	for _, name := range streams {
		a := store.Append{Stream: name, Expect: m.Seq(name), State: drawText(t, "state")}
		if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
			a.Expect++
		}
		if parent := rapid.SampledFrom(drawnStreams).Draw(t, "parent"); a.Expect == 0 && parent != name {
			a.Parent = parent
		}
		for range rapid.IntRange(0, 4).Draw(t, "records") {
			group := rapid.SampledFrom(append(drawnNames, "")).Draw(t, "group")
			a.Records = append(a.Records, store.Record{Group: group, Body: drawText(t, "body")})
		}
		a.Marks = rapid.SliceOfN(rapid.SampledFrom(drawnNames), 0, 2).Draw(t, "marks")
		b.Appends = append(b.Appends, a)
	}
	if rapid.IntRange(0, 2).Draw(t, "blobs") == 0 {
		b.Blobs = append(b.Blobs, blob(string(drawText(t, "blob"))))
	}
	return b
}

func drawText(t *rapid.T, label string) []byte {
	text := fmt.Sprint(label, rapid.IntRange(0, 99).Draw(t, label))
	return bytes.Repeat([]byte(text), rapid.SampledFrom([]int{0, 1, 3, 400}).Draw(t, "times"))
}

// follow applies random batches to a store and the model beside it.
func follow(t *testing.T, open func(t *testing.T) store.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		st := open(t)
		defer func() { require.NoError(rt, st.Close()) }()
		m := NewModel()
		for range rapid.IntRange(1, 12).Draw(rt, "batches") {
			b := DrawBatch(rt, m)
			c, err := st.Apply(bg, b, rapid.SampledFrom([]store.Flush{store.Now, store.Lazy}).Draw(rt, "flush"))
			if !m.Fits(b) {
				require.True(rt, errors.Is(err, store.ErrConflict), "got %v", err)
				continue
			}
			require.NoError(rt, err)
			m.Put(b)
			if rapid.Bool().Draw(rt, "wait") {
				require.NoError(rt, c.Wait(bg))
			}
		}
		m.Holds(rt, st)
	})
}
