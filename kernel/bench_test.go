package kernel_test

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// benchDevice beats about 6 KB: a reply of 2 KB that calls a read tool, its
// arguments and result of 2 KB, over a fold of the last 8 beats.
func benchDevice(tb testing.TB) *kernel.Device {
	line := strings.Repeat("some text that a model might say, 50 bytes of it. ", 37)
	answer := calls(`{"text":"`+line+`","type":"text"}`, use("", "look", `{"path":"a/b/c.go"}`))
	fold := func(ctx context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
		evs, err := lastBeats(ctx, log, 8, true)
		if err != nil {
			return nil, err
		}
		return kernel.FoldEvents(evs, d), nil
	}
	result := jsonOf(strings.Repeat("a line of a file that the tool has read, of it 60\n\tbytes..\n", 35))
	return device(tb, kernel.Config{Fold: fold, Tools: map[string]kernel.Tool{"look": {Effects: kernel.Read, Handler: gives(string(result))}},
		LLM: kernel.LLMFunc(func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) { return answer, nil })})
}

func benchSession(tb testing.TB) *kernel.Session {
	st := store.NewMem()
	tb.Cleanup(func() { _ = st.Close() })
	return opened(tb, kernel.New(st, kernel.Options{}))
}

func beats(tb testing.TB, s *kernel.Session, d *kernel.Device, n int) time.Duration {
	start := time.Now()
	for range n {
		if out := kernel.Beat(ctxb, s, d, kernel.BeatOptions{}); out.Status != kernel.StatusOK {
			tb.Fatal(outcomeText(out))
		}
	}
	return time.Since(start)
}

// BenchmarkBeat is one beat of a young session; the store is in memory, so it is
// the kernel's own cost. It reports it in units of hashing the request, too.
func BenchmarkBeat(b *testing.B) {
	d := benchDevice(b)
	s := benchSession(b)
	beats(b, s, d, 10)
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu(b)
	beats(b, s, d, b.N)
	used := cpu(b) - start
	b.StopTimer()
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(used)/float64(hashing(b, s, b.N)), "hashes")
}

// hashing is what the hashes alone of n requests cost: each is over the whole
// request, so no beat costs less.
func hashing(tb testing.TB, s *kernel.Session, n int) time.Duration {
	evs := logOf(tb, s)
	req := must(s.Request(ctxb, evs[len(evs)-1].Beat))
	start := cpu(tb)
	for range n {
		req.Hash()
	}
	return cpu(tb) - start
}

// cpu is the time that this process has computed, garbage collection included;
// unlike the time on the wall it knows nothing of its neighbours.
func cpu(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFlat reports what the 10,000th beat costs in units of the 10th.
func BenchmarkFlat(b *testing.B) {
	d := benchDevice(b)
	for range b.N {
		var young, old []time.Duration
		s := benchSession(b)
		beats(b, s, d, 9_900)
		for range 200 { // by turns, so that what disturbs one disturbs the other
			other := benchSession(b)
			beats(b, other, d, 9)
			young, old = append(young, beats(b, other, d, 1)), append(old, beats(b, s, d, 1))
		}
		b.ReportMetric(float64(median(old))/float64(median(young)), "ratio")
		events, groups := s.Held()
		b.ReportMetric(float64(events), "events-held")
		b.ReportMetric(float64(groups), "beats-held")
	}
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkResume reports the first beat after a resume of a log of 10,000
// beats in units of a beat that follows it.
func BenchmarkResume(b *testing.B) {
	d := benchDevice(b)
	s := benchSession(b)
	beats(b, s, d, 10_000)
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		r, err := s.Kernel().Resume(ctxb, s.ID(), kernel.Resume{})
		require.NoError(b, err)
		beats(b, r, d, 1)
		first := time.Since(start)
		b.ReportMetric(float64(first)/(float64(beats(b, r, d, 100))/100), "beats")
	}
}

// BenchmarkWholeLog is a beat that folds a log of 1,000 beats whole.
func BenchmarkWholeLog(b *testing.B) {
	d := benchDevice(b)
	s := benchSession(b)
	beats(b, s, d, 1_000)
	whole, err := d.With(func(c *kernel.Config) { c.Fold = nil })
	require.NoError(b, err)
	beats(b, s, whole, 1)
	b.ReportAllocs()
	b.ResetTimer()
	beats(b, s, whole, b.N)
}

// BenchmarkRequest rebuilds the request of the last of 1,000 beats, cold.
func BenchmarkRequest(b *testing.B) {
	d := benchDevice(b)
	s := benchSession(b)
	beats(b, s, d, 1_000)
	evs := logOf(b, s)
	last := evs[len(evs)-1].Beat
	b.ResetTimer()
	for range b.N {
		a, err := s.Kernel().Attach(ctxb, s.ID())
		require.NoError(b, err)
		_, err = a.Request(ctxb, last)
		require.NoError(b, err)
	}
}
