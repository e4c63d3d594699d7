package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

func staleExpectation(t *testing.T, st store.Store) {
	grow(t, st, "s", "b1", "a", "b")
	for _, expect := range []int64{0, 1, 3, 1 << 40} {
		_, err := st.Apply(ctx(t), one(store.Append{Stream: "s", Expect: expect, Records: records("b2", "no"), State: []byte("no"), Marks: []string{"no"}}), store.Now)
		require.ErrorIs(t, err, store.ErrConflict, "expecting %d", expect)
		require.ErrorContains(t, err, `stream "s": head is 2`)
	}
	_, err := st.Apply(ctx(t), one(store.Append{Stream: "new", Expect: 1, Records: records("", "no")}), store.Now)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, []string{"1:a", "2:b"}, bodies(t, st, "s", 1, 0))
	require.Zero(t, seq(t, st, "new"))
	taken, err := st.Marked(ctx(t), "s", "no")
	require.NoError(t, err)
	require.False(t, taken)
}

func conflictUndoesAll(t *testing.T, st store.Store) {
	grow(t, st, "b", "", "x")
	late := blob("late")
	_, err := st.Apply(ctx(t), &store.Batch{
		Appends: []store.Append{
			{Stream: "a", Records: records("g", "1"), State: []byte("s"), Parent: "b", Marks: []string{"m"}},
			{Stream: "b", Expect: 7, Records: records("g", "2")},
		},
		Blobs: []store.Blob{late},
	}, store.Now)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Zero(t, seq(t, st, "a"))
	require.Equal(t, []string{"1:x"}, bodies(t, st, "b", 1, 0))
	kids, err := st.Children(ctx(t), "b")
	require.NoError(t, err)
	require.Empty(t, kids)
	_, err = st.Blob(ctx(t), late.Hash)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = st.FindGroup(ctx(t), "a", "g")
	require.ErrorIs(t, err, store.ErrNotFound)
	// The stream is where it was: the same batch with the right number works.
	apply(t, st, &store.Batch{Appends: []store.Append{
		{Stream: "a", Records: records("g", "1")}, {Stream: "b", Expect: 1, Records: records("g", "2")},
	}})
	require.Equal(t, []string{"1:1"}, bodies(t, st, "a", 1, 0))
	require.Equal(t, []string{"1:x", "2:2"}, bodies(t, st, "b", 1, 0))
}

func checkOnly(t *testing.T, st store.Store) {
	apply(t, st, &store.Batch{})
	grow(t, st, "s", "", "a")
	check := one(store.Append{Stream: "s", Expect: 1, State: []byte("not written"), Marks: []string{"m"}})
	apply(t, st, check)
	lazy, err := st.Apply(ctx(t), one(store.Append{Stream: "t", Records: records("", "x")}), store.Lazy)
	require.NoError(t, err)
	apply(t, st, check)
	require.NoError(t, lazy.Wait(ctx(t)))
	h, err := st.Head(ctx(t), "s")
	require.NoError(t, err)
	require.Equal(t, "s", string(h.State))
	taken, err := st.Marked(ctx(t), "s", "m")
	require.NoError(t, err)
	require.False(t, taken)
	apply(t, st, one(store.Append{Stream: "none", Parent: "s"}))
	rows, err := st.Streams(ctx(t), "", 0)
	require.NoError(t, err)
	require.Len(t, rows, 2, "a check creates no stream")
	check.Appends[0].Expect = 2
	_, err = st.Apply(ctx(t), check, store.Now)
	require.ErrorIs(t, err, store.ErrConflict)
}

func malformed(t *testing.T, st store.Store) {
	long := strings.Repeat("n", store.MaxName+1)
	row := records("", "x")
	wrong := blob("data")
	wrong.Data = []byte("Data")
	for want, b := range map[string]*store.Batch{
		"append 1: stream name is 0 bytes long, want 1 to 4096":                                one(store.Append{Records: row}),
		"append 1: stream name is 4097 bytes long":                                             one(store.Append{Stream: long, Records: row}),
		"append 1: parent name is 4097 bytes long":                                             one(store.Append{Stream: "s", Parent: long, Records: row}),
		`append 1: stream "s": record 1: group name is 4097 bytes`:                             one(store.Append{Stream: "s", Records: records(long, "x")}),
		`append 1: stream "s": mark name is 0 bytes`:                                           one(store.Append{Stream: "s", Records: row, Marks: []string{"m", ""}}),
		`append 1: stream "s": expects seq -1, want 0 or more`:                                 one(store.Append{Stream: "s", Expect: -1, Records: row}),
		`stream "s": names a parent at seq 1`:                                                  one(store.Append{Stream: "s", Expect: 1, Parent: "p", Records: row}),
		`stream "s": is its own parent`:                                                        one(store.Append{Stream: "s", Parent: "s", Records: row}),
		`append 2: stream "s" is in the batch twice, want once`:                                {Appends: []store.Append{{Stream: "s", Records: row}, {Stream: "s", Expect: 1, Records: row}}},
		`blob 1: its 4 bytes hash to`:                                                          {Blobs: []store.Blob{wrong}, Appends: []store.Append{{Stream: "s", Records: row}}},
		"batch holds 1140850688 bytes, want at most 1073741824; split it, or keep it as files": huge(),
	} {
		_, err := st.Apply(ctx(t), b, store.Now)
		require.ErrorContains(t, err, want)
		require.False(t, errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrCorrupt), "%v", err)
	}
	rows, err := st.Streams(ctx(t), "", 0)
	require.NoError(t, err)
	require.Empty(t, rows)
}

// huge is a batch of 1,088 MB in 64 MB of memory.
func huge() *store.Batch {
	body := make([]byte, 64<<20)
	rows := make([]store.Record, 17)
	for i := range rows {
		rows[i].Body = body
	}
	return one(store.Append{Stream: "s", Records: rows})
}

func lazyBatch(t *testing.T, st store.Store) {
	var commits []store.Commit
	for i := range int64(5) {
		c, err := st.Apply(ctx(t), one(store.Append{Stream: "s", Expect: i, Records: records("g", "x")}), store.Lazy)
		require.NoError(t, err)
		require.Equal(t, i+1, seq(t, st, "s"))
		commits = append(commits, c)
	}
	for _, i := range []int{4, 0, 2, 0} {
		require.NoError(t, commits[i].Wait(ctx(t)))
	}
	apply(t, st, one(store.Append{Stream: "s", Expect: 5, Records: records("g", "x")}))
	require.NoError(t, commits[1].Wait(ctx(t)))
	require.Len(t, read(t, st, "s", 1, 0), 6)
}

func cancelled(t *testing.T, st store.Store) {
	grow(t, st, "s", "g", "a")
	ended, cancel := context.WithCancel(ctx(t))
	cancel()
	calls := map[string]func() error{
		"Apply": func() error {
			_, err := st.Apply(ended, one(store.Append{Stream: "s", Expect: 1, Records: records("", "b")}), store.Now)
			return err
		},
		"Head":      func() error { _, err := st.Head(ended, "s"); return err },
		"Groups":    func() error { _, err := st.Groups(ended, "s", 0); return err },
		"FindGroup": func() error { _, err := st.FindGroup(ended, "s", "g"); return err },
		"Marked":    func() error { _, err := st.Marked(ended, "s", "m"); return err },
		"Blob":      func() error { _, err := st.Blob(ended, [32]byte{}); return err },
		"Streams":   func() error { _, err := st.Streams(ended, "", 0); return err },
		"Children":  func() error { _, err := st.Children(ended, "s"); return err },
		"Records": func() error {
			n := 0
			var last error
			for _, err := range st.Records(ended, "s", 1, 0) {
				n, last = n+1, err
			}
			require.Equal(t, 1, n, "the fault is yielded once")
			return last
		},
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), context.Canceled, name)
	}
	_, open := <-st.Watch(ended, "s")
	require.False(t, open)
	require.Equal(t, int64(1), seq(t, st, "s"))
}

func closed(t *testing.T, st store.Store) {
	grow(t, st, "s", "g", "a")
	lazy, err := st.Apply(ctx(t), one(store.Append{Stream: "s", Expect: 1, Records: records("", "b")}), store.Lazy)
	require.NoError(t, err)
	require.NoError(t, st.Close())
	require.NoError(t, lazy.Wait(ctx(t)), "Close waits for what was applied")
	_, err = st.Apply(ctx(t), one(store.Append{Stream: "s", Expect: 2, Records: records("", "c")}), store.Now)
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = st.Head(ctx(t), "s")
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = st.Streams(ctx(t), "", 0)
	require.ErrorIs(t, err, store.ErrClosed)
	for _, err := range st.Records(ctx(t), "s", 1, 0) {
		require.ErrorIs(t, err, store.ErrClosed)
	}
	_, open := <-st.Watch(ctx(t), "s")
	require.False(t, open)
	require.NoError(t, st.Close(), "another Close does nothing")
}
