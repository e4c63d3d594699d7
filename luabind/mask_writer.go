package luabind

import (
	"io"
	"strings"
	"sync"
)

// MaskWriter hides secrets in what is written through it, also those that two
// writes share: the beginning of one waits for what follows it. Flush writes
// what waits.
type MaskWriter struct {
	mask *Masker
	mu   sync.Mutex
	to   io.Writer
	held string
}

// Writer answers a writer that hides secrets on the way to w.
func (m *Masker) Writer(w io.Writer) *MaskWriter { return &MaskWriter{mask: m, to: w} }

// Write answers the length of p when all that can be written has been.
func (w *MaskWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, t := w.held+string(p), w.mask.table.Load()
	w.held = ""
	if t != nil {
		cut := t.safe(text)
		text, w.held = t.all.Replace(text[:cut]), text[cut:]
	}
	return len(p), w.put(text)
}

// Flush writes what waits, and hides it when it is a good part of a secret.
func (w *MaskWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.held
	w.held = ""
	return w.put(w.mask.Mask(text))
}

func (w *MaskWriter) put(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w.to, text)
	return err
}

// safe answers up to where text can be masked for good: behind it stands what
// may be the beginning of a secret, and no secret lies across. Of a secret with
// several lines each is one.
func (t *maskTable) safe(text string) int {
	cut := len(text)
	for _, v := range t.values {
		if strings.Contains(v, "\n") {
			continue
		}
		for n := min(len(v)-1, len(text)); n > len(text)-cut; n-- {
			if strings.HasSuffix(text, v[:n]) {
				cut = len(text) - n
			}
		}
	}
	for moved := cut < len(text); moved; {
		moved = false
		for _, v := range t.values {
			from := max(0, cut-len(v)+1)
			if i := strings.Index(text[from:], v); i >= 0 && from+i < cut {
				cut, moved = from+i, true
			}
		}
	}
	return cut
}
