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

A file that was edited since, or that knl vendor did not write, is left as it is
without --force, and named; the others are brought to this version. Exits 1 when
one was left. Nothing is written through a symbolic link.

JSON:
  { "files": [ { "file", "action": "wrote" | "updated" | "kept" | "edited" } ] }
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
	vendorLeaves  = "edited" // and not overwritten
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
	project, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	steps, err := vendorSteps(project, chosen, force)
	for i := range steps {
		err = errors.Join(err, steps[i].do(project))
	}
	if err = errors.Join(err, project.Close()); err != nil {
		return err
	}
	if err := a.vendorReport(steps); err != nil {
		return err
	}
	return vendorLeft(steps)
}

// vendorLeft is the fault of a run that left files as they were edited.
func vendorLeft(steps []vendorStep) error {
	var left []string
	for _, s := range steps {
		if s.Action == vendorLeaves {
			left = append(left, s.File)
		}
	}
	if left == nil {
		return nil
	}
	return &fault{code: exitRaised, hint: "--force overwrites them; the others are as they ship",
		err: fmt.Errorf("edited since, or not written by knl vendor:\n  %s", strings.Join(left, "\n  "))}
}

// vendorSteps answers what is to be done in the project.
func vendorSteps(project *os.Root, chosen []vendored, force bool) (steps []vendorStep, err error) {
	for _, v := range chosen {
		for _, f := range v.files {
			if err := noLink(project, f.place); err != nil {
				return nil, err
			}
			s := vendorStep{File: f.place, Action: vendorWrites, text: stamped(f, v.Name)}
			have, err := project.ReadFile(f.place)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return nil, err
			case string(have) == s.text:
				s.Action = vendorKeeps
			case force || untouched(string(have)):
				s.Action = vendorUpdates
			default:
				s.Action = vendorLeaves
			}
			steps = append(steps, s)
		}
	}
	return steps, nil
}

// noLink refuses a place at or below a symbolic link: what is written there is
// written elsewhere, in another project or in none.
func noLink(project *os.Root, place string) error {
	for at := place; at != "."; at = path.Dir(at) {
		info, err := project.Lstat(at)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return &fault{code: exitRaised, hint: "nothing was written",
				err: fmt.Errorf("%s: is a symbolic link, want a file or folder of the project", at)}
		}
	}
	return nil
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

func (s *vendorStep) do(project *os.Root) error {
	if s.Action == vendorKeeps || s.Action == vendorLeaves {
		return nil
	}
	if err := project.MkdirAll(path.Dir(s.File), 0o777); err != nil {
		return err
	}
	return project.WriteFile(s.File, []byte(s.text), 0o666)
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
