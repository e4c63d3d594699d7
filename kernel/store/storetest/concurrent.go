package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

// patience bounds the waits for something that must happen; nothing is measured
// by it.
const patience = 30 * time.Second

// next takes one token, or the end, off a watch.
func next(t *testing.T, ch <-chan struct{}) (open bool) {
	t.Helper()
	select {
	case _, open = <-ch:
		return open
	case <-time.After(patience):
		t.Fatal("watch: no token and no end")
		return false
	}
}

func watchCoalesces(t *testing.T, st store.Store) {
	ch, other := st.Watch(ctx(t), "s"), st.Watch(ctx(t), "other")
	for range 20 {
		grow(t, st, "s", "", "x")
	}
	// Tokens may trail the moves; the count of them never exceeds the moves, and
	// whoever reads after a token sees all of them in the end.
	tokens := 0
	for read := 0; read < 20; tokens++ {
		require.True(t, next(t, ch))
		read = int(seq(t, st, "s"))
	}
	require.LessOrEqual(t, tokens, 20)
	apply(t, st, one(store.Append{Stream: "s", Expect: 20})) // a check moves nothing
	grow(t, st, "other", "", "x")
	require.True(t, next(t, other), "the other watch is woken by its own stream")
}

func watchEndsWithContext(t *testing.T, st store.Store) {
	some, cancel := context.WithCancel(ctx(t))
	ch, stays := st.Watch(some, "s"), st.Watch(ctx(t), "s")
	cancel()
	for next(t, ch) {
	}
	grow(t, st, "s", "", "x")
	require.True(t, next(t, stays))
}

func watchEndsWithStore(t *testing.T, st store.Store) {
	ch := st.Watch(ctx(t), "s")
	grow(t, st, "s", "", "x")
	require.NoError(t, st.Close())
	for next(t, ch) {
	}
}

func oneWinner(t *testing.T, st store.Store) {
	const rounds, rivals = 20, 8
	for round := range int64(rounds) {
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range rivals {
			wg.Go(func() {
				b := one(store.Append{Stream: "s", Expect: round, Records: records("g", fmt.Sprint(i))})
				c, err := st.Apply(ctx(t), b, store.Flush(i%2))
				switch {
				case err == nil && c.Wait(ctx(t)) == nil:
					won.Add(1)
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("rival %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), won.Load())
		require.Equal(t, round+1, seq(t, st, "s"))
	}
}

func disjointAppliers(t *testing.T, st store.Store) {
	const streams, each = 16, 20
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			name := fmt.Sprint("s", i)
			for n := range int64(each) {
				b := one(store.Append{Stream: name, Expect: n, Records: records(fmt.Sprint(n), name)})
				if _, err := st.Apply(ctx(t), b, store.Flush(n%2)); err != nil {
					t.Errorf("%s at %d: %v", name, n, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range streams {
		require.Equal(t, int64(each), seq(t, st, fmt.Sprint("s", i)))
	}
}

func readerBesideWriter(t *testing.T, st store.Store) {
	const total = 200
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := int64(0); n < total; n += 2 {
			b := one(store.Append{Stream: "s", Expect: n, Records: records(fmt.Sprint(n), "x", "y"), State: []byte(fmt.Sprint(n + 2))})
			if _, err := st.Apply(ctx(t), b, store.Lazy); err != nil {
				t.Errorf("writing at %d: %v", n, err)
				return
			}
		}
	})
	defer wg.Wait()
	for seen := int64(0); seen < total; {
		h, err := st.Head(ctx(t), "s")
		require.NoError(t, err)
		if h.Seq > 0 {
			require.Equal(t, fmt.Sprint(h.Seq), string(h.State), "head and state move together")
		}
		rows := read(t, st, "s", 1, 0)
		require.GreaterOrEqual(t, int64(len(rows)), h.Seq, "what a head named is there")
		require.Zero(t, len(rows)%2, "a batch is seen whole")
		for i, r := range rows {
			require.Equal(t, int64(i+1), r.Seq)
		}
		if seen = int64(len(rows)); t.Failed() {
			return
		}
	}
}
