package luabind

import (
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// stdLog is std.log: one line a call, secrets masked.
//
//	2026-01-31T09:26:03.512Z warn  retrying {"attempt":2,"kind":"overloaded"}
func stdLog(o StdOptions) *Module {
	m := &Module{
		Name: "std.log",
		Doc:  "Lines for whoever looks after the run. They go to the host's log, never to stdout.",
	}
	for _, level := range []struct{ name, doc string }{
		{"debug", "A line that only a run in dev mode writes."},
		{"info", "A line about what goes on."},
		{"warn", "A line about what went wrong and was handled."},
		{"error", "A line about what went wrong and was not."},
	} {
		m.Funcs = append(m.Funcs, Func{
			Name: level.name,
			Args: []Arg{
				{Name: "message", Kind: Text, Doc: "one line"},
				{Name: "fields", Kind: Table, Optional: true, Doc: "written as JSON after the message"},
			},
			Doc: level.doc,
			Fn:  func(c *Call) (int, error) { return 0, writeLog(c, o, level.name) },
		})
	}
	return m
}

func writeLog(c *Call, o StdOptions, level string) error {
	line := time.Now().UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z ")
	line = append(line, (level + "  ")[:6]...)
	line = append(line, oneLine(o.Mask.Mask(c.String(1)))...) // it has ends of its own
	if c.Given(2) {
		var err error
		if line, err = AppendJSON(append(line, ' '), c.Table(2), &Encoding{Name: "fields"}); err != nil {
			return c.Mistake("%s", err)
		}
	}
	if level == "debug" && !c.VM().Dev() {
		return nil
	}
	out := o.Log
	if out == nil {
		out = c.VM().Config().Stderr
	}
	// A log that cannot be written is no reason to end a run.
	_, _ = io.WriteString(out, o.Mask.Mask(string(line))+"\n")
	return nil
}

// oneLine spells control characters, so that a message stays one line and
// cannot drive a terminal.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, unicode.IsControl) < 0 {
		return text
	}
	var out strings.Builder
	for _, char := range text {
		if unicode.IsControl(char) {
			quoted := strconv.QuoteRune(char)
			out.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		out.WriteRune(char)
	}
	return out.String()
}
