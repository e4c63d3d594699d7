package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// screen keeps a few lines at the foot of a terminal while other text scrolls
// above them. Whatever else is written there goes through a writer of it. While
// a line of that text has no end yet, nothing stands below it.
type screen struct {
	tty *os.File

	mu      sync.Mutex
	lines   []string // what is to stand at the foot
	drawn   []int    // the columns of each that stands there
	partial bool     // the text above ends within a line
	writer  *above   // whose line that is
	held    int      // by who writes past the screen
	typed   bool     // whoever reads has got a line, whose end the terminal shows
}

// screen answers the screen of a terminal; nil when u's stderr is none that
// can move its cursor.
func (u *ui) screen() *screen {
	tty, ok := u.err.(*os.File)
	if kind := os.Getenv("TERM"); !ok || !u.errTTY || kind == "" || kind == "dumb" {
		return nil
	}
	return &screen{tty: tty}
}

// above writes to a terminal above the foot. It is still the terminal to whoever
// asks what colours it has. What one writes never stands in a line that another
// has begun.
type above struct {
	term.File
	s *screen
}

// Write implements io.Writer.
func (w *above) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.erase()
	if w.s.partial && w.s.writer != w && len(p) > 0 {
		_, _ = w.s.tty.WriteString("\n")
	}
	n, err := w.File.Write(p)
	if n > 0 {
		w.s.partial, w.s.writer = p[n-1] != '\n', w
	}
	w.s.draw()
	return n, err
}

// above answers a writer to w that spares the foot.
func (s *screen) above(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(f.Fd()) {
		return &above{f, s}
	}
	return w
}

// show sets what stands at the foot.
func (s *screen) show(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(lines, s.lines) {
		return
	}
	s.erase()
	s.lines = lines
	s.draw()
}

// end takes the foot away for good. What follows begins a line of its own.
func (s *screen) end() {
	s.show(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partial {
		_, _ = s.tty.WriteString("\n")
		s.partial = false
	}
}

// hold clears the foot until release: somebody reads from the terminal.
func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.held++
}

func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.partial = s.partial && !s.typed
	s.typed = false
	s.draw()
}

// asked answers open with the foot cleared while what it opened is read from.
func (s *screen) asked(open func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	if open == nil {
		return nil
	}
	return func() (io.ReadCloser, error) {
		in, err := open()
		if err != nil {
			return nil, err
		}
		s.hold()
		return answer{in, s}, nil
	}
}

// answer is what a human types.
type answer struct {
	io.ReadCloser
	s *screen
}

// Read implements io.Reader.
func (a answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if n > 0 && p[n-1] == '\n' {
		a.s.mu.Lock()
		a.s.typed = true
		a.s.mu.Unlock()
	}
	return n, err
}

// Close implements io.Closer.
func (a answer) Close() error {
	defer a.s.release()
	return a.ReadCloser.Close()
}

// erase clears the foot. A terminal that became narrower since has more rows of it.
func (s *screen) erase() {
	if len(s.drawn) == 0 {
		return
	}
	rows := len(s.drawn)
	if width, _, err := term.GetSize(s.tty.Fd()); err == nil && width > 0 {
		rows = 0
		for _, columns := range s.drawn {
			rows += max(1, (columns+width-1)/width)
		}
	}
	fmt.Fprintf(s.tty, "\x1b[%dA\r\x1b[J", rows)
	s.drawn = nil
}

// draw writes the lines at once, each cut so that it takes one row.
func (s *screen) draw() {
	if s.partial || s.held > 0 || len(s.lines) == 0 {
		return
	}
	width, height, err := term.GetSize(s.tty.Fd())
	if err != nil || width < 20 || height < 4 {
		return
	}
	var b bytes.Buffer
	for _, line := range fitted(s.lines, min(height/2, 16)) {
		line = strings.TrimRight(ansi.Truncate(line, width-1, "…"), " ")
		b.WriteString(styled(s.tty, true, faint, line) + "\n")
		s.drawn = append(s.drawn, ansi.StringWidth(line))
	}
	_, _ = s.tty.Write(b.Bytes())
}

// fitted answers at most n lines, the last of which says how many are left out.
func fitted(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return append(slices.Clip(lines[:n-1]), fmt.Sprintf("  and %d more", len(lines)-n+1))
}
