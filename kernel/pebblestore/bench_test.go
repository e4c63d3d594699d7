package pebblestore

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

// Every benchmark here measures against P, the median of one synced commit of
// 2 KB in the same run, or against itself at another size: the disk below moves
// by a factor within minutes, ratios do not.

func onDisk(b *testing.B) *Store {
	st, err := Open(b.TempDir()+"/db", Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, st.Close()) })
	return st
}

var body2K = bytes.Repeat([]byte("0123456789abcdef"), 128)

func mustApply(b testing.TB, st *Store, stream string, seq int64, group string, f store.Flush) store.Commit {
	c, err := st.Apply(bg, &store.Batch{Appends: []store.Append{
		{Stream: stream, Expect: seq, Records: []store.Record{{Group: group, Body: body2K}}},
	}}, f)
	require.NoError(b, err)
	return c
}

// median runs fn n times and answers the median of its times.
func median(n int, fn func(i int64)) time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		start := time.Now()
		fn(int64(i))
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return times[n/2]
}

func synced(b testing.TB, st *Store, n int) time.Duration {
	return median(n, func(i int64) {
		require.NoError(b, mustApply(b, st, "p", i, "", store.Now).Wait(bg))
	})
}

func BenchmarkSyncedCommit(b *testing.B) {
	st := onDisk(b)
	b.ResetTimer()
	p := synced(b, st, max(b.N, 400))
	b.ReportMetric(float64(p.Microseconds()), "P-µs")
}

// A Now behind a Lazy is to cost one P, not two.
func BenchmarkNowBehindLazy(b *testing.B) {
	st := onDisk(b)
	p := synced(b, st, 400)
	b.ResetTimer()
	pair := median(max(b.N, 400), func(i int64) {
		mustApply(b, st, "s", 2*i, "", store.Lazy)
		require.NoError(b, mustApply(b, st, "s", 2*i+1, "", store.Now).Wait(bg))
	})
	b.ReportMetric(float64(pair)/float64(p), "×P")
}

// Sixty-four sessions share syncs.
func BenchmarkCommitters64(b *testing.B) {
	st := onDisk(b)
	p := synced(b, st, 400)
	each := max(b.N/64, 100)
	b.ResetTimer()
	start := time.Now()
	var wg sync.WaitGroup
	for s := range 64 {
		wg.Go(func() {
			for i := range each {
				c := mustApply(b, st, fmt.Sprint("s", s), int64(i), "", store.Now)
				if err := c.Wait(bg); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rate := float64(64*each) / time.Since(start).Seconds()
	b.ReportMetric(rate, "commits/s")
	b.ReportMetric(rate*p.Seconds(), "×one")
}

// A scan decodes nothing and copies once.
func BenchmarkScan50000(b *testing.B) {
	st := onDisk(b)
	for i := int64(0); i < 50_000; i += 100 {
		rows := make([]store.Record, 100)
		for j := range rows {
			rows[j].Body = body2K
		}
		_, err := st.Apply(bg, &store.Batch{Appends: []store.Append{{Stream: "s", Expect: i, Records: rows}}}, store.Lazy)
		require.NoError(b, err)
	}
	b.ResetTimer()
	for range b.N {
		n := 0
		for _, err := range st.Records(bg, "s", 1, 0) {
			require.NoError(b, err)
			n++
		}
		require.Equal(b, 50_000, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/record")
}

// The last eight groups cost the same whatever is before them.
func BenchmarkLastGroups(b *testing.B) {
	st := onDisk(b)
	for _, n := range []int{10, 10_000} {
		for i := range n {
			mustApply(b, st, fmt.Sprint("s", n), int64(i), fmt.Sprint("b", i), store.Lazy)
		}
	}
	last8 := func(n int) time.Duration {
		return median(2000, func(int64) {
			rows, err := st.Groups(bg, fmt.Sprint("s", n), 8)
			if err != nil || len(rows) != 8 {
				b.Fatal(rows, err)
			}
		})
	}
	last8(10)
	few, many := last8(10), last8(10_000)
	b.ReportMetric(float64(few.Nanoseconds()), "ns-of-10")
	b.ReportMetric(float64(many)/float64(few), "×of-10,000")
}
