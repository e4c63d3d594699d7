package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What one writes never stands in a line that another has begun.
func TestTwoWritersOfAScreen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tty")
	tty, err := os.Create(path)
	require.NoError(t, err)
	s := &screen{tty: tty}
	out, log := &above{tty, s}, &above{tty, s}
	for _, w := range []struct {
		to   *above
		text string
	}{{out, "the answer "}, {out, "is com"}, {log, "warn: slow\n"}, {log, ""}, {out, "ing\n"}, {log, "warn: again\n"}} {
		_, err := fmt.Fprint(w.to, w.text)
		require.NoError(t, err)
	}
	require.NoError(t, tty.Close())
	shown, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "the answer is com\nwarn: slow\ning\nwarn: again\n", string(shown))
}
