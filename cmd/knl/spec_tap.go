package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// tapReport is TAP version 14: a line a case, with a YAML block where there is
// more to say, and the plan behind the last.
type tapReport struct {
	out io.Writer
	n   int
}

func (r *tapReport) file(f *specFile) error {
	var b bytes.Buffer
	r.begin(&b)
	for i := range f.Cases {
		r.one(&b, f, &f.Cases[i])
	}
	return written(r.out, &b)
}

// begin writes the version before anything else.
func (r *tapReport) begin(b *bytes.Buffer) {
	if r.n == 0 {
		b.WriteString("TAP version 14\n")
	}
}

func (r *tapReport) one(b *bytes.Buffer, f *specFile, c *specCase) {
	r.n++
	word, directive := "ok", ""
	switch c.Status {
	case casePending:
		directive = " # SKIP " + tapText(c.Message)
	case caseFailed, caseNotRun:
		word = "not ok"
	}
	fmt.Fprintf(b, "%s %d - %s: %s%s\n", word, r.n, tapText(f.File), tapText(c.Name), strings.TrimRight(directive, " "))
	b.WriteString("  ---\n")
	fmt.Fprintf(b, "  duration_ms: %d\n", c.MS)
	if c.Status == caseFailed || c.Status == caseNotRun {
		fmt.Fprintf(b, "  at: %s\n  status: %s\n  message: %s\n", yamlText(c.place(f)), c.Status, yamlText(c.Message))
	}
	if c.Traceback != "" {
		fmt.Fprintf(b, "  traceback: %s\n", yamlText(c.Traceback))
	}
	b.WriteString("  ...\n")
}

func (r *tapReport) end(d *specDoc) error {
	var b bytes.Buffer
	r.begin(&b)
	if d.stopped {
		b.WriteString("Bail out! interrupted\n")
	}
	fmt.Fprintf(&b, "1..%d\n", r.n)
	return written(r.out, &b)
}

// tapText answers text on one line; what TAP would read is escaped.
func tapText(text string) string {
	return strings.NewReplacer(`\`, `\\`, "#", `\#`).Replace(visible(text))
}

// yamlText answers text as a YAML string in double quotes, whose escapes are
// Go's.
func yamlText(text string) string { return strconv.Quote(strings.ToValidUTF8(text, "\uFFFD")) }
