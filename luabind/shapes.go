package luabind

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/shapes"
)

// Shape is a schema that a module publishes beside those of its options: as
// <module>.shapes.<Name>, and as <module>.<Name> in LuaCATS.
type Shape struct {
	Name, Doc string
	Schema    *shapes.Schema
	Fields    []Arg // in place of Schema: a closed shape of these
}

// book is what the modules of a VM publish, made from their declarations when a
// script first looks at it or a check of dev mode needs it. "knl.views" and
// "knl" publish together, under their root.
type book struct {
	vm      *VM
	named   map[string]*shapes.Schema      // by the name in LuaCATS: "knl.open_opts"
	roots   map[string][]shapes.Named      // by the root, in order
	tables  map[*shapes.Schema]*lua.LTable // one table a schema
	answers map[*Func]answers              // what functions are declared to return
	methods lua.LValue                     // the metatable of lshape's schemas
}

// published answers the book of vm.
func (vm *VM) published() *book {
	if vm.book != nil {
		return vm.book
	}
	b := &book{vm: vm, named: map[string]*shapes.Schema{}, roots: map[string][]shapes.Named{},
		tables: map[*shapes.Schema]*lua.LTable{}, answers: map[*Func]answers{}}
	for _, m := range vm.config.Modules { // names first: the options speak of them
		b.names(m)
	}
	for _, m := range vm.config.Modules {
		b.options(m)
	}
	vm.book = b
	return b
}

func rootOf(module string) string {
	root, _, _ := strings.Cut(module, ".")
	return root
}

// publish gives a schema its name, unless a schema has it.
func (b *book) publish(root, name, doc string, s *shapes.Schema) {
	cats := root + "." + name
	if b.named[cats] != nil {
		return
	}
	if s.Cats != cats {
		s = s.Named(cats)
		s.About = doc
	}
	b.named[cats] = s
	b.roots[root] = append(b.roots[root], shapes.Named{Name: name, Doc: doc, Schema: s})
}

// names publishes what m declares by name, and its handles.
func (b *book) names(m *Module) {
	root := rootOf(m.Name)
	if m.Shapes != nil {
		for _, s := range m.Shapes() {
			if s.Fields != nil {
				s.Schema = b.shape(root, "", s.Fields)
			}
			b.publish(root, s.Name, s.Doc, s.Schema)
		}
	}
	for _, t := range m.Types {
		b.publish(root, t.Name, t.Doc, shapes.Userdata)
	}
}

// options publishes the options tables of the functions and methods of m.
func (b *book) options(m *Module) {
	root := rootOf(m.Name)
	m.Walk(func(place string, f *Func) {
		for i := range f.Args {
			if a := &f.Args[i]; a.Fields != nil {
				name := strings.TrimPrefix(optionsName(root, place, a), root+".")
				b.publish(root, name, "Options of "+place+".", b.shape(root, place, a.Fields))
			}
		}
	})
}

// optionsName answers the name of an options table: that of its declaration,
// else one made of its place: "knl.open_opts", "knl.session_scan_opts".
func optionsName(root, place string, a *Arg) string {
	if a.Type != "" {
		return a.Type
	}
	place = strings.TrimPrefix(place, root+".")
	return root + "." + strings.NewReplacer(".", "_", ":", "_").Replace(place) + "_" + a.Name
}

// shape answers the closed shape of an options table.
func (b *book) shape(root, place string, fields []Arg) *shapes.Schema {
	out := make(map[string]*shapes.Schema, len(fields))
	for i := range fields {
		f := &fields[i]
		s := b.arg(root, place+"."+f.Name, f).Described(f.Doc)
		if f.Optional {
			s = s.Optional()
		}
		out[f.Name] = s
	}
	return shapes.Shape(out, false)
}

// arg answers the schema of an argument or option.
func (b *book) arg(root, place string, a *Arg) *shapes.Schema {
	if a.Fields != nil {
		if s := b.named[optionsName(root, place, a)]; s != nil {
			return s
		}
		return b.shape(root, place, a.Fields)
	}
	if a.Kind == Function {
		return takesFunction.Named(a.LuaType())
	}
	if a.Type == "" {
		return kindSchemas[a.Kind]
	}
	s, err := shapes.ParseType(a.Type, b.lookup)
	if err != nil {
		panic("BUG: luabind: " + place + ": " + err.Error())
	}
	if s.Cats == "" {
		s = s.Named(a.Type)
	}
	return s
}

func (b *book) lookup(name string) *shapes.Schema { return b.named[name] }

// takesFunction is what a host function takes for a function.
var takesFunction = shapes.AnyOf(shapes.Function, shapes.Table, shapes.Userdata)

var kindSchemas = [...]*shapes.Schema{
	Anything:     shapes.Any,
	Text:         shapes.String,
	Number:       shapes.Number,
	Whole:        shapes.Integer,
	Flag:         shapes.Boolean,
	Table:        shapes.Table,
	Function:     takesFunction.Named("function"),
	Seconds:      shapes.Number.AtLeast(0),
	Milliseconds: shapes.Number.AtLeast(0),
	Userdata:     shapes.Userdata,
}
