package kernel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// windowed is a fold that says of every request what window says.
func windowed(window *string) kernel.Fold {
	return func(ctx context.Context, log kernel.Log, d *kernel.Device) (*kernel.Request, error) {
		req, err := kernel.DefaultFold(ctx, log, d)
		req.Window = raw(*window)
		return req, err
	}
}

func TestTranscriptOfAWindow(t *testing.T) {
	play(t, "window", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		window := `{"kept":1,"dropped":["i9"]}`
		c := kernel.Config{LLM: replies(says("one"), says("two"), says("three")), Fold: windowed(&window)}
		out := x.beat(s, device(t, c))
		x.request(s, out.Reply.Beat)
		x.do("through a filter that makes a request of its own")
		c.Filters = []kernel.Filter{func(_ context.Context, r *kernel.Request) (*kernel.Request, error) {
			return &kernel.Request{Messages: r.Messages, Window: raw(`{"kept":"the filter's"}`)}, nil
		}}
		x.beat(s, device(t, c))
		x.do("without a word on it")
		c.Fold, c.Filters = nil, nil
		x.beat(s, device(t, c))
		c.Fold = windowed(&window)
		for _, window = range []string{`[1]`, `{"a":1,"a":2}`, `{"kept":`, ` `, `{"dropped":"` + strings.Repeat("x", 4<<10) + `"}`} {
			x.beat(s, device(t, c))
		}
		beats, _, err := s.BeatsView(ctxb, kernel.ViewOptions{})
		rows(x, "beats", beats, err)
	})
}

// What a fold says of the log is no part of the request that is hashed.
func TestAWindowIsNotHashed(t *testing.T) {
	r := &kernel.Request{Messages: nil, Window: raw(`{"kept":1}`)}
	require.Equal(t, `{"messages":[]}`, string(r.Canonical()))
	require.Equal(t, (&kernel.Request{}).Hash(), r.Hash())
}

func newestSeq(t *testing.T, s *kernel.Session, kind string) int64 {
	t.Helper()
	ev, err := s.Newest(ctxb, kind)
	require.NoError(t, err)
	if ev == nil {
		return 0
	}
	require.Equal(t, kind, ev.Kind)
	return ev.Seq
}

func note(t *testing.T, s *kernel.Session, kind string) int64 {
	t.Helper()
	seq, err := s.Append(ctxb, kernel.Draft{Kind: kind})
	require.NoError(t, err)
	return seq
}

func TestNewestFindsTheNewestOfAKind(t *testing.T) {
	st := &counted{Mem: store.NewMem()}
	k := newKernel(st)
	s, d := opened(t, k), benchDevice(t)
	require.Zero(t, newestSeq(t, s, "summary"))
	first := note(t, s, "summary")
	require.Equal(t, first, newestSeq(t, s, "summary"))
	require.Equal(t, int64(1), newestSeq(t, s, kernel.SessionOpened))
	beats(t, s, d, 300)
	other, err := k.Attach(ctxb, s.ID())
	require.NoError(t, err)
	require.Equal(t, first, newestSeq(t, other, "summary"), "from the disk")
	second := note(t, other, "summary")
	beats(t, s, d, 3)
	require.Equal(t, second, newestSeq(t, s, "summary"), "of another handle")
	require.Equal(t, second, newestSeq(t, other, "summary"))
}

// Looking again reads what came since, also when there is none.
func TestNewestRemembersHowFarItLooked(t *testing.T) {
	st := &counted{Mem: store.NewMem()}
	k := newKernel(st)
	s, d := opened(t, k), benchDevice(t)
	beats(t, s, d, 1000)
	r, err := k.Resume(ctxb, s.ID(), kernel.Resume{})
	require.NoError(t, err)
	length, err := r.Len(ctxb)
	require.NoError(t, err)
	require.LessOrEqual(t, st.read(func() { require.Zero(t, newestSeq(t, r, "summary")) }), length)
	require.Zero(t, st.read(func() {
		for range 50 {
			note(t, r, "other")
			require.Zero(t, newestSeq(t, r, "summary"))
		}
	}))
}
