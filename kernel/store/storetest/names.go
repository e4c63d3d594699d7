package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

func marks(t *testing.T, st store.Store) {
	apply(t, st, one(store.Append{Stream: "s", Records: records("", "a"), Marks: []string{"c1", "c2", "c1"}}))
	apply(t, st, one(store.Append{Stream: "s", Expect: 1, Records: records("", "b"), Marks: []string{"c3"}}))
	grow(t, st, "t", "", "a")
	for _, c := range []struct {
		stream, name string
		want         bool
	}{
		{"s", "c1", true}, {"s", "c2", true}, {"s", "c3", true},
		{"s", "c4", false}, {"s", "c", false}, {"s", "", false}, {"t", "c1", false}, {"none", "c1", false},
	} {
		got, err := st.Marked(ctx(t), c.stream, c.name)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s/%s", c.stream, c.name)
	}
}

func blobs(t *testing.T, st store.Store) {
	a, b, empty := blob("payload a"), blob("payload b"), blob("")
	apply(t, st, &store.Batch{Blobs: []store.Blob{a, a, empty}})
	apply(t, st, &store.Batch{Blobs: []store.Blob{a, b}, Appends: []store.Append{{Stream: "s", Records: records("", "x")}}})
	for _, want := range []store.Blob{a, b, empty} {
		got, err := st.Blob(ctx(t), want.Hash)
		require.NoError(t, err)
		require.Equal(t, string(want.Data), string(got))
	}
	_, err := st.Blob(ctx(t), blob("never written").Hash)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func children(t *testing.T, st store.Store) {
	grow(t, st, "root", "", "x")
	for _, name := range []string{"k2", "k10", "k1"} {
		apply(t, st, &store.Batch{Appends: []store.Append{
			{Stream: name, Parent: "root", Records: records("", "x")},
			{Stream: "root", Expect: seq(t, st, "root"), Records: records("", "opened")},
		}})
		grow(t, st, name, "", "y")
	}
	apply(t, st, one(store.Append{Stream: "grandkid", Parent: "k1", Records: records("", "x")}))
	for parent, want := range map[string][]string{
		"root": {"k1", "k10", "k2"}, "k1": {"grandkid"}, "k2": nil, "roo": nil, "": nil,
	} {
		got, err := st.Children(ctx(t), parent)
		require.NoError(t, err)
		require.Equal(t, len(want), len(got), parent)
		require.True(t, slices.Equal(want, got), "%s: %v", parent, got)
	}
}

func streams(t *testing.T, st store.Store) {
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("s%02d", i))
	}
	for i := range want { // written from the middle out, listed in order
		name := want[(i*7)%25]
		apply(t, st, one(store.Append{Stream: name, Records: records("", "a", "b"), State: []byte(name)}))
	}
	var got []string
	for after := ""; ; {
		rows, err := st.Streams(ctx(t), after, 10)
		require.NoError(t, err)
		if len(rows) == 0 {
			break
		}
		require.LessOrEqual(t, len(rows), 10)
		for _, r := range rows {
			require.Equal(t, store.Head{Seq: 2, State: []byte(r.Stream)}, r.Head)
			got = append(got, r.Stream)
		}
		after = rows[len(rows)-1].Stream
	}
	require.Equal(t, want, got)
	for _, limit := range []int{0, -1, 25, 1000} {
		rows, err := st.Streams(ctx(t), "", limit)
		require.NoError(t, err)
		require.Len(t, rows, 25, "limit %d", limit)
	}
	rows, err := st.Streams(ctx(t), "s2", 2)
	require.NoError(t, err)
	require.Equal(t, "s20", rows[0].Stream, "the cursor need not exist")
}

// oddNames holds every name against every other: streams, groups and marks whose
// bytes could run into a neighbour's key.
func oddNames(t *testing.T, st store.Store) {
	names := []string{"a", "a\x00", "a\x00b", "ab", "\x00", "\xff", "\xff\xff", "é", "a/b", " ", "\x00\x01a",
		strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("x", store.MaxName)}
	for i, name := range names {
		rows := records(name, fmt.Sprint(i), fmt.Sprint(i))
		apply(t, st, one(store.Append{Stream: name, Records: rows, Marks: []string{name}}))
	}
	listed, err := st.Streams(ctx(t), "", 0)
	require.NoError(t, err)
	sorted := slices.Sorted(slices.Values(names))
	for i := range sorted {
		require.Equal(t, sorted[i], listed[i].Stream)
	}
	for i, name := range names {
		want := []string{"1:" + fmt.Sprint(i), "2:" + fmt.Sprint(i)}
		require.Equal(t, want, bodies(t, st, name, 1, 0), "%q", name)
		for _, other := range names {
			marked, err := st.Marked(ctx(t), name, other)
			require.NoError(t, err)
			require.Equal(t, name == other, marked, "%q in %q", other, name)
			_, err = st.FindGroup(ctx(t), name, other)
			require.Equal(t, name == other, err == nil, "%q in %q", other, name)
		}
	}
}
