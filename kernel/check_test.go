package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// worn is a store whose payloads cannot be read once it is damaged.
type worn struct {
	store.Store
	damaged bool
	reads   int
}

func (w *worn) Blob(ctx context.Context, hash [32]byte) ([]byte, error) {
	if w.damaged {
		w.reads++
		return nil, fmt.Errorf("a block does not add up: %w", store.ErrCorrupt)
	}
	return w.Store.Blob(ctx, hash)
}

// What a damaged payload was part of is named, each request too, and it is read no more
// often than that takes: a store takes long over what it cannot read.
func TestCheckPassesOverWhatStandsOnDamage(t *testing.T) {
	ctx := context.Background()
	st := &worn{Store: store.NewMem()}
	k := newKernel(st)
	s, err := k.Open(ctx, kernel.Open{Grant: &kernel.Grant{Amount: 99}})
	require.NoError(t, err)
	_, err = s.Append(ctx, userSays(strings.Repeat("long ", 10_000)))
	require.NoError(t, err)
	const beats = 10
	said := make([]any, beats)
	for i := range said {
		said[i] = &kernel.Answer{StopReason: "end_turn", Content: raw(`[{"text":"hm","type":"text"}]`)}
	}
	d, err := kernel.NewDevice(kernel.Config{LLM: replies(said...)})
	require.NoError(t, err)
	for range beats {
		require.Equal(t, kernel.StatusOK, kernel.Beat(ctx, s, d, kernel.BeatOptions{}).Status)
	}
	requireSound(t, k)
	st.damaged = true
	var found []string
	_, _, err = newKernel(st).Check(ctx, func(p kernel.Problem) { found = append(found, p.Rule+" "+p.Text) })
	require.NoError(t, err)
	requests, standing := 0, 0
	for _, text := range found {
		if strings.HasPrefix(text, "I5 ") {
			requests++
		}
		if strings.Contains(text, "stands on the request of event ") {
			standing++
		}
	}
	require.Equal(t, beats, requests, "%v", found)
	require.Equal(t, beats-1, standing, "%v", found)
	require.LessOrEqual(t, st.reads, 2)
}
