package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped throws away what a terminal holds of what was typed; anything else
// keeps what it holds. Fd would make the file one whose reads Close cannot end.
func dropTyped(tty *os.File) {
	if conn, err := tty.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	}
}
