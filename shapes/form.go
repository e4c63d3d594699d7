package shapes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Form is how a Go struct reaches Lua: the fields it shows there, in order. The
// host makes tables of it, and its schema is what they are held against.
type Form struct {
	Name   string // "usage": the schema is published under it
	Doc    string
	Type   reflect.Type
	Fields []Field
	More   map[string]*Schema // fields that the host adds by hand
}

// Field is one field of a Form.
type Field struct {
	Name     string // in Lua
	Doc      string
	Optional bool    // left out when the Go value is zero
	Schema   *Schema // of the value, when it is there
	Form     *Form   // of a struct, of the struct behind a pointer, of the elements of a list
	Index    []int   // in the Go struct
}

// forms builds Forms; a struct inside a struct shows the Form that was built of
// its type last.
type forms struct {
	prefix string // of the names in LuaCATS: "knl."
	byType map[reflect.Type]*Form
	byName map[string]*Form
	words  map[reflect.Type]*Schema // closed lists, by the type of their words
	at     map[string]*Schema       // what is published, by name
}

// NewForm answers the Form of a struct of another package whose fields hold no
// other struct; see [forms.add] for lines.
func NewForm(name, doc string, of any, lines ...string) *Form {
	f := &forms{}
	return f.build(name, doc, of, lines)
}

// add builds the Form of a struct. A field with a JSON tag is shown as the tag
// says; a line "Field name[,omitempty] doc" shows one without, or says more of
// one ("Field - doc" leaves its name alone). Fields in neither are not shown.
func (f *forms) add(name, doc string, of any, lines ...string) *Form {
	form := f.build(name, doc, of, lines)
	f.byType[form.Type], f.byName[name] = form, form
	return form
}

func (f *forms) build(name, doc string, of any, lines []string) *Form {
	form := &Form{Name: name, Doc: doc, Type: reflect.TypeOf(of)}
	said := map[string][2]string{}
	for _, line := range lines {
		goName, rest, _ := strings.Cut(line, " ")
		tag, doc, _ := strings.Cut(rest, " ")
		if _, ok := form.Type.FieldByName(goName); !ok {
			panic(fmt.Sprintf("BUG: shapes: %s has no field %s", form.Type, goName))
		}
		said[goName] = [2]string{tag, doc}
	}
	for _, sf := range reflect.VisibleFields(form.Type) {
		tag := sf.Tag.Get("json")
		line, ok := said[sf.Name]
		if ok && line[0] != "-" {
			tag = line[0]
		}
		if sf.Anonymous || tag == "" {
			continue
		}
		shown, option, _ := strings.Cut(tag, ",")
		field := Field{Name: shown, Doc: line[1], Optional: option == "omitempty", Index: sf.Index}
		field.Schema, field.Form = f.schemaOf(sf.Type)
		form.Fields = append(form.Fields, field)
	}
	return form
}

var rawJSON = reflect.TypeFor[json.RawMessage]()

// schemaOf answers the schema of a Go type, and the Form of the struct in it.
func (f *forms) schemaOf(t reflect.Type) (*Schema, *Form) {
	if t == rawJSON {
		return Any, nil
	}
	if s := f.words[t]; s != nil {
		return s, nil
	}
	switch t.Kind() {
	case reflect.String:
		return String, nil
	case reflect.Bool:
		return Boolean, nil
	case reflect.Int, reflect.Int64:
		return Integer, nil
	case reflect.Float64:
		return Number, nil
	case reflect.Pointer:
		return f.schemaOf(t.Elem())
	case reflect.Slice:
		elem, form := f.schemaOf(t.Elem())
		return ArrayOf(elem), form
	case reflect.Map:
		key, _ := f.schemaOf(t.Key())
		val, _ := f.schemaOf(t.Elem())
		return MapOf(key, val), nil
	case reflect.Struct:
		form := f.byType[t]
		if form == nil { // one without a name: its tags say all
			form = f.build("", "", reflect.Zero(t).Interface(), nil)
			return form.Schema(), form
		}
		if s := f.at[form.Name]; s != nil {
			return s, form
		}
		return form.Schema(), form
	}
	panic(fmt.Sprintf("BUG: shapes: a value of the Go type %s has no shape", t))
}

// As gives a field another schema than its Go type says: a closed list of
// words, what is inside raw JSON.
func (f *Form) As(name string, s *Schema) *Form {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			f.Fields[i].Schema = s
			return f
		}
	}
	panic(fmt.Sprintf("BUG: shapes: form %s has no field %s", f.Name, name))
}

// Plus adds a field that the host fills by hand.
func (f *Form) Plus(name string, s *Schema) *Form {
	if f.More == nil {
		f.More = map[string]*Schema{}
	}
	f.More[name] = s
	return f
}

// Schema answers the shape of the tables that the host makes of f. It is open:
// a later knl may show more.
func (f *Form) Schema() *Schema {
	fields := make(map[string]*Schema, len(f.Fields))
	for _, field := range f.Fields {
		s := field.Schema.Described(field.Doc)
		if field.Optional {
			s = s.Optional()
		}
		fields[field.Name] = s
	}
	return Shape(fields, true).With(f.More)
}

// Closed answers the same shape for tables that scripts make: it has no other
// fields.
func (f *Form) Closed() *Schema {
	s := f.Schema()
	s.Open = false
	return s
}
