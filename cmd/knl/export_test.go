package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/luabind"
)

// fullDisk is a file that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAnExportThatCannotBeWrittenSaysSoOnce(t *testing.T) {
	ctx := context.Background()
	s, err := kernel.New(store.NewMem(), kernel.Options{}).Open(ctx, kernel.Open{})
	require.NoError(t, err)
	for _, size := range []int{10, 100_000} { // the buffer is full at the end, or before it
		_, err = s.Append(ctx, kernel.Draft{Kind: "note", Data: json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)})
		require.NoError(t, err)
		e := &exporter{session: s, row: &kernel.SessionRow{Session: s.ID()}, mask: &luabind.Masker{}}
		for _, form := range []string{asEvents, asHTML} {
			require.EqualError(t, e.write(ctx, fullDisk{}, form), "no space left", form)
		}
	}
}
