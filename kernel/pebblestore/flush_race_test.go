package pebblestore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

// TestCloseMeetsTheTimer closes stores in the moment in which the timer of a
// lazy batch goes off.
func TestCloseMeetsTheTimer(t *testing.T) {
	for n := range 40 {
		st, err := Open(filepath.Join(t.TempDir(), "store"), Options{})
		require.NoError(t, err)
		st.flush.delay = time.Duration(n) * 50 * time.Microsecond
		_, err = st.Apply(bg, &store.Batch{Appends: []store.Append{{Stream: "s", Records: []store.Record{{Body: []byte("x")}}, State: []byte("s")}}}, store.Lazy)
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		require.NoError(t, st.Close())
	}
}
