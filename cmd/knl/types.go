package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knl-run/knl/luabind"
)

const typesUsage = `Writes LuaCATS annotations of everything that a script can reach, for editors
that use lua-language-server: one file to stdout, or with -o a file (*.lua) or a
folder with one file a module.

  knl types -o .knl/types

and in the project's .luarc.json:

  {
    "runtime.version": "Lua 5.1",
    "workspace.library": [".knl/types"]
  }

With a folder, require("knl") has the type of the module; one file alone holds
the classes (knl.session, knl.outcome, …) and the globals.

JSON:
  { "files": [ { "name", "text" } ] }
  -o: { "files": [ path ] }`

func typesCommand(a *app) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "types",
		Short: "Write annotations for editors",
		Long:  typesUsage,
		Args:  cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error {
			return a.types(ctx, out)
		}),
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this file (*.lua) or folder")
	return cmd
}

// typesFile is the annotations of one module.
type typesFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func (a *app) types(ctx context.Context, out string) error {
	files, err := a.typesFiles(ctx)
	if err != nil {
		return err
	}
	switch {
	case out != "":
		return a.typesWrite(files, out)
	case a.flags.json:
		return a.ui.json(map[string]any{"files": files})
	}
	return a.ui.line("%s", strings.TrimSuffix(typesJoined(files), "\n"))
}

// typesFiles asks the modules of a run what they publish.
func (a *app) typesFiles(ctx context.Context) (files []typesFile, err error) {
	vm, err := luabind.New((&script{stdout: a.ui.err, host: a.newHost()}).config())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, vm.Close()) }()
	stubs, err := vm.Stubs(ctx)
	for _, s := range stubs {
		files = append(files, typesFile{s.Name, s.Text})
	}
	return files, err
}

// typesJoined puts the files into one: each in a block of its own, without its
// answer, and without those that declare nothing.
func typesJoined(files []typesFile) string {
	var b strings.Builder
	b.WriteString("---@meta\n")
	for _, f := range files {
		_, body, _ := strings.Cut(f.Text, "\n")
		if at := strings.LastIndex(body, "\nreturn "); at >= 0 {
			body = body[:at]
		}
		if strings.TrimSpace(body) != "" {
			b.WriteString("\ndo -- " + f.Name + "\n" + body + "\nend\n")
		}
	}
	return b.String()
}

// typesFolder says that out is no name of a folder: one with an ending that is
// not there yet is a file of another kind.
func typesFolder(out string) error {
	info, err := os.Stat(out)
	if (err == nil && info.IsDir()) || strings.HasSuffix(out, "/") {
		return nil
	}
	base := filepath.Base(out)
	if err == nil || strings.LastIndexByte(base, '.') > 0 {
		return misuse("a new folder with a dot in its name ends in /", "-o %s: want a file *.lua or a folder", out)
	}
	return nil
}

func (a *app) typesWrite(files []typesFile, out string) error {
	texts := map[string]string{}
	var order []string
	if strings.HasSuffix(out, ".lua") {
		order, texts[out] = []string{out}, typesJoined(files)
	} else {
		if err := typesFolder(out); err != nil {
			return err
		}
		for _, f := range files {
			path := filepath.Join(out, f.Name+".lua")
			order, texts[path] = append(order, path), f.Text
		}
	}
	for _, path := range order {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(texts[path]), 0o644); err != nil {
			return err
		}
	}
	if a.flags.json {
		return a.ui.json(map[string]any{"files": order})
	}
	if len(order) == 1 {
		a.ui.note("wrote %s", out)
	} else {
		a.ui.note("wrote %d files to %s", len(order), out)
	}
	return nil
}
