package main

import (
	"io"
	"os"

	"github.com/charmbracelet/x/term"
)

// terminal answers how a script reads a line of the human who started it; nil
// when stdin or stderr is no terminal. The file is opened anew for each line:
// closing it ends the wait, and stdin stays as it is.
func terminal() func() (io.ReadCloser, error) {
	if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stderr.Fd()) {
		return nil
	}
	return func() (io.ReadCloser, error) { return os.Open("/dev/tty") }
}
