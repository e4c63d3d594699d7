package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// ui is the only writer to a terminal. A pipe gets plain lines, a terminal the
// same words with style; what a log says never reaches a terminal as a control
// sequence. What a script prints is its own.
type ui struct {
	out, err       io.Writer
	outTTY, errTTY bool
}

func newUI(out, err *os.File) *ui {
	return &ui{out: out, err: err, outTTY: term.IsTerminal(out.Fd()), errTTY: term.IsTerminal(err.Fd())}
}

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	red   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	green = lipgloss.NewStyle().Foreground(lipgloss.Green)
)

// specStyles are the colours of a case.
var specStyles = map[string]lipgloss.Style{"passed": green, "failed": red, "pending": faint}

// styled answers text in a style that the writer's terminal can show.
func styled(w io.Writer, tty bool, s lipgloss.Style, text string) string {
	if !tty {
		return text
	}
	var b bytes.Buffer
	down := colorprofile.Writer{Forward: &b, Profile: colorprofile.Detect(w, os.Environ())}
	_, _ = down.WriteString(s.Render(text))
	return b.String()
}

func (u *ui) style(s lipgloss.Style, text string) string { return styled(u.out, u.outTTY, s, text) }

// line prints one line of result.
func (u *ui) line(format string, args ...any) error {
	_, err := fmt.Fprintf(u.out, format+"\n", args...)
	return err
}

// note prints what is no result: a line, and what stands behind it (a traceback)
// indented.
func (u *ui) note(format string, args ...any) {
	text, behind, more := strings.Cut(fmt.Sprintf(format, args...), "\n")
	text = visible(text)
	if more {
		text += "\n" + indent(strings.ReplaceAll(behind, "\t", ""))
	}
	fmt.Fprintln(u.err, styled(u.err, u.errTTY, faint, text))
}

// json prints v as one JSON document on one line.
func (u *ui) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: a result does not encode: " + err.Error())
	}
	_, err := u.out.Write(b.Bytes())
	return err
}

// end says how a command ended and answers its exit code.
func (u *ui) end(name string, err error) int {
	if err == nil {
		return exitDone
	}
	f := asFault(err)
	if f.err != nil {
		prefix := "knl: "
		if name != "knl" {
			prefix += name + ": "
		}
		fmt.Fprintln(u.err, styled(u.err, u.errTTY, red, prefix)+shown(textOf(f.err)))
		u.trace(scriptTrace(f.err))
	}
	if f.hint != "" {
		fmt.Fprintln(u.err, styled(u.err, u.errTTY, faint, "hint: ")+visible(f.hint))
	}
	return f.code
}

// trace prints the Lua frames that an error came through.
func (u *ui) trace(frames string) {
	for line := range strings.Lines(frames) {
		fmt.Fprintln(u.err, styled(u.err, u.errTTY, faint, "  "+visible(strings.TrimSpace(line))))
	}
}

// table prints rows under their heads: aligned words on a pipe, a styled table
// on a terminal.
func (u *ui) table(heads []string, rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = visible(cell)
		}
	}
	if u.outTTY {
		return u.styledTable(heads, rows)
	}
	w := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func (u *ui) styledTable(heads []string, rows [][]string) error {
	t := table.New().Headers(heads...).Rows(rows...).Border(lipgloss.HiddenBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderHeader(false).
		StyleFunc(func(row, _ int) lipgloss.Style {
			if row == table.HeaderRow {
				return bold
			}
			return lipgloss.NewStyle()
		})
	w := colorprofile.NewWriter(u.out, os.Environ())
	_, err := fmt.Fprintln(w, t.String())
	return err
}

// cut answers text on one line of at most n characters, and how much is left
// out.
func cut(text string, n int) string {
	text = visible(text)
	at, count := 0, 0
	for i := range text {
		if count == n {
			at = i
			break
		}
		count++
	}
	if count < n || at == 0 {
		return text
	}
	return fmt.Sprintf("%s… (+%d bytes)", text[:at], len(text)-at)
}

// visible answers text on one line, without control characters: they are
// written as escapes.
func visible(text string) string { return escaped(text, "") }

// shown is visible for text of many lines: line feeds and tabs stay.
func shown(text string) string { return escaped(text, "\n\t") }

func escaped(text, keep string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) && !strings.ContainsRune(keep, r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || bidi(r) }

// bidi says whether r changes the direction of the text behind it.
func bidi(r rune) bool { return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' }

// indent answers text of many lines with each one moved in.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(shown(text), "\n"), "\n", "\n  ")
}

func clock(ms int64) string { return time.UnixMilli(ms).Format("2006-01-02 15:04:05") }
