package luabind

import (
	"context"
	"io/fs"
	"path"

	lua "github.com/yuin/gopher-lua"
)

// stdFS is std.fs: files below the project root, and nothing else. Whatever
// fails raises; stat and exists are there to ask first.
func stdFS() *Module {
	pathArg := Arg{Name: "path", Kind: Text, Doc: "from the project root; an absolute path must lie inside it"}
	textArg := Arg{Name: "text", Kind: Text, Doc: "any bytes"}
	return &Module{
		Name: "std.fs",
		Doc:  "Files below the project root. Paths and links that lead out of it are refused.",
		Funcs: []Func{
			{Name: "read", Returns: "string, true?", Fn: readFile,
				Args: []Arg{pathArg, {Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
					{Name: "max_bytes", Kind: Whole, Optional: true, Doc: "read no more than that; the cut lies between characters"},
				}}},
				Doc: "The bytes of a file, and true when max_bytes cut it. Without max_bytes a file above 64 MB raises."},
			{Name: "write", Args: []Arg{pathArg, textArg}, Fn: writeFile((*projectFiles).write),
				Doc: "Puts text in place of the file, in one step: a reader never sees half of it."},
			{Name: "append", Args: []Arg{pathArg, textArg}, Fn: writeFile((*projectFiles).append),
				Doc: "Adds text to the end of the file, which is made when it is missing."},
			{Name: "list", Returns: "{ name: string, kind: string, size: integer }[]", Fn: listFolder,
				Args: []Arg{{Name: "path", Kind: Text, Optional: true, Doc: "a folder (default: the root)"}},
				Doc:  "What is in a folder, sorted by name. kind is file, folder, link, pipe, socket or device; size is bytes."},
			{Name: "glob", Args: []Arg{{Name: "pattern", Kind: Text, Doc: "from the project root"}}, Returns: "string[]", Fn: globFiles,
				Doc: "The paths that match, sorted: * ? [a-z] within a part, ** for any number of folders."},
			grepFunc,
			{Name: "stat", Args: []Arg{pathArg}, Returns: "{ kind: string, size: integer, mtime: number, mode: integer }?", Fn: statFile,
				Doc: "What stands at the path, nil when nothing does. mtime is seconds since 1970, mode the permission bits."},
			{Name: "exists", Args: []Arg{pathArg}, Returns: "boolean", Fn: fileExists,
				Doc: "Whether a file or folder stands at the path."},
			{Name: "mkdir", Args: []Arg{pathArg}, Fn: makeFolder,
				Doc: "Makes the folder and those above it; one that is there already is fine."},
			{Name: "remove", Returns: "boolean", Fn: removeFile,
				Args: []Arg{pathArg, {Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
					{Name: "recursive", Kind: Flag, Optional: true, Doc: "a folder with all that is in it"},
				}}},
				Doc: "Removes a file or an empty folder; false when there was nothing."},
			{Name: "copy", Args: []Arg{{Name: "from", Kind: Text, Doc: "a path"}, {Name: "to", Kind: Text, Doc: "a path"}}, Fn: copyFiles,
				Doc: "Copies a file, or a folder with all below it into another. What stands there is replaced file by file."},
		},
		Open:  func(vm *VM) (any, error) { return openProject(vm.Config().Project) },
		Close: func(state any) error { return state.(*projectFiles).Close() },
		Fault: stdFault,
	}
}

func filesOf(c *Call) *projectFiles { return c.State().(*projectFiles) }

// blockFor runs fn outside the baton and hands its value on.
func blockFor[T any](c *Call, fn func(ctx context.Context) (T, error)) (value T, err error) {
	err = c.Block(func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

func readFile(c *Call) (int, error) {
	name, opts := c.String(1), c.Options(2)
	limit := opts.Int("max_bytes", readLimit)
	if limit < 0 || limit > 1<<40 {
		return 0, c.Mistake("option %q: got %d, want 0 or more", "max_bytes", limit)
	}
	var more bool
	data, err := blockFor(c, func(context.Context) (data []byte, err error) {
		data, more, err = filesOf(c).read(name, limit)
		return data, err
	})
	switch {
	case err != nil:
		return 0, err
	case !more:
		return c.Return(lua.LString(data))
	case !opts.Has("max_bytes"):
		return 0, &stdError{kind: ioFault, text: tooLarge(name)}
	}
	return c.Return(lua.LString(data), lua.LTrue)
}

func writeFile(put func(p *projectFiles, name string, data []byte) error) func(*Call) (int, error) {
	return func(c *Call) (int, error) {
		name, data := c.String(1), []byte(c.String(2))
		return 0, c.Block(func(context.Context) error { return put(filesOf(c), name, data) })
	}
}

func listFolder(c *Call) (int, error) {
	name := c.OptString(1, ".")
	entries, err := blockFor(c, func(context.Context) ([]fileInfo, error) { return filesOf(c).list(name) })
	if err != nil {
		return 0, err
	}
	list := TagArray(c.L, c.L.CreateTable(len(entries), 0))
	for _, e := range entries {
		t := c.L.CreateTable(0, 3)
		t.RawSetString("name", lua.LString(e.name))
		setKind(t, e.info)
		list.Append(t)
	}
	return c.Return(list)
}

func setKind(t *lua.LTable, info fs.FileInfo) {
	t.RawSetString("kind", lua.LString(kindOfFile(info.Mode())))
	t.RawSetString("size", lua.LNumber(info.Size()))
}

func globFiles(c *Call) (int, error) {
	pattern := c.String(1)
	if _, err := path.Match(pattern, ""); err != nil {
		return 0, c.ArgMistake(1, `a pattern with every [ closed and no \ at its end`)
	}
	paths, err := blockFor(c, func(ctx context.Context) ([]string, error) { return filesOf(c).glob(ctx, pattern) })
	if err != nil {
		return 0, err
	}
	list := TagArray(c.L, c.L.CreateTable(len(paths), 0))
	for _, p := range paths {
		list.Append(lua.LString(p))
	}
	return c.Return(list)
}

func statOf(c *Call) (fs.FileInfo, error) {
	name := c.String(1)
	return blockFor(c, func(context.Context) (fs.FileInfo, error) { return filesOf(c).stat(name) })
}

func statFile(c *Call) (int, error) {
	info, err := statOf(c)
	if err != nil {
		return 0, err
	}
	if info == nil {
		return c.Return(lua.LNil)
	}
	t := c.L.CreateTable(0, 4)
	setKind(t, info)
	t.RawSetString("mtime", lua.LNumber(float64(info.ModTime().UnixMicro())/1e6))
	t.RawSetString("mode", lua.LNumber(info.Mode().Perm()))
	return c.Return(t)
}

func fileExists(c *Call) (int, error) {
	info, err := statOf(c)
	if err != nil {
		return 0, err
	}
	return c.Return(lua.LBool(info != nil))
}

func makeFolder(c *Call) (int, error) {
	name := c.String(1)
	return 0, c.Block(func(context.Context) error { return filesOf(c).mkdir(name) })
}

func removeFile(c *Call) (int, error) {
	name, recursive := c.String(1), c.Options(2).Bool("recursive", false)
	removed, err := blockFor(c, func(context.Context) (bool, error) { return filesOf(c).remove(name, recursive) })
	if err != nil {
		return 0, err
	}
	return c.Return(lua.LBool(removed))
}

func copyFiles(c *Call) (int, error) {
	from, to := c.String(1), c.String(2)
	return 0, c.Block(func(ctx context.Context) error { return filesOf(c).copy(ctx, from, to) })
}
