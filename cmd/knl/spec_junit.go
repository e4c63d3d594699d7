package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// junitReport is the XML that build servers read: a suite a file.
type junitReport struct {
	out io.Writer
}

type junitRun struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	File     string      `xml:"file,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	File    string     `xml:"file,attr"`
	Line    int        `xml:"line,attr,omitempty"`
	Time    string     `xml:"time,attr"`
	Failure *junitNote `xml:"failure"`
	Error   *junitNote `xml:"error"`
	Skipped *junitNote `xml:"skipped"`
}

type junitNote struct {
	Message string `xml:"message,attr,omitempty"`
	Text    string `xml:",cdata"`
}

func (*junitReport) file(*specFile) error { return nil }

func (r *junitReport) end(d *specDoc) error {
	run := junitRun{Name: "knl spec", Time: seconds(d.took.Milliseconds())}
	for i := range d.Files {
		s := junitOf(&d.Files[i])
		run.add(s)
	}
	if d.left > 0 {
		run.add(junitLeft(d.left))
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	enc := xml.NewEncoder(&b)
	enc.Indent("", "  ")
	if err := enc.Encode(run); err != nil {
		panic("BUG: a report does not encode: " + err.Error())
	}
	b.WriteByte('\n')
	return written(r.out, &b)
}

func (r *junitRun) add(s junitSuite) {
	r.Tests, r.Failures = r.Tests+s.Tests, r.Failures+s.Failures
	r.Errors, r.Skipped = r.Errors+s.Errors, r.Skipped+s.Skipped
	r.Suites = append(r.Suites, s)
}

// junitLeft stands for the files that were not begun: a run that was interrupted
// must not look like one that passed.
func junitLeft(files int) junitSuite {
	const name = "knl spec"
	note := &junitNote{Message: fmt.Sprintf("interrupted: %s not begun", count(int64(files), "file"))}
	return junitSuite{Name: name, Tests: 1, Errors: 1, Time: seconds(0),
		Cases: []junitCase{{Name: "every file is run", Class: name, Time: seconds(0), Error: note}}}
}

func junitOf(f *specFile) junitSuite {
	s := junitSuite{Name: shown(f.File), File: shown(f.File), Tests: len(f.Cases)}
	total := int64(0)
	for i := range f.Cases {
		c := &f.Cases[i]
		total += c.MS
		one := junitCase{Name: shown(c.Name), Class: junitClass(f.File), File: shown(c.File), Line: c.Line, Time: seconds(c.MS)}
		switch c.Status {
		case caseFailed:
			s.Failures++
			one.Failure = &junitNote{visible(firstLine(c.Message)), xmlText(c.placedText(f))}
		case caseNotRun:
			s.Errors++
			one.Error = &junitNote{Message: visible(c.Message)}
		case casePending:
			s.Skipped++
			one.Skipped = &junitNote{Message: visible(c.Message)}
		}
		s.Cases = append(s.Cases, one)
	}
	s.Time = seconds(total)
	return s
}

// placedText is what is said of a case, with its place in front once.
func (c *specCase) placedText(f *specFile) string {
	place, text := c.place(f)+": ", c.reportText()
	if strings.HasPrefix(text, place) {
		return text
	}
	return place + text
}

// junitClass answers "spec.tools_spec" for spec/tools_spec.lua: servers group
// by what stands before the last dot.
func junitClass(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(shown(file), ".lua"), "/", ".")
}

// xmlText is shown without the two characters that are left which XML has not.
func xmlText(text string) string {
	return strings.NewReplacer("\ufffe", "\ufffd", "\uffff", "\ufffd").Replace(shown(text))
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }
