package storetest

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

func emptyStream(t *testing.T, st store.Store) {
	h, err := st.Head(ctx(t), "none")
	require.NoError(t, err)
	require.Zero(t, h.Seq)
	require.Empty(t, h.State)
	require.Empty(t, read(t, st, "none", 1, 0))
	groups, err := st.Groups(ctx(t), "none", 0)
	require.NoError(t, err)
	require.Empty(t, groups)
	_, err = st.FindGroup(ctx(t), "none", "g")
	require.ErrorIs(t, err, store.ErrNotFound)
	marked, err := st.Marked(ctx(t), "none", "m")
	require.NoError(t, err)
	require.False(t, marked)
	kids, err := st.Children(ctx(t), "none")
	require.NoError(t, err)
	require.Empty(t, kids)
	rows, err := st.Streams(ctx(t), "", 0)
	require.NoError(t, err)
	require.Empty(t, rows)
}

func recordsRoundTrip(t *testing.T, st store.Store) {
	apply(t, st, one(store.Append{Stream: "s", State: []byte("one"), Records: []store.Record{
		{Seq: 99, Group: "b1", Body: []byte("x")}, // a Seq handed in is not read
		{Body: nil},
		{Group: "b1", Body: []byte{0, 0xff, '\n'}},
	}}))
	apply(t, st, one(store.Append{Stream: "s", Expect: 3, State: []byte("two"), Records: records("b2", "y")}))
	h, err := st.Head(ctx(t), "s")
	require.NoError(t, err)
	require.Equal(t, int64(4), h.Seq)
	require.Equal(t, "two", string(h.State))
	rows := read(t, st, "s", 1, 0)
	require.Len(t, rows, 4)
	for i, want := range []store.Record{
		{Seq: 1, Group: "b1", Body: []byte("x")},
		{Seq: 2},
		{Seq: 3, Group: "b1", Body: []byte{0, 0xff, '\n'}},
		{Seq: 4, Group: "b2", Body: []byte("y")},
	} {
		require.Equal(t, want.Seq, rows[i].Seq)
		require.Equal(t, want.Group, rows[i].Group)
		require.True(t, bytes.Equal(want.Body, rows[i].Body), "record %d", i+1)
	}
}

func recordsRange(t *testing.T, st store.Store) {
	grow(t, st, "s", "", "a", "b", "c", "d")
	for _, c := range []struct {
		from, to int64
		want     []string
	}{
		{1, 0, []string{"1:a", "2:b", "3:c", "4:d"}},
		{0, 0, []string{"1:a", "2:b", "3:c", "4:d"}},
		{-5, 2, []string{"1:a", "2:b"}},
		{2, 3, []string{"2:b", "3:c"}},
		{4, 4, []string{"4:d"}},
		{3, 99, []string{"3:c", "4:d"}},
		{5, 0, []string{}},
		{3, 2, []string{}},
	} {
		require.Equal(t, c.want, bodies(t, st, "s", c.from, c.to), "from %d to %d", c.from, c.to)
	}
}

func recordsAreSnapshot(t *testing.T, st store.Store) {
	grow(t, st, "s", "", "a", "b")
	n := 0
	for r, err := range st.Records(ctx(t), "s", 1, 0) {
		require.NoError(t, err)
		n++
		require.Equal(t, int64(n), r.Seq)
		grow(t, st, "s", "", "more")
	}
	require.Equal(t, 2, n)
	require.Equal(t, int64(4), seq(t, st, "s"))
}

func recordsLeftEarly(t *testing.T, st store.Store) {
	texts := make([]string, 3000)
	for i := range texts {
		texts[i] = strings.Repeat("x", 100)
	}
	grow(t, st, "s", "", texts...)
	n := 0
	for r, err := range st.Records(ctx(t), "s", 1, 0) {
		require.NoError(t, err)
		require.Len(t, r.Body, 100)
		if n++; n == 2500 {
			break
		}
	}
	require.Equal(t, 2500, n)
	require.Len(t, read(t, st, "s", 1, 0), 3000)
}

func slicesAreOwned(t *testing.T, st store.Store) {
	body, state, data := []byte("body"), []byte("state"), blob("data")
	b := one(store.Append{Stream: "s", State: state, Records: []store.Record{{Body: body}}})
	b.Blobs = []store.Blob{data}
	apply(t, st, b)
	for range 2 { // first the input is spoiled, then what was read
		for _, s := range [][]byte{body, state, data.Data} {
			for i := range s {
				s[i] = '!'
			}
		}
		h, err := st.Head(ctx(t), "s")
		require.NoError(t, err)
		kept, err := st.Blob(ctx(t), data.Hash)
		require.NoError(t, err)
		body, state = read(t, st, "s", 1, 0)[0].Body, h.State
		data.Data = kept
		require.Equal(t, "body state data", string(body)+" "+string(state)+" "+string(kept))
	}
}

func groups(t *testing.T, st store.Store) {
	// b2 comes back after b3 began: a group is listed by its first record.
	grow(t, st, "s", "b1", "a", "b")
	grow(t, st, "s", "", "c")
	grow(t, st, "s", "b2", "d")
	apply(t, st, one(store.Append{Stream: "s", Expect: 4, Records: []store.Record{
		{Group: "b3"}, {Group: "b2"}, {Group: "b3"}, {Group: "b1"}, {Group: "a-late-one"},
	}}))
	grow(t, st, "s", "b2", "e")
	grow(t, st, "other", "b9", "x")
	all := []store.Group{{ID: "b1", First: 1}, {ID: "b2", First: 4}, {ID: "b3", First: 5}, {ID: "a-late-one", First: 9}}
	for n, want := range map[int][]store.Group{0: all, -1: all, 1: all[3:], 2: all[2:], 4: all, 9: all} {
		got, err := st.Groups(ctx(t), "s", n)
		require.NoError(t, err)
		require.Equal(t, want, got, "the last %d", n)
	}
}

func findGroup(t *testing.T, st store.Store) {
	grow(t, st, "s", "b1", "a", "b")
	grow(t, st, "s", "b2", "c")
	grow(t, st, "s", "b1", "d")
	for group, want := range map[string]int64{"b1": 1, "b2": 3} {
		got, err := st.FindGroup(ctx(t), "s", group)
		require.NoError(t, err)
		require.Equal(t, want, got, group)
	}
	for _, group := range []string{"b", "b11", ""} {
		_, err := st.FindGroup(ctx(t), "s", group)
		require.ErrorIs(t, err, store.ErrNotFound, "group %q", group)
	}
	_, err := st.FindGroup(ctx(t), "t", "b1")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func largeRecord(t *testing.T, st store.Store) {
	body := make([]byte, 8<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(body)
	apply(t, st, one(store.Append{Stream: "s", Records: []store.Record{{Body: []byte("a")}, {Body: body}, {Body: []byte("b")}}}))
	rows := read(t, st, "s", 1, 0)
	require.Len(t, rows, 3)
	require.True(t, bytes.Equal(body, rows[1].Body))
	require.Equal(t, "b", string(rows[2].Body))
}
