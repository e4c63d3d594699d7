package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/luabind"
)

const specUsage = `Runs Lua specs: the named files, and every *_spec.lua below the named folders
(default: the folder spec, else the working directory). Each file runs in a
fresh VM on a fresh store in memory; the vocabulary is require("spec"), its
words are globals. require finds what lies beside the spec file, in the working
directory, and in its lua folder. Specs run in dev mode, with every shape
checked; --prod runs them as a user's script runs.

What specs print goes to stderr. Exits 1 when a case failed, or was not run
because the one before it ended the file: a case that runs longer than
--timeout, or hits a limit; with --list, when a file could not be read or raised.

JSON:
  { "ok", "passed", "failed", "pending", "not_run", "files": [ { "file", "cases": [
    { "name", "status": "passed" | "failed" | "pending" | "not_run" | "listed",
      "file", "line"?, "ms", "tags"?, "message"?, "traceback"? } ] } ] }`

// specFlags are the flags of knl spec.
type specFlags struct {
	prod    bool
	list    bool
	filter  string
	tags    []string
	skip    []string
	verbose bool
	shuffle int64
	timeout time.Duration
	format  string
	report  string
	limits  luabind.Limits // of one case
}

func specCommand(a *app) *cobra.Command {
	var f specFlags
	cmd := &cobra.Command{
		Use:   "spec [path…]",
		Short: "Run Lua specs",
		Long:  specUsage,
	}
	cmd.RunE = a.command(func(ctx context.Context, args []string) error {
		if err := notForSpecs(cmd); err != nil {
			return err
		}
		return a.spec(ctx, args, f)
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.prod, "prod", false, "run without the checks of dev mode")
	flags.BoolVar(&f.list, "list", false, "name the cases, run none")
	flags.StringVar(&f.filter, "filter", "", "run the cases whose full name holds this text, or fits it as a Lua pattern")
	flags.StringSliceVar(&f.tags, "tag", nil, "run the cases with one of these tags")
	flags.StringSliceVar(&f.skip, "skip-tag", nil, "leave out the cases with one of these tags")
	flags.Int64Var(&f.shuffle, "shuffle", -1, "run the cases of a file in another order: the same for the same seed, 0 or more")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "end a file that runs longer")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print every case, not only those that failed")
	flags.StringVar(&f.format, "output", "", "the form of the report: text, tap, junit or json (default text)")
	flags.StringVarP(&f.report, "report", "o", "", "write the report to this file, and text to stdout")
	for _, name := range notSpecFlags {
		flags.String(name, "", "")
		flags.Lookup(name).Hidden = true
	}
	return cmd
}

// notSpecFlags are the global flags that mean nothing to specs: they run on a
// store in memory and choose their ports themselves. Flags of the same names
// stand in front of them, hidden, to refuse them.
var notSpecFlags = []string{"store", "model", "durability"}

func notForSpecs(cmd *cobra.Command) error {
	for _, name := range notSpecFlags {
		if cmd.Flags().Changed(name) {
			return misuse("", "--%s: specs run on a store in memory and choose their ports themselves", name)
		}
	}
	return nil
}

func (a *app) spec(ctx context.Context, paths []string, f specFlags) error {
	if err := a.specMisuse(&f); err != nil {
		return err
	}
	files, err := specFiles(paths)
	if err != nil {
		return err
	}
	reports, err := a.specReports(f)
	if err != nil {
		return err
	}
	defer reports.close()
	ctx, stop := interruptible(ctx)
	defer stop()
	doc := specDoc{Files: []specFile{}, began: time.Now()}
	for i, path := range files {
		if interrupted(ctx) {
			doc.stopped, doc.left = true, len(files)-i
			break
		}
		file := specFile{File: path, Cases: a.specCases(ctx, path, f)}
		doc.add(file)
		if err := reports.file(&file); err != nil {
			return err
		}
	}
	doc.stopped = doc.stopped || interrupted(ctx)
	doc.took = time.Since(doc.began)
	if err := reports.end(&doc); err != nil {
		return err
	}
	return doc.fault(f)
}

// specMisuse answers what is wrong with the flags, and settles the form of the
// report.
func (a *app) specMisuse(f *specFlags) error {
	switch {
	case a.flags.json && f.format != "" && f.format != "json":
		return misuse("", "--json and --output %s: want one form of the report", f.format)
	case a.flags.json && f.report != "":
		return misuse("knl spec --output json -o "+f.report, "--json and -o: --json prints the report on stdout")
	case a.flags.json:
		f.format = "json"
	case f.format == "":
		f.format = "text"
	}
	if err := oneOf("--output", f.format, "text", "tap", "junit", "json"); err != nil {
		return err
	}
	switch {
	case f.list && f.format != "text" && f.format != "json":
		return misuse("", "--list and --output %s: a list is text or json", f.format)
	case f.timeout <= 0:
		return misuse("", "--timeout: got %s, want a time longer than none", f.timeout)
	case f.shuffle < -1:
		return misuse("", "--shuffle: got %d, want a seed, 0 or more", f.shuffle)
	}
	return nil
}

// specDoc is what a run of specs came to, and its JSON.
type specDoc struct {
	OK      bool       `json:"ok"`
	Passed  int        `json:"passed"`
	Failed  int        `json:"failed"`
	Pending int        `json:"pending"`
	NotRun  int        `json:"not_run"`
	Files   []specFile `json:"files"`

	listed  int
	began   time.Time
	took    time.Duration
	stopped bool // by Ctrl-C
	left    int  // files that were not begun
}

type specFile struct {
	File  string     `json:"file"`
	Cases []specCase `json:"cases"`
}

// The ends of a case.
const (
	casePassed  = "passed"
	caseFailed  = "failed"
	casePending = "pending"
	caseNotRun  = "not_run"
	caseListed  = "listed"
)

type specCase struct {
	Name      string   `json:"name"`
	Status    string   `json:"status"`
	File      string   `json:"file"`
	Line      int      `json:"line,omitempty"`
	MS        int64    `json:"ms"`
	Tags      []string `json:"tags,omitempty"`
	Message   string   `json:"message,omitempty"`
	Traceback string   `json:"traceback,omitempty"`
}

func (d *specDoc) add(f specFile) {
	d.Files = append(d.Files, f)
	for _, c := range f.Cases {
		switch c.Status {
		case casePassed:
			d.Passed++
		case casePending:
			d.Pending++
		case caseNotRun:
			d.NotRun++
		case caseListed:
			d.listed++
		default:
			d.Failed++
		}
	}
	d.OK = d.Failed == 0 && d.NotRun == 0
}

// cases answers how many cases were chosen.
func (d *specDoc) cases() int { return d.Passed + d.Failed + d.Pending + d.NotRun + d.listed }

// fault answers what the command ends with.
func (d *specDoc) fault(f specFlags) error {
	switch {
	case d.stopped:
		return &fault{code: exitInterrupted, err: errInterrupted}
	case d.cases() == 0:
		return misuse("knl spec --list names the cases", "no case fits %s", f.choice())
	case !d.OK:
		return &fault{code: exitRaised}
	}
	return nil
}

// choice answers the flags that choose cases.
func (f *specFlags) choice() string {
	var flags []string
	add := func(flag, value string) { flags = append(flags, fmt.Sprintf("%s %q", flag, value)) }
	if f.filter != "" {
		add("--filter", f.filter)
	}
	for _, tag := range f.tags {
		add("--tag", tag)
	}
	for _, tag := range f.skip {
		add("--skip-tag", tag)
	}
	return strings.Join(flags, " ")
}

// specEnv answers the environment with dev mode on or off.
func specEnv(dev bool) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name != "LSHAPE_CHECK" {
			return os.LookupEnv(name)
		}
		return "1", dev
	}
}
