package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/luabind"
)

const specUsage = `Runs Lua specs: the named files, and every *_spec.lua below the named folders
(default: the folder spec, else the working directory). Each file runs in a
fresh VM on a fresh store in memory; the vocabulary is require("spec"), its
words are globals. Specs run in dev mode, with every shape checked; --prod runs
them as a user's script runs.

What specs print goes to stderr. Exits 1 when a case fails.

JSON:
  { "ok", "passed", "failed", "pending", "files": [ { "file", "cases": [
    { "name", "status": "passed" | "failed" | "pending", "line"?, "ms", "message"?,
      "traceback"? } ] } ] }`

// specFlags are the flags of knl spec.
type specFlags struct {
	prod    bool
	filter  string
	tags    []string
	skip    []string
	verbose bool
	timeout time.Duration
}

func specCommand(a *app) *cobra.Command {
	var f specFlags
	cmd := &cobra.Command{
		Use:   "spec [path…]",
		Short: "Run Lua specs",
		Long:  specUsage,
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.spec(ctx, args, f)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.prod, "prod", false, "run without the checks of dev mode")
	flags.StringVar(&f.filter, "filter", "", "run the cases whose full name contains this text")
	flags.StringSliceVar(&f.tags, "tag", nil, "run the cases with one of these tags")
	flags.StringSliceVar(&f.skip, "skip-tag", nil, "leave out the cases with one of these tags")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print every case, not only those that failed")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "end a file that runs longer")
	return cmd
}

// specDoc is the JSON of a run of specs.
type specDoc struct {
	OK      bool       `json:"ok"`
	Passed  int        `json:"passed"`
	Failed  int        `json:"failed"`
	Pending int        `json:"pending"`
	Files   []specFile `json:"files"`
}

type specFile struct {
	File  string     `json:"file"`
	Cases []specCase `json:"cases"`
}

type specCase struct {
	Name      string `json:"name"`
	Status    string `json:"status"`
	Line      int    `json:"line,omitempty"`
	MS        int64  `json:"ms"`
	Message   string `json:"message,omitempty"`
	Traceback string `json:"traceback,omitempty"`
}

func (a *app) spec(ctx context.Context, paths []string, f specFlags) error {
	files, err := specFiles(paths)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	began := time.Now()
	doc := specDoc{Files: []specFile{}}
	for _, path := range files {
		file := specFile{path, a.specCases(ctx, path, f)}
		if interrupted(ctx) {
			return &fault{code: exitInterrupted, err: errInterrupted}
		}
		doc.add(file)
		if err := a.specReport(file, f.verbose); err != nil {
			return err
		}
	}
	return a.specEnd(&doc, time.Since(began))
}

func (d *specDoc) add(f specFile) {
	d.Files = append(d.Files, f)
	for _, c := range f.Cases {
		switch c.Status {
		case "passed":
			d.Passed++
		case "pending":
			d.Pending++
		default:
			d.Failed++
		}
	}
	d.OK = d.Failed == 0
}

// specReport prints the cases of one file.
func (a *app) specReport(f specFile, all bool) error {
	if a.flags.json {
		return nil
	}
	for _, c := range f.Cases {
		if !all && c.Status == "passed" {
			continue
		}
		style, ok := map[string]string{"passed": "ok     ", "pending": "pending"}[c.Status]
		if !ok {
			style = "FAILED "
		}
		if err := a.ui.line("%s  %s: %s", a.ui.style(specStyles[c.Status], style), visible(f.File), visible(c.Name)); err != nil {
			return err
		}
		for _, text := range []string{c.Message, c.Traceback} {
			if text == "" {
				continue
			}
			if err := a.ui.line("%s", indent(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) specEnd(d *specDoc, took time.Duration) error {
	total := fmt.Sprintf("%d passed, %d failed, %d pending in %s", d.Passed, d.Failed, d.Pending, count(int64(len(d.Files)), "file"))
	var err error
	if a.flags.json {
		err = a.ui.json(d)
	} else {
		err = a.ui.line("%s, %s", total, took.Round(time.Millisecond))
	}
	if err == nil && !d.OK {
		return &fault{code: exitRaised}
	}
	return err
}

// specCases runs one file; what keeps it from running is a failed case of the
// file itself.
func (a *app) specCases(ctx context.Context, path string, f specFlags) []specCase {
	h := a.newHost()
	h.stores.dir, h.stores.mem = memory, store.NewMem()
	s := script{path: path, host: h, stdout: a.ui.err, env: specEnv(!f.prod), limits: luabind.Limits{Time: f.timeout}}
	cases, err := s.spec(ctx, f)
	if err = errors.Join(err, h.stores.close(ctx)); err != nil {
		cases = append(cases, specCase{Name: "the file runs", Status: "failed", Message: err.Error(), Traceback: scriptTrace(err)})
	}
	return cases
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

// spec runs s as a spec. The module spec must offer start(globals), which puts
// its words there, and run{ text, tags?, skip_tags? }, which runs the cases that
// were described and answers a list of { name, status, line, ms, message?,
// traceback? }.
func (s *script) spec(ctx context.Context, f specFlags) (cases []specCase, err error) {
	source, err := os.ReadFile(s.path)
	if err != nil {
		return nil, err
	}
	vm, err := luabind.New(s.config())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, vm.Close()) }()
	vm.SetArgs(s.path, nil)
	if _, err := vm.RunString(ctx, "=spec", `require("spec").start(_G)`); err != nil {
		return nil, err
	}
	if _, err := vm.RunString(ctx, s.path, string(source)); err != nil {
		return nil, err
	}
	values, err := vm.RunString(ctx, "=spec", fmt.Sprintf(`return require("spec").run{ text = %s, tags = %s, skip_tags = %s }`,
		luaText(f.filter), luaList(f.tags), luaList(f.skip)))
	if err != nil {
		return nil, err
	}
	text, err := luabind.AppendJSON(nil, values[0], &luabind.Encoding{Name: "cases"})
	if err != nil || string(text) == "{}" {
		return nil, err
	}
	return cases, json.Unmarshal(text, &cases)
}

// luaText answers s as a Lua string.
func luaText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		fmt.Fprintf(&b, `\%03d`, s[i])
	}
	return b.String() + `"`
}

// luaList answers words as a Lua list, nil when there are none.
func luaList(words []string) string {
	if len(words) == 0 {
		return "nil"
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = luaText(w)
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}

// specFiles answers the spec files at paths, each once, sorted within a folder.
func specFiles(paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
		if info, err := os.Stat("spec"); err == nil && info.IsDir() {
			paths = []string{"spec"}
		}
	}
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, misuse("", "%s: no such file or folder", path)
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, path)
			continue
		}
		below, err := specsBelow(path)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	if len(files) == 0 {
		return nil, misuse("a spec file is named *_spec.lua", "no spec below %s", strings.Join(paths, ", "))
	}
	return slices.Compact(files), nil
}

// specsBelow walks a folder; folders whose name begins with a dot are left out.
func specsBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(d.Name(), "_spec.lua"):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
