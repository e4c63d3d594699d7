package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newKeyboard answers where to type, and the path of the terminal that reads it.
func newKeyboard(t *testing.T) (keys *os.File, path string) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { keys.Close() })
	conn, err := keys.SyscallConn()
	require.NoError(t, err)
	var n int
	require.NoError(t, conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	require.NoError(t, err)
	return keys, fmt.Sprintf("/dev/pts/%d", n)
}

// What was typed before it was opened is not read, be it lines or half of one.
func TestTerminalForgetsWhatWasTyped(t *testing.T) {
	keys, path := newKeyboard(t)
	kept, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0) // while it is open, what is typed is kept
	require.NoError(t, err)
	defer kept.Close()
	for _, before := range []string{"", "yes\n", "yes\nagain\n", "ye"} {
		_, err := io.WriteString(keys, before)
		require.NoError(t, err)
		in, err := openTyped(path)
		require.NoError(t, err)
		_, err = io.WriteString(keys, "no\n")
		require.NoError(t, err)
		line, err := bufio.NewReader(in).ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "no\n", line, "%q", before)
		require.NoError(t, in.Close())
	}
}

// A pipe keeps what it holds: it is no human who types ahead.
func TestTerminalLeavesAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = io.WriteString(w, "yes\n")
	require.NoError(t, err)
	dropTyped(r)
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "yes\n", line)
	require.NoError(t, r.Close())
	require.NoError(t, w.Close())
}
