package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// counted is a store that counts what is read of it.
type counted struct {
	*store.Mem
	rows atomic.Int64
}

func (c *counted) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range c.Mem.Records(ctx, stream, from, to) {
			if c.rows.Add(1); !yield(r, err) {
				return
			}
		}
	}
}

func (c *counted) Groups(ctx context.Context, stream string, n int) ([]store.Group, error) {
	rows, err := c.Mem.Groups(ctx, stream, n)
	c.rows.Add(int64(len(rows)))
	return rows, err
}

// read answers how many rows fn made the store read.
func (c *counted) read(fn func()) int64 {
	before := c.rows.Load()
	fn()
	return c.rows.Load() - before
}

// A beat reads nothing that its handle knows already, in the thousandth beat as
// in the first, and after a resume no more than its window; and a handle does
// not grow with its session.
func TestBeatsReadNoMoreThanTheyMust(t *testing.T) {
	st := &counted{Mem: store.NewMem()}
	k := newKernel(st)
	s, d := opened(t, k), benchDevice(t)
	beats(t, s, d, 8)
	require.LessOrEqual(t, st.read(func() { beats(t, s, d, 1500) }), int64(3), "the seed, once the handle let go of it")
	events, groups := s.Held()
	require.Less(t, events, 4*1024)
	require.Less(t, groups, 2*1024)
	r, err := k.Resume(ctxb, s.ID(), kernel.Resume{})
	require.NoError(t, err)
	require.LessOrEqual(t, st.read(func() { beats(t, r, d, 1) }), int64(8*6+8+3+1))
	require.LessOrEqual(t, st.read(func() { beats(t, r, d, 20) }), int64(8), "the index once more, for the beat with which it began")
}

// A policy that reads a window beside a fold that reads everything does not make
// the handle forget and read again.
func TestMixedReadsAreRemembered(t *testing.T) {
	st := &counted{Mem: store.NewMem()}
	k := newKernel(st)
	s, d := opened(t, k), benchDevice(t)
	beats(t, s, d, 700)
	_, err := s.Events(ctxb, 1)
	require.NoError(t, err)
	require.Zero(t, st.read(func() {
		for range 100 {
			beats(t, s, d, 1)
			_, err := s.Events(ctxb, 1)
			require.NoError(t, err)
		}
	}))
}

// A session of more than a thousand events is read whole and goes on.
func TestNoRowCap(t *testing.T) {
	k, _ := newMem(t)
	s, d := opened(t, k), looks(t)
	beats(t, s, d, 300)
	evs := logOf(t, s)
	require.Len(t, evs, 3+300*7)
	for i, ev := range evs {
		require.EqualValues(t, i+1, ev.Seq)
	}
	require.Equal(t, 601, len(kernel.FoldEvents(evs, d).Messages))
	a, err := k.Attach(ctxb, s.ID())
	require.NoError(t, err)
	require.Equal(t, texts(evs), texts(logOf(t, a)))
}

// A request is stored as what is new in it: a session of 200 beats is little
// more than the text that was said in it.
func TestLogIsLinear(t *testing.T) {
	for name, window := range map[string]bool{"a window": true, "everything": false} {
		t.Run(name, func(t *testing.T) {
			tape := newTape()
			s, d := opened(t, newKernel(tape)), benchDevice(t)
			if !window {
				d = must(d.With(func(c *kernel.Config) { c.Fold = nil }))
			}
			beats(t, s, d, 200)
			stored, said := 0, 0
			for _, b := range tape.batches {
				for _, a := range b.Appends {
					for _, r := range a.Records {
						stored += len(r.Body)
					}
				}
			}
			for _, ev := range logOf(t, s) {
				if ev.Kind == kernel.LLMResponse || ev.Kind == kernel.ToolResult || ev.Kind == kernel.MsgUser {
					said += len(ev.Data)
				}
			}
			require.Less(t, float64(stored), 1.5*float64(said))
		})
	}
}

func TestTail(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	for n, want := range map[int64]int{0: 0, -1: 0, 1: 1, 2: 2, 3: 3, 4: 3, 1 << 40: 3} {
		evs, err := s.Tail(ctxb, n)
		require.NoError(t, err)
		require.Len(t, evs, want)
		if want > 0 {
			require.EqualValues(t, 3, evs[want-1].Seq)
		}
	}
}

func TestEventsFrom(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	for from, want := range map[int64]int{-5: 3, 0: 3, 1: 3, 3: 1, 4: 0, 99: 0} {
		evs, err := s.Events(ctxb, from)
		require.NoError(t, err)
		require.Len(t, evs, want, "from %d", from)
	}
}

func TestScan(t *testing.T) {
	k, _ := newMem(t)
	s, other, d := opened(t, k), opened(t, k), looks(t)
	beats(t, s, d, 3)
	beats(t, other, d, 1)
	beat := logOf(t, s)[4].Beat
	odd := func(_ string, ev *kernel.Event) (bool, error) { return ev.Seq%2 == 1, nil }
	tests := map[string]struct {
		where kernel.Where
		want  int
		cut   bool
	}{
		"all":            {kernel.Where{}, 24, false},
		"kinds":          {kernel.Where{Kinds: []string{kernel.ToolCall, kernel.ToolResult}}, 12, false},
		"a beat":         {kernel.Where{Beats: []string{beat}}, 7, false},
		"no such beat":   {kernel.Where{Beats: []string{"x"}}, 0, false},
		"from and to":    {kernel.Where{From: 3, To: 5}, 3, false},
		"backwards":      {kernel.Where{From: 5, To: 3}, 0, false},
		"up to nothing":  {kernel.Where{To: -1}, 0, false},
		"no kind":        {kernel.Where{Kinds: []string{}}, 0, false},
		"of no beat":     {kernel.Where{Beats: []string{}}, 0, false},
		"of no session":  {kernel.Where{Sessions: []string{}}, 0, false},
		"limit":          {kernel.Where{Limit: 5}, 5, true},
		"the limit fits": {kernel.Where{From: 20, Limit: 5}, 5, false},
		"two sessions":   {kernel.Where{Sessions: []string{s.ID(), other.ID()}, Kinds: []string{kernel.LLMRequest}}, 4, false},
		"nobody":         {kernel.Where{Sessions: []string{"x"}}, 0, false},
		"no sessions":    {kernel.Where{Sessions: []string{}}, 0, false},
		"match":          {kernel.Where{Match: odd}, 12, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rows, cut, err := s.Scan(ctxb, tt.where)
			require.NoError(t, err)
			require.Len(t, rows, tt.want)
			require.Equal(t, tt.cut, cut)
		})
	}
	_, _, err := s.Scan(ctxb, kernel.Where{Match: func(string, *kernel.Event) (bool, error) { return false, errDisk }})
	require.True(t, errors.Is(err, errDisk) && kernel.KindOf(err) == "", "the caller's own error")
}

// A call and its result belong together within one beat, whatever ids a
// provider uses again.
func TestPairsJoinWithinTheBeat(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	for _, d := range []kernel.Draft{
		{Kind: kernel.ToolCall, Beat: "x", Data: raw(`{"call_id":"call_0","name":"one"}`)},
		{Kind: kernel.ToolCall, Beat: "y", Data: raw(`{"call_id":"call_0","name":"two"}`)},
		{Kind: kernel.ToolResult, Beat: "y", Data: raw(`{"call_id":"call_0","ok":true}`)},
		{Kind: kernel.ToolResult, Beat: "z", Data: raw(`{"call_id":"call_0","ok":true}`)},
	} {
		must(s.Append(ctxb, d))
	}
	pairs, _, err := s.PairsView(ctxb, kernel.ViewOptions{})
	require.NoError(t, err)
	require.Equal(t, []kernel.PairRow{{Session: s.ID(), Beat: "y", CallID: "call_0", Name: "two", OK: true}}, pairs)
	open, _, err := s.OpenCallsView(ctxb, kernel.ViewOptions{})
	require.NoError(t, err)
	require.Equal(t, []kernel.PairRow{{Session: s.ID(), Beat: "x", CallID: "call_0", Name: "one"}}, open)
}

func TestSessionsPage(t *testing.T) {
	k, _ := newMem(t)
	for range 5 {
		opened(t, k)
	}
	var seen []string
	for after := ""; ; {
		rows, err := k.Sessions(ctxb, after, 2)
		require.NoError(t, err)
		if len(rows) == 0 {
			break
		}
		for _, r := range rows {
			seen, after = append(seen, r.Session), r.Session
		}
	}
	require.Equal(t, []string{"i1", "i3", "i5", "i7", "i9"}, seen)
}

func TestRequestOfNoBeat(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	must(s.Append(ctxb, kernel.Draft{Kind: kernel.LLMRequest, Beat: "x", Data: raw(`{"request":{}}`)}))
	for _, beat := range []string{"", "nobody", "x"} {
		_, err := s.Request(ctxb, beat)
		require.Equal(t, kernel.Validation, kernel.KindOf(err), "%v", err)
	}
}

// A stranger's beat begins in the middle of ours, and the handle's index of
// beats stays the store's (I4).
func TestBeatsOfStrangers(t *testing.T) {
	k, _ := newMem(t)
	s := opened(t, k)
	a, err := k.Attach(ctxb, s.ID())
	require.NoError(t, err)
	n := 0
	meddle := kernel.Tool{Effects: kernel.Read, Handler: func(ctx context.Context, _ json.RawMessage, tc kernel.ToolContext) (json.RawMessage, error) {
		n++
		_, err := a.Append(ctx, kernel.Draft{Kind: "note", Beat: fmt.Sprintf("stranger %d", n)})
		if err == nil {
			_, _, err = tc.Session.Beats(ctx, 2, false)
		}
		return nil, err
	}}
	d := device(t, kernel.Config{Tools: map[string]kernel.Tool{"meddle": meddle}, LLM: kernel.LLMFunc(
		func(context.Context, *kernel.Request, kernel.CallOptions) (*kernel.Answer, error) {
			return calls(use("", "meddle", ""), use("", "meddle", "")), nil
		})})
	beats(t, s, d, 3)
	require.Equal(t, 6, n)
	fresh, err := k.Attach(ctxb, s.ID())
	require.NoError(t, err)
	for n := 1; n < 11; n++ { // 0 would read the index anew
		got, _, err := s.Beats(ctxb, n, false)
		require.NoError(t, err)
		want, _, err := fresh.Beats(ctxb, n, false)
		require.NoError(t, err)
		require.Equal(t, beatText(want), beatText(got), "the last %d beats", n)
	}
}
