package pebblestore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

// closedTwice is a folder whose store was written and closed two times.
func closedTwice(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "store")
	for n := range int64(2) {
		st, err := Open(dir, Options{})
		require.NoError(t, err)
		_, err = st.Apply(bg, &store.Batch{Appends: []store.Append{{Stream: "s", Expect: n, Records: []store.Record{{Body: []byte("x")}}, State: []byte("s")}}}, store.Now)
		require.NoError(t, err)
		require.NoError(t, st.Close())
	}
	return dir
}

func TestALostEndIsNoticed(t *testing.T) {
	dir := closedTwice(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, closesFile), []byte("3\n"), 0o600)) // as if the third were gone
	_, err := Open(dir, Options{})
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "it was closed 3 times and remembers 2")
	require.ErrorContains(t, err, `remove its file "closes"`)

	st, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	require.Contains(t, st.Lost(), "closed 3 times")
	report, err := st.Check(bg)
	require.NoError(t, err)
	require.Equal(t, "P7 whole: store: "+st.Lost(), report.Damage[0].String())
	head, err := st.Head(bg, "s")
	require.NoError(t, err)
	require.EqualValues(t, 2, head.Seq)
	require.NoError(t, st.Close())
}

func TestACountThatCannotBeReadStopsNobody(t *testing.T) {
	for _, text := range []string{"", "zwei", "\x00\x00"} {
		dir := closedTwice(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, closesFile), []byte(text), 0o600))
		st, err := Open(dir, Options{})
		require.NoError(t, err, "%q", text)
		require.Contains(t, st.Lost(), "cannot be told")
		require.NoError(t, st.Close())
	}
}
