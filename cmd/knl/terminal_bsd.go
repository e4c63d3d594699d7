//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped throws away what a terminal holds of what was typed; anything else
// keeps what it holds. Fd would make the file one whose reads Close cannot end.
func dropTyped(tty *os.File) {
	const typed = 1 // FREAD of sys/fcntl.h
	if conn, err := tty.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, typed) })
	}
}
