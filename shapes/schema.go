package shapes

import (
	"fmt"
	"slices"
)

// Schema is one node of a schema. Its plain data ([Schema.Data]) is what
// require("lshape").check reads; a Schema is not changed once it is made.
type Schema struct {
	Kind string // "prim", "integer", "any", "shape", "array_of", "map_of", "tuple", "one_of", "any_of", "discriminated", "optional", "described", "bounded"

	Prim     string             // of a prim: the name of a Lua type
	Fields   map[string]*Schema // of a shape
	Open     bool               // of a shape: other keys are fine
	Elem     *Schema            // of an array_of
	Key, Val *Schema            // of a map_of
	Values   []any              // of a one_of: strings, numbers, booleans
	Variants []*Schema          // of an any_of
	Tag      string             // of a discriminated: the field that chooses
	Cases    map[string]*Schema // of a discriminated: by the value of that field
	Items    []*Schema          // of a tuple
	Inner    *Schema            // of an optional, a described and a bounded
	Doc      string             // of a described
	Min      *float64           // of a bounded
	MinLen   *float64           // of a bounded

	// Checks do not read these.
	Cats  string // how LuaCATS spells it, where it has a name or a signature
	About string // what a published schema is, one sentence
}

// The schemas without parts.
var (
	Any      = &Schema{Kind: "any"}
	Integer  = &Schema{Kind: "integer"}
	String   = prim("string")
	Number   = prim("number")
	Boolean  = prim("boolean")
	Table    = prim("table")
	Function = prim("function")
	Userdata = prim("userdata")
)

func prim(name string) *Schema { return &Schema{Kind: "prim", Prim: name} }

// Shape answers a table with these fields; an open one may have others.
func Shape(fields map[string]*Schema, open bool) *Schema {
	return &Schema{Kind: "shape", Fields: fields, Open: open}
}

// ArrayOf answers a list of elem.
func ArrayOf(elem *Schema) *Schema { return &Schema{Kind: "array_of", Elem: elem} }

// MapOf answers a table from key to val.
func MapOf(key, val *Schema) *Schema { return &Schema{Kind: "map_of", Key: key, Val: val} }

// Tuple answers a list of exactly these.
func Tuple(items ...*Schema) *Schema { return &Schema{Kind: "tuple", Items: items} }

// AnyOf answers what one of the variants takes.
func AnyOf(variants ...*Schema) *Schema { return &Schema{Kind: "any_of", Variants: variants} }

// OneOf answers a closed list of values.
func OneOf[T any](values ...T) *Schema {
	s := &Schema{Kind: "one_of"}
	for _, v := range values {
		s.Values = append(s.Values, any(v))
	}
	return s
}

// Words answers a closed list of words, the values of a named string type.
func Words[T ~string](values ...T) *Schema {
	s := &Schema{Kind: "one_of"}
	for _, v := range values {
		s.Values = append(s.Values, string(v))
	}
	return s
}

// Discriminated answers shapes that the field tag tells apart.
func Discriminated(tag string, cases map[string]*Schema) *Schema {
	return &Schema{Kind: "discriminated", Tag: tag, Cases: cases}
}

// Optional answers s, or nothing.
func (s *Schema) Optional() *Schema {
	if s.Kind == "optional" {
		return s
	}
	return &Schema{Kind: "optional", Inner: s}
}

// Described answers s with a sentence beside it; none changes nothing.
func (s *Schema) Described(doc string) *Schema {
	if doc == "" {
		return s
	}
	return &Schema{Kind: "described", Inner: s, Doc: doc, Cats: s.Cats}
}

// AtLeast answers s with a smallest number.
func (s *Schema) AtLeast(n float64) *Schema { return &Schema{Kind: "bounded", Inner: s, Min: &n} }

// NotEmpty answers a text or a list s that holds something.
func (s *Schema) NotEmpty() *Schema {
	one := 1.0
	return &Schema{Kind: "bounded", Inner: s, MinLen: &one}
}

// Named answers s under a name of LuaCATS.
func (s *Schema) Named(cats string) *Schema {
	own := *s
	own.Cats = cats
	return &own
}

// Partial answers a shape whose every field may be missing.
func (s *Schema) Partial() *Schema {
	own := *s
	own.Fields, own.Cats = make(map[string]*Schema, len(s.Fields)), ""
	for name, f := range s.Fields {
		own.Fields[name] = f.Optional()
	}
	return &own
}

// With answers a shape with more fields.
func (s *Schema) With(fields map[string]*Schema) *Schema {
	own := *s
	own.Fields = make(map[string]*Schema, len(s.Fields)+len(fields))
	for _, from := range []map[string]*Schema{s.Fields, fields} {
		for name, f := range from {
			own.Fields[name] = f
		}
	}
	return &own
}

// Data answers the plain data of one node. A value is a string, a bool, a
// float64, a []any of those, a *Schema, a []*Schema or a map[string]*Schema.
func (s *Schema) Data() map[string]any {
	d := map[string]any{"kind": s.Kind}
	switch s.Kind {
	case "prim":
		d["prim"] = s.Prim
	case "shape":
		d["fields"], d["open"] = s.Fields, s.Open
	case "array_of":
		d["elem"] = s.Elem
	case "map_of":
		d["key"], d["val"] = s.Key, s.Val
	case "one_of":
		d["values"] = slices.Clone(s.Values)
	case "any_of":
		d["variants"] = s.Variants
	case "discriminated":
		d["tag"], d["variants"] = s.Tag, s.Cases
	case "tuple":
		d["items"] = s.Items
	case "optional":
		d["inner"] = s.Inner
	case "described":
		d["inner"], d["doc"] = s.Inner, s.Doc
	case "bounded":
		d["inner"] = s.Inner
		for name, n := range map[string]*float64{"min": s.Min, "min_len": s.MinLen} {
			if n != nil {
				d[name] = *n
			}
		}
	case "integer", "any":
	default:
		panic(fmt.Sprintf("BUG: shapes: a schema of kind %q", s.Kind))
	}
	for name, text := range map[string]string{"cats": s.Cats, "about": s.About} {
		if text != "" {
			d[name] = text
		}
	}
	return d
}
