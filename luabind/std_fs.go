package luabind

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// stdFS is std.fs: files below the project root, and nothing else. Whatever
// fails raises; stat and exists are there to ask first.
func stdFS(o StdOptions) *Module {
	return &Module{
		Name: "std.fs",
		Doc:  "Files below the project root. Paths and links that lead out of it, or into the folder of a store, are refused.",
		Funcs: append(slices.Clone(fileFuncs), Func{
			Name: "folder", Returns: "std.folder", Fn: folderOf,
			Args: []Arg{pathArg, {Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
				{Name: "links", Kind: Flag, Optional: true, Doc: "follow them, as std.fs does (default false: they are refused)"},
			}}},
			Doc: "The same functions as methods, on the files below a folder, where paths count from it. The folder need not be there yet.",
		}),
		Types: []*Type{folderType},
		Open:  func(vm *VM) (any, error) { return openProject(vm.Config().Project, o.StoreDirs...) },
		Close: func(state any) error { return state.(*projectFiles).Close() },
		Fault: stdFault,
	}
}

// folderType is the files below a folder, as scripts hold them.
var folderType = &Type{
	Name:    "folder",
	Doc:     "The files below a folder: what std.fs has, with paths from that folder. A path that leads out is refused, and so is a link, also one that is put there meanwhile.",
	Methods: fileFuncs,
	Tostring: func(v any) string {
		return fmt.Sprintf("std.folder %q", v.(*projectFiles).base)
	},
}

var (
	pathArg = Arg{Name: "path", Kind: Text, Doc: "from the project root; an absolute path must lie inside it"}
	textArg = Arg{Name: "text", Kind: Text, Doc: "any bytes"}
)

// fileFuncs are the functions of std.fs and the methods of a folder.
var fileFuncs = []Func{
	{Name: "read", Returns: "string, true?", Fn: readFile,
		Args: []Arg{pathArg, {Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
			{Name: "max_bytes", Kind: Whole, Optional: true, Doc: "read no more than that; the cut lies between characters"},
			{Name: "utf8", Kind: Flag, Optional: true, Doc: "refuse bytes that are no UTF-8, and zero bytes (default false)"},
		}}},
		Doc: "The bytes of a file, and true when max_bytes cut it. Without max_bytes a file above 64 MB raises; with utf8 (kind validation) one that is no text."},
	{Name: "write", Fn: writeFile,
		Args: []Arg{pathArg, textArg, {Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
			{Name: "expect", Kind: Text, Optional: true, Doc: "what the file must hold"},
		}}},
		Doc: "Puts text in place of the file, in one step: a reader never sees half of it. It keeps its permissions; one that may not be written stays. " +
			"With expect nothing is written to a file that holds something else (kind conflict): writers take turns, also those of other knl processes, so no change of another is lost."},
	{Name: "append", Args: []Arg{pathArg, textArg}, Fn: appendFile,
		Doc: "Adds text to the end of the file, which is made when it is missing."},
	{Name: "list", Returns: "{ name: string, kind: string, size: integer }[]", Fn: listFolder,
		Args: []Arg{{Name: "path", Kind: Text, Optional: true, Doc: "a folder (default: the root)"}},
		Doc:  "What is in a folder, sorted by name. kind is file, folder, link, pipe, socket or device; size is bytes."},
	{Name: "glob", Args: []Arg{{Name: "pattern", Kind: Text, Doc: "from the project root"}}, Returns: "string[]", Fn: globFiles,
		Doc: "The paths that match, sorted: * ? [a-z] within a part, ** for any number of folders, up to 100."},
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
}

// filesOf answers the files of a call: those of the folder whose method it is.
func filesOf(c *Call) *projectFiles {
	if c.at.self != nil {
		return Self[*projectFiles](c)
	}
	return c.State().(*projectFiles)
}

func folderOf(c *Call) (int, error) {
	files, err := filesOf(c).below(c.String(1), !c.Options(2).Bool("links", false))
	if err != nil {
		return 0, err
	}
	return c.Return(c.VM().Wrap(folderType, files))
}

// blockFor runs fn outside the baton and hands its value on.
func blockFor[T any](c *Call, fn func(ctx context.Context) (T, error)) (value T, err error) {
	err = c.Block(func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

func readFile(c *Call) (int, error) {
	files := filesOf(c)
	name, opts := c.String(1), c.Options(2)
	limit := opts.Int("max_bytes", readLimit)
	if limit < 0 || limit > 1<<40 {
		return 0, c.Mistake("option %q: got %d, want 0 or more", "max_bytes", limit)
	}
	var more bool
	data, err := blockFor(c, func(context.Context) (data []byte, err error) {
		data, more, err = files.read(name, limit)
		return data, err
	})
	switch {
	case err != nil:
		return 0, err
	case more && !opts.Has("max_bytes"):
		return 0, &stdError{kind: ioFault, text: tooLarge(name)}
	}
	if at := notText(data); at >= 0 && opts.Bool("utf8", false) {
		return 0, &stdError{kind: badText, text: fmt.Sprintf("%q: is no UTF-8 text: byte %d is 0x%02x", name, at+1, data[at])}
	}
	if more {
		return c.Return(lua.LString(data), lua.LTrue)
	}
	return c.Return(lua.LString(data))
}

// notText answers where data stops being text, -1 where it does not: at a byte
// that is no UTF-8, or at a zero byte.
func notText(data []byte) int {
	for i := 0; i < len(data); {
		if c := data[i]; c == 0 {
			return i
		} else if c < utf8.RuneSelf {
			i++
			continue
		}
		char, size := utf8.DecodeRune(data[i:])
		if char == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func writeFile(c *Call) (int, error) {
	files := filesOf(c)
	name, text, opts := c.String(1), content{text: c.String(2)}, c.Options(3)
	if opts.Has("expect") {
		expect := opts.String("expect", "")
		text.expect = &expect
	}
	return 0, c.Block(func(ctx context.Context) error { return files.write(ctx, name, text) })
}

func appendFile(c *Call) (int, error) {
	files := filesOf(c)
	name, text := c.String(1), c.String(2)
	return 0, c.Block(func(ctx context.Context) error { return files.append(ctx, name, text) })
}

func listFolder(c *Call) (int, error) {
	files := filesOf(c)
	name := c.OptString(1, ".")
	entries, err := blockFor(c, func(context.Context) ([]fileInfo, error) { return files.list(name) })
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
	files := filesOf(c)
	pattern := c.String(1)
	if want := globFault(pattern); want != "" {
		return 0, c.ArgMistake(1, want)
	}
	paths, err := blockFor(c, func(ctx context.Context) ([]string, error) { return files.glob(ctx, pattern) })
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
	files := filesOf(c)
	name := c.String(1)
	return blockFor(c, func(context.Context) (fs.FileInfo, error) { return files.stat(name) })
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
	files := filesOf(c)
	name := c.String(1)
	return 0, c.Block(func(context.Context) error { return files.mkdir(name) })
}

func removeFile(c *Call) (int, error) {
	files := filesOf(c)
	name, recursive := c.String(1), c.Options(2).Bool("recursive", false)
	removed, err := blockFor(c, func(ctx context.Context) (bool, error) { return files.remove(ctx, name, recursive) })
	if err != nil {
		return 0, err
	}
	return c.Return(lua.LBool(removed))
}

func copyFiles(c *Call) (int, error) {
	files := filesOf(c)
	from, to := c.String(1), c.String(2)
	return 0, c.Block(func(ctx context.Context) error { return files.copy(ctx, from, to) })
}
