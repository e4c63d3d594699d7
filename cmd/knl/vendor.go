package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/lua"
	"github.com/knl-run/knl/shapes"
	"github.com/knl-run/knl/spec"
)

const vendorUsage = `Writes modules that ship with knl into the project, to be edited there: the
module into lua/, its specs into spec/. require then finds the copy;
require("embedded.policy") stays the original, and what ships goes on using what
ships. knl spec runs the specs of the copy.

A file that was edited since, or that knl vendor did not write, is not
overwritten without --force. One that was not edited is brought to this
version.

JSON:
  { "files": [ { "file", "action": "wrote" | "updated" | "kept" } ] }
  --list: { "modules": [ { "name", "about", "files", "specs" } ] }`

func vendorCommand(a *app) *cobra.Command {
	var list, force bool
	cmd := &cobra.Command{
		Use:   "vendor module…",
		Short: "Write modules that ship with knl into the project",
		Long:  vendorUsage,
		RunE: a.command(func(_ context.Context, args []string) error {
			switch {
			case list && len(args) > 0:
				return misuse("", "--list and %q: want one of them", args[0])
			case list:
				return a.vendorList()
			case len(args) == 0:
				return misuse("knl vendor --list names the modules", "got no module")
			}
			return a.vendor(args, force)
		}),
	}
	cmd.Flags().BoolVar(&list, "list", false, "list what can be vendored")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite files that were edited")
	return cmd
}

// vendored is a module that can be written into a project.
type vendored struct {
	Name  string `json:"name"`
	About string `json:"about"` // the first line of its init.lua
	Files int    `json:"files"`
	Specs int    `json:"specs"`
	files []vendorFile
}

// vendorFile is one file of it.
type vendorFile struct {
	place string // in the project
	text  string // as it ships
}

// vendorables answers the modules that ship, by name.
func vendorables() (all []vendored) {
	for _, lib := range []fs.FS{lua.FS, shapes.FS} {
		dirs, err := fs.ReadDir(lib, ".")
		mustShip(err)
		for _, d := range dirs {
			if d.IsDir() {
				all = append(all, shipped(lib, d.Name()))
			}
		}
	}
	slices.SortFunc(all, func(a, b vendored) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// shipped reads a module and the specs that are named for it.
func shipped(lib fs.FS, name string) vendored {
	v := vendored{Name: name}
	mustShip(fs.WalkDir(lib, name, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		v.files = append(v.files, vendorFile{path.Join("lua", at), readShipped(lib, at)})
		return nil
	}))
	v.Files = len(v.files)
	specs, err := fs.Glob(spec.FS, name+"_*spec.lua")
	mustShip(err)
	for _, at := range specs {
		v.files = append(v.files, vendorFile{path.Join("spec", at), readShipped(spec.FS, at)})
	}
	v.Specs = len(specs)
	v.About = aboutOf(readShipped(lib, name+"/init.lua"))
	return v
}

// aboutOf answers what stands behind the name in the first line of a module.
func aboutOf(text string) string {
	_, about, _ := strings.Cut(firstLine(text), ": ")
	return strings.TrimSuffix(about, ".")
}

func readShipped(lib fs.FS, at string) string {
	text, err := fs.ReadFile(lib, at)
	mustShip(err)
	return string(text)
}

// mustShip: what is inside the binary can be read.
func mustShip(err error) {
	if err != nil {
		panic("BUG: reading what ships: " + err.Error())
	}
}

func (a *app) vendorList() error {
	all := vendorables()
	if a.flags.json {
		return a.ui.json(map[string]any{"modules": all})
	}
	rows := make([][]string, len(all))
	for i, v := range all {
		rows[i] = []string{v.Name, count(int64(v.Files), "file"), count(int64(v.Specs), "spec"), v.About}
	}
	return a.ui.table([]string{"MODULE", "FILES", "SPECS", "ABOUT"}, rows)
}

// chosenVendored answers the modules of these names.
func chosenVendored(names []string) (chosen []vendored, err error) {
	all := vendorables()
	var known []string
	for _, v := range all {
		known = append(known, v.Name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, unknownVendored(name, known)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func unknownVendored(name string, known []string) error {
	first, _, inner := strings.Cut(name, ".")
	if inner && slices.Contains(known, first) {
		return misuse("knl vendor "+first, "%q is a part of a module, and a module is vendored whole", name)
	}
	return misuse("knl vendor --list names the modules", "no module %q ships%s", name, near(name, known))
}

// What vendor does with a file.
const (
	vendorWrites  = "wrote"
	vendorUpdates = "updated"
	vendorKeeps   = "kept"
)

type vendorStep struct {
	File   string `json:"file"`
	Action string `json:"action"`
	text   string
}

func (a *app) vendor(names []string, force bool) error {
	chosen, err := chosenVendored(names)
	if err != nil {
		return err
	}
	steps, edited, err := vendorSteps(chosen)
	if err != nil {
		return err
	}
	if len(edited) > 0 && !force {
		return &fault{code: exitRaised, hint: "--force overwrites them; nothing was written",
			err: fmt.Errorf("edited since, or not written by knl vendor:\n  %s", strings.Join(edited, "\n  "))}
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return err
		}
	}
	return a.vendorReport(steps)
}

// vendorSteps answers what is to be done, and the files that were edited.
func vendorSteps(chosen []vendored) (steps []vendorStep, edited []string, err error) {
	for _, v := range chosen {
		for _, f := range v.files {
			s := vendorStep{File: f.place, Action: vendorWrites, text: stamped(f, v.Name)}
			have, err := os.ReadFile(filepath.FromSlash(f.place))
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return nil, nil, err
			case string(have) == s.text:
				s.Action = vendorKeeps
			default:
				s.Action = vendorUpdates
				if !untouched(string(have)) {
					edited = append(edited, f.place)
				}
			}
			steps = append(steps, s)
		}
	}
	return steps, edited, nil
}

// stamp is the first line of a vendored file; it tells the version, and whether
// what follows is as it was written.
var stamp = regexp.MustCompile(`^-- Vendored from knl \S+ \([^)]*, sha256 ([0-9a-f]{16})\).*\n`)

// stamped answers the text of a file as it is written for a module.
func stamped(f vendorFile, module string) string {
	return fmt.Sprintf("-- Vendored from knl %s (knl vendor %s, sha256 %s): yours to edit.\n%s",
		strings.Trim(version(), "()"), module, sumOf(f.text), f.text)
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// untouched says whether a file is as knl vendor wrote it, in any version.
func untouched(text string) bool {
	m := stamp.FindStringSubmatch(text)
	return m != nil && m[1] == sumOf(text[len(m[0]):])
}

func (s *vendorStep) do() error {
	if s.Action == vendorKeeps {
		return nil
	}
	to := filepath.FromSlash(s.File)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(s.text), 0o666)
}

func (a *app) vendorReport(steps []vendorStep) error {
	if a.flags.json {
		return a.ui.json(map[string]any{"files": steps})
	}
	for _, s := range steps {
		if err := a.ui.line("%-7s  %s", s.Action, s.File); err != nil {
			return err
		}
	}
	return nil
}
