// Package storetest is the conformance suite of package store: what every
// implementation does, method by method, bad input included, and a model that it
// follows through random histories.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return store.NewMem() })
//	}
package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

// Run runs the suite. open answers a new, empty store, which the suite closes.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st := open(t)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			c.run(t, st)
		})
	}
	t.Run("a random history follows the model", func(t *testing.T) { follow(t, open) })
}

type testCase struct {
	name string
	run  func(t *testing.T, st store.Store)
}

var cases = []testCase{
	{"a stream that does not exist reads as empty", emptyStream},
	{"records come back in order, numbered and whole", recordsRoundTrip},
	{"a range of records is cut at both ends", recordsRange},
	{"a read stops where its stream stood at the call", recordsAreSnapshot},
	{"a read that is left early holds nothing", recordsLeftEarly},
	{"what is handed in and out is the caller's", slicesAreOwned},
	{"a stale expectation is a conflict and writes nothing", staleExpectation},
	{"a conflict on the second stream undoes the first", conflictUndoesAll},
	{"a batch without records checks and stands for what was before", checkOnly},
	{"malformed batches are refused and write nothing", malformed},
	{"groups are listed oldest first, the last n of them", groups},
	{"a group is found by its name", findGroup},
	{"marks belong to their stream", marks},
	{"a blob is kept once and comes back verified", blobs},
	{"children are listed by parent, in order of name", children},
	{"streams are listed in order of name, page by page", streams},
	{"names are any bytes and no name reaches into another", oddNames},
	{"a record of 8 MB comes back", largeRecord},
	{"a lazy batch is visible at once and durable when waited for", lazyBatch},
	{"a watch gets one token for many moves", watchCoalesces},
	{"a watch ends with its context", watchEndsWithContext},
	{"a watch ends with the store", watchEndsWithStore},
	{"a cancelled context stops every call", cancelled},
	{"of many appliers with one expectation one wins", oneWinner},
	{"appliers of different streams all win", disjointAppliers},
	{"a reader beside a writer sees a prefix, dense", readerBesideWriter},
	{"after Close every call answers that", closed},
}

// bg is the context of the model, which outlives no test.
var bg = context.Background()

func ctx(t *testing.T) context.Context { return t.Context() }

// records makes one record a text, all in one group.
func records(group string, texts ...string) []store.Record {
	rows := make([]store.Record, len(texts))
	for i, text := range texts {
		rows[i] = store.Record{Group: group, Body: []byte(text)}
	}
	return rows
}

func one(a store.Append) *store.Batch { return &store.Batch{Appends: []store.Append{a}} }

func blob(text string) store.Blob {
	return store.Blob{Hash: sha256.Sum256([]byte(text)), Data: []byte(text)}
}

// apply applies b and waits until it is durable.
func apply(t *testing.T, st store.Store, b *store.Batch) {
	t.Helper()
	c, err := st.Apply(ctx(t), b, store.Now)
	require.NoError(t, err)
	require.NoError(t, c.Wait(ctx(t)))
}

// grow appends texts to a stream, wherever it stands.
func grow(t *testing.T, st store.Store, stream, group string, texts ...string) {
	t.Helper()
	h, err := st.Head(ctx(t), stream)
	require.NoError(t, err)
	apply(t, st, one(store.Append{Stream: stream, Expect: h.Seq, Records: records(group, texts...), State: []byte("s")}))
}

// read collects what Records yields.
func read(t *testing.T, st store.Store, stream string, from, to int64) []store.Record {
	t.Helper()
	var rows []store.Record
	for r, err := range st.Records(ctx(t), stream, from, to) {
		require.NoError(t, err)
		rows = append(rows, r)
	}
	return rows
}

// bodies is read, as texts "seq:body".
func bodies(t *testing.T, st store.Store, stream string, from, to int64) []string {
	t.Helper()
	texts := []string{}
	for _, r := range read(t, st, stream, from, to) {
		texts = append(texts, fmt.Sprintf("%d:%s", r.Seq, r.Body))
	}
	return texts
}

func seq(t *testing.T, st store.Store, stream string) int64 {
	t.Helper()
	h, err := st.Head(ctx(t), stream)
	require.NoError(t, err)
	return h.Seq
}
