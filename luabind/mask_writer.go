package luabind

import (
	"io"
	"sync"
)

// MaskWriter hides secrets in what is written through it, also those that two
// writes share: the beginning of one waits for what follows it. The piece that a
// cut left is hidden when one write holds it, or the beginning of it waits. Flush
// writes what waits.
type MaskWriter struct {
	mask   *Masker
	mu     sync.Mutex
	to     io.Writer
	held   string
	hidden int  // bytes of held for which the stars are written
	midway bool // what is held follows something on its line
}

// Writer answers a writer that hides secrets on the way to w.
func (m *Masker) Writer(w io.Writer) *MaskWriter { return &MaskWriter{mask: m, to: w} }

// Write answers the length of p when all that can be written has been.
func (w *MaskWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(p), w.pass(w.held+string(p), false)
}

// Flush writes what waits, and hides it when it is a good part of a secret.
func (w *MaskWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(w.held, true)
}

// pass writes what of text can be masked for good and holds the rest.
func (w *MaskWriter) pass(text string, last bool) error {
	var spans []hiddenPart
	open, view := 0, shownText
	if t := w.mask.table.Load(); t != nil {
		view.begins, view.ends = !w.midway, last
		spans, open = t.find(text, view)
	}
	if last {
		open = 0
	}
	cut := len(text) - open
	out, hidden := w.starred(text[:cut], spans)
	w.held, w.hidden = text[cut:], hidden
	if cut > 0 {
		w.midway = !view.cutBefore(text[:cut])
	}
	if out == "" {
		return nil
	}
	_, err := io.WriteString(w.to, out)
	return err
}

// starred masks text, whose first w.hidden bytes are hidden already, and answers
// how many bytes behind it are hidden by the stars that it ends with.
func (w *MaskWriter) starred(text string, spans []hiddenPart) (out string, hidden int) {
	if w.hidden > 0 {
		spans = joined(append(spans, hiddenPart{0, w.hidden}))
	}
	from := 0
	if w.hidden > 0 {
		from, hidden = min(spans[0].to, len(text)), max(0, spans[0].to-len(text))
		spans = spans[1:]
	}
	inside := spans[:0]
	for _, s := range spans {
		if s.from >= len(text) {
			break
		}
		hidden = max(0, s.to-len(text))
		inside = append(inside, hiddenPart{s.from - from, min(s.to, len(text)) - from})
	}
	return starred(text[from:], inside), hidden
}
