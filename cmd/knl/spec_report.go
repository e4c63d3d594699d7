package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// specReporter writes the report of a run of specs in one form.
type specReporter interface {
	file(*specFile) error // after each file
	end(*specDoc) error
}

// specReports are the reports of one run: one on stdout and, with -o, one in a
// file.
type specReports struct {
	all []specReporter
	to  *os.File // nil without -o
}

func (a *app) specReports(f specFlags) (*specReports, error) {
	text := &textReport{ui: a.ui, all: f.verbose || f.list}
	if f.report == "" {
		return &specReports{all: []specReporter{specForm(f.format, a.ui, text)}}, nil
	}
	file, err := os.Create(f.report)
	if err != nil {
		return nil, misuse("", "-o: %s", err)
	}
	to := &ui{out: file, err: a.ui.err}
	inFile := &textReport{ui: to, all: text.all}
	return &specReports{all: []specReporter{text, specForm(f.format, to, inFile)}, to: file}, nil
}

// specForm answers the reporter of a form, which writes to the ui.
func specForm(format string, to *ui, text *textReport) specReporter {
	switch format {
	case "tap":
		return &tapReport{out: to.out}
	case "junit":
		return &junitReport{out: to.out}
	case "json":
		return jsonReport{to}
	}
	return text
}

func (r *specReports) file(f *specFile) (err error) {
	for _, one := range r.all {
		err = errors.Join(err, one.file(f))
	}
	return err
}

func (r *specReports) end(d *specDoc) (err error) {
	for _, one := range r.all {
		err = errors.Join(err, one.end(d))
	}
	return errors.Join(err, r.close())
}

func (r *specReports) close() error {
	if r.to == nil {
		return nil
	}
	to := r.to
	r.to = nil
	return to.Close()
}

// jsonReport is the whole run as one document.
type jsonReport struct{ ui *ui }

func (jsonReport) file(*specFile) error   { return nil }
func (r jsonReport) end(d *specDoc) error { return r.ui.json(d) }

// textReport is for eyes: the cases that did not pass, or all, and a last line.
type textReport struct {
	ui  *ui
	all bool
}

// caseWords are how the ends of a case are written.
var caseWords = map[string]string{
	casePassed: "ok     ", caseFailed: "FAILED ", casePending: "pending", caseNotRun: "not run", caseListed: "",
}

func (r *textReport) file(f *specFile) error {
	for i := range f.Cases {
		c := &f.Cases[i]
		if !r.all && c.Status == casePassed {
			continue
		}
		if err := r.one(f, c); err != nil {
			return err
		}
	}
	return nil
}

func (r *textReport) one(f *specFile, c *specCase) error {
	word := caseWords[c.Status]
	if word != "" {
		word = r.ui.style(specStyles[c.Status], word) + "  "
	}
	text := fmt.Sprintf("%s%s: %s", word, visible(c.place(f)), visible(c.Name))
	if c.Status == caseListed {
		for _, tag := range c.Tags {
			text += " [" + visible(tag) + "]"
		}
	}
	for _, more := range []string{c.Message, c.Traceback} {
		if more != "" {
			text += "\n" + indent(more)
		}
	}
	return r.ui.line("%s", text)
}

// place answers file:line of a case.
func (c *specCase) place(f *specFile) string {
	file := c.File
	if file == "" {
		file = f.File
	}
	if c.Line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, c.Line)
}

func (r *textReport) end(d *specDoc) error {
	files := count(int64(len(d.Files)), "file")
	if d.listed > 0 {
		text := count(int64(d.listed), "case") + " in " + files
		if d.Failed > 0 {
			text += fmt.Sprintf(", %d failed", d.Failed)
		}
		return r.ui.line("%s", text)
	}
	parts := []string{fmt.Sprintf("%d passed", d.Passed), fmt.Sprintf("%d failed", d.Failed), fmt.Sprintf("%d pending", d.Pending)}
	if d.NotRun > 0 {
		parts = append(parts, fmt.Sprintf("%d not run", d.NotRun))
	}
	text := strings.Join(parts, ", ") + " in " + files
	if d.left > 0 {
		text += fmt.Sprintf(", %s not begun", count(int64(d.left), "file"))
	}
	return r.ui.line("%s, %s", text, d.took.Round(time.Millisecond))
}

// reportText answers what is said of a case, in one text.
func (c *specCase) reportText() string {
	return strings.TrimRight(strings.Join([]string{c.Message, c.Traceback}, "\n"), "\n")
}

// written writes what b holds, in one write.
func written(w io.Writer, b *bytes.Buffer) error {
	_, err := w.Write(b.Bytes())
	return err
}
