package main

import (
	"io"
	"os"

	"github.com/charmbracelet/x/term"
)

// terminal answers how a script reads a line of the human who started it; nil
// when stdin or stderr is no terminal. The file is opened anew for each line:
// closing it ends the wait, and stdin stays as it is.
// What was typed before is no line of it.
func terminal() func() (io.ReadCloser, error) {
	if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stderr.Fd()) {
		return nil
	}
	return func() (io.ReadCloser, error) { return openTyped("/dev/tty") }
}

// openTyped opens the terminal at path for what is typed from now on.
func openTyped(path string) (io.ReadCloser, error) {
	tty, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	dropTyped(tty)
	return tty, nil
}
