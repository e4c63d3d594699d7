package luabind

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/shapes"
)

// Stubs are the LuaCATS annotations of one module, for an editor: a file that is
// read by a language server and never run.
type Stubs struct {
	Name string // "knl"; "globals" for what needs no require
	Text string
}

// Stubs answers the annotations of the modules that come with the host, and of
// the globals. They are made of what each module publishes as shapes, whether it
// is written in Go or in Lua; a copy that a project has of one is not looked at.
func (vm *VM) Stubs(ctx context.Context) ([]Stubs, error) {
	list := vm.root.CreateTable(0, 0)
	for _, name := range vm.shipped() {
		m, err := vm.RunString(ctx, "=types", fmt.Sprintf(publishedBy, name))
		if err != nil {
			return nil, fmt.Errorf("module %q: %w", name, err)
		}
		list.Append(m[0])
	}
	write, err := vm.RunString(ctx, "types.lua", shapes.TypesSource)
	if err != nil {
		return nil, err
	}
	luacats, err := vm.RunString(ctx, "=types", `return require("embedded.lshape.luacats")`)
	if err != nil {
		return nil, err
	}
	files, err := vm.Run(ctx, write[0], list, luacats[0])
	if err != nil {
		return nil, err
	}
	var stubs []Stubs
	files[0].(*lua.LTable).ForEach(func(_, v lua.LValue) {
		file := v.(*lua.LTable)
		stubs = append(stubs, Stubs{lua.LVAsString(file.RawGetString("name")), lua.LVAsString(file.RawGetString("text"))})
	})
	return stubs, nil
}

// publishedBy answers what a module publishes; the table of lshape holds only
// its parts.
const publishedBy = `local name = %q
local module = require(name)
local shapes = module.shapes or require(name .. ".shapes")
return { name = name:gsub("^embedded%%.", ""), module = module, shapes = shapes }`

// shipped answers what to require for the modules that come with the host.
func (vm *VM) shipped() (names []string) {
	for _, m := range vm.config.Modules {
		if root := rootOf(m.Name); !slices.Contains(names, root) {
			names = append(names, root)
		}
	}
	for _, lib := range vm.embedded() {
		dirs, _ := fs.ReadDir(lib, ".") // what is embedded can be read
		for _, d := range dirs {
			names = append(names, embeddedName+"."+strings.TrimSuffix(d.Name(), ".lua"))
		}
	}
	return names
}
