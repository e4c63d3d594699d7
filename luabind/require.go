package luabind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/shapes"
)

// loader is the module table of a VM.
//
// require(name) answers a host module when the name is one (they are reserved:
// a file cannot stand in front of them), else the first of
//
//	<script's folder>/a/b.lua    <script's folder>/a/b/init.lua
//	the same in each folder of Config.Beside
//	<project>/lua/a/b.lua        <project>/lua/a/b/init.lua
//	embedded a/b.lua             embedded a/b/init.lua
//
// for the name "a.b". "embedded.a.b" is always the embedded one, and what is
// embedded requires what is embedded: a file of a project stands in front of it
// for the project alone. A file is run once, whatever names lead to it, and again
// when a script takes a name of it out of package.loaded.
type loader struct {
	loaded  *lua.LTable            // package.loaded, by name
	host    map[string]*lua.LTable // the modules of the host, by name
	byPlace map[string]*file       // by place
	places  *lua.LTable            // package.places: the name a file was required as
	loading []source               // outermost first
}

// embeddedName is the first word of a name that skips the files.
const embeddedName = "embedded"

// source is a module that was found.
type source struct {
	name  string // as it was required
	place string // the name that errors show
	text  string
}

func (vm *VM) openRequire() {
	vm.loader = loader{loaded: vm.root.CreateTable(0, 4), places: vm.root.CreateTable(0, 4), byPlace: map[string]*file{}, host: map[string]*lua.LTable{}}
	g := vm.root.G.Global
	g.RawSetString("require", vm.root.NewFunction(luaRequire))
	pkg := vm.root.CreateTable(0, 4)
	pkg.RawSetString("loaded", vm.loader.loaded)
	pkg.RawSetString("places", vm.loader.places)
	g.RawSetString("package", pkg)
}

// openModules makes the tables of the host modules. "std.sh" is the field sh of
// the module and global std.
func (vm *VM) openModules() error {
	for _, m := range vm.config.Modules {
		t, err := m.table(vm)
		if err != nil {
			return err
		}
		if err := vm.place(m.Name, t); err != nil {
			return err
		}
	}
	if std, ok := vm.loader.loaded.RawGetString("std").(*lua.LTable); ok {
		vm.SetGlobal("std", std)
	}
	return nil
}

// place stores t under its dotted name and in the table of the name before it.
func (vm *VM) place(name string, t *lua.LTable) error {
	if vm.loader.loaded.RawGetString(name) != lua.LNil {
		return fmt.Errorf("module %q is configured twice", name)
	}
	vm.loader.loaded.RawSetString(name, t)
	vm.loader.host[name] = t
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil
	}
	parent, ok := vm.loader.loaded.RawGetString(name[:dot]).(*lua.LTable)
	if !ok {
		parent = vm.root.CreateTable(0, 4)
		if err := vm.place(name[:dot], parent); err != nil {
			return err
		}
	}
	parent.RawSetString(name[dot+1:], t)
	return nil
}

func luaRequire(l *lua.LState) int {
	name, ok := l.Get(1).(lua.LString)
	if !ok {
		raiseAt(l, 1, "require: argument 1: got %s, want the name of a module", show(l.Get(1)))
	}
	t := threadOf(l)
	l.Push(t.require(t.vm.meant(string(name), t.requirer())))
	return 1
}

// requirer answers the file that calls the running host function.
func (t *thread) requirer() (file string) {
	t.eachLevel(func(f *frame) bool {
		if !f.fn.IsG {
			file = f.fn.Proto.SourceName
		}
		return f.fn.IsG
	})
	return file
}

// meant answers the name that a file means: an embedded one means what is
// embedded.
func (vm *VM) meant(name, file string) string {
	shipped := strings.HasPrefix(file, embeddedName+"/") && vm.loader.places.RawGetString(file) != lua.LNil
	path, ok := moduleFile(name)
	if !shipped || !ok {
		return name
	}
	own := embeddedName + "." + name
	if vm.loader.loaded.RawGetString(own) != lua.LNil {
		return own
	}
	if src, _, _ := vm.findEmbedded(path, nil); src == nil {
		return name
	}
	return own
}

// require answers the module, running its file at the first time.
func (t *thread) require(name string) lua.LValue {
	ld := &t.vm.loader
	if v := ld.loaded.RawGetString(name); v != lua.LNil {
		return v
	}
	if v, ours := ld.host[name]; ours { // a script took it out of package.loaded: it has no file to run again
		ld.loaded.RawSetString(name, v)
		return v
	}
	src, looked, err := t.vm.find(name)
	if err != nil {
		raiseAt(t.L, 1, "%s", err)
	}
	if src == nil {
		raiseAt(t.L, 1, "%s", t.vm.notFound(name, looked))
	}
	src.name = strings.TrimPrefix(name, embeddedName+".")
	if ring := ld.ring(src.place); ring != nil {
		raiseAt(t.L, 1, "module %q requires itself: %s", src.name, strings.Join(append(ring, src.name), " -> "))
	}
	f := ld.byPlace[src.place]
	if f == nil || f.names[name] { // new, or a script took the name out of package.loaded
		ld.places.RawSetString(src.place, lua.LString(src.name))
		f = &file{t.load(src), map[string]bool{}}
		ld.byPlace[src.place] = f
	}
	f.names[name] = true
	if now := ld.loaded.RawGetString(name); now != lua.LNil {
		return now // the module stored itself
	}
	ld.loaded.RawSetString(name, f.value)
	return f.value
}

// file is a module that was run.
type file struct {
	value lua.LValue
	names map[string]bool // that it was required by
}

// ring answers the names of the modules that are being loaded, from the one of
// the file at place on, nil when it is not among them.
func (ld *loader) ring(place string) (names []string) {
	for _, s := range ld.loading {
		if s.place == place || names != nil {
			names = append(names, s.name)
		}
	}
	return names
}

// load runs the file of a module; without a result the module is true.
func (t *thread) load(src *source) lua.LValue {
	proto, err := compile(src.place, src.text)
	if err != nil {
		throw(t.L, lua.LString(err.Error()))
	}
	ld := &t.vm.loader
	ld.loading = append(ld.loading, *src)
	defer func() { ld.loading = without(ld.loading, *src) }()
	out, r := t.child().call(t.vm.root.NewFunctionFromProto(proto), []lua.LValue{lua.LString(src.name)})
	if r != nil {
		r.keepTrace()
		r.again()
	}
	if len(out) == 0 || out[0] == lua.LNil {
		return lua.LTrue
	}
	return out[0]
}

// without takes the last one that is src out of list; tasks may load side by
// side.
func without(list []source, src source) []source {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == src {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

// find answers the source of name, or where it looked.
func (vm *VM) find(name string) (src *source, looked []string, err error) {
	file, ok := moduleFile(name)
	if !ok {
		return nil, nil, fmt.Errorf("require: got %q, want words joined by dots (\"policy.window\")", name)
	}
	if rest, only := strings.CutPrefix(file, embeddedName+"/"); only {
		return vm.findEmbedded(rest, nil)
	}
	for _, dir := range vm.searchDirs() {
		for _, tail := range moduleTails {
			path := filepath.Join(dir, filepath.FromSlash(file+tail))
			text, err := os.ReadFile(path)
			if err == nil {
				return &source{place: shortPath(path), text: string(text)}, nil, nil
			}
			if !errors.Is(err, fs.ErrNotExist) && !isNotDir(err) {
				return nil, nil, fmt.Errorf("module %q: %w", name, err)
			}
			looked = append(looked, shortPath(path))
		}
	}
	return vm.findEmbedded(file, looked)
}

var moduleTails = []string{".lua", "/init.lua"}

func (vm *VM) findEmbedded(file string, looked []string) (*source, []string, error) {
	for _, lib := range vm.embedded() {
		for _, tail := range moduleTails {
			if text, err := fs.ReadFile(lib, file+tail); err == nil {
				return &source{place: embeddedName + "/" + file + tail, text: string(text)}, nil, nil
			}
		}
	}
	for _, tail := range moduleTails {
		looked = append(looked, embeddedName+"/"+file+tail)
	}
	return nil, looked, nil
}

// embedded answers what ships with the host: the modules of its caller, and
// those that every VM has.
func (vm *VM) embedded() []fs.FS {
	if vm.config.Embedded == nil {
		return []fs.FS{shapes.FS}
	}
	return []fs.FS{vm.config.Embedded, shapes.FS}
}

func (vm *VM) searchDirs() []string {
	var dirs []string
	if vm.config.ScriptDir != "" {
		dirs = append(dirs, vm.config.ScriptDir)
	}
	dirs = append(dirs, vm.config.Beside...)
	if vm.config.Project != "" {
		dirs = append(dirs, filepath.Join(vm.config.Project, "lua"))
	}
	return dirs
}

// moduleFile answers "a/b" for the name "a.b".
func moduleFile(name string) (string, bool) {
	words := strings.Split(name, ".")
	for _, w := range words {
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return "", false
		}
	}
	return strings.Join(words, "/"), true
}

// notFound names the places that were looked at, and a host module that is near.
func (vm *VM) notFound(name string, looked []string) string {
	text := fmt.Sprintf("module %q not found", name)
	if hint := Suggest(name, vm.moduleNames()); strings.HasPrefix(hint, "did you mean") {
		text += " (" + hint + ")"
	}
	return text + "; looked for\n\t" + strings.Join(looked, "\n\t")
}

// moduleNames answers the names of host modules and of what is embedded.
func (vm *VM) moduleNames() []string {
	names := reserved(vm.config.Modules)
	for _, lib := range vm.embedded() {
		entries, _ := fs.ReadDir(lib, ".")
		for _, e := range entries {
			if name, isLua := strings.CutSuffix(e.Name(), ".lua"); isLua || e.IsDir() {
				names = append(names, name)
			}
		}
	}
	return names
}

func dirOf(path string) string { return filepath.Dir(path) }

// shortPath answers path from the working directory when it lies below it.
func shortPath(path string) string {
	wd, err := os.Getwd()
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func isNotDir(err error) bool { return strings.Contains(err.Error(), "not a directory") }
