package shapes

import (
	"fmt"
	"strings"
)

// ParseType reads a LuaCATS type as a schema; lookup answers the schema of a
// name that is not Lua's own, or nil. It knows unions, T?, T[], table<K, V>,
// fun(…), { k: T, k2?: U }, literals, [A, B] and parentheses.
func ParseType(text string, lookup func(name string) *Schema) (*Schema, error) {
	p := &typeParser{text: text, lookup: lookup}
	s := p.union()
	if p.skip(); p.err == nil && p.text != "" {
		p.fail("got %q behind the type", p.text)
	}
	if p.err != nil {
		return nil, fmt.Errorf("type %q: %w", text, p.err)
	}
	return s, nil
}

// ParseReturns reads what a function returns: types separated by commas. rest
// says that "..." stands at the end: any number of any values.
func ParseReturns(text string, lookup func(name string) *Schema) (list []*Schema, rest bool, err error) {
	p := &typeParser{text: text, lookup: lookup}
	for p.err == nil {
		if p.skip(); p.take("...") {
			rest = true
			break
		}
		list = append(list, p.union())
		if p.skip(); !p.take(",") {
			break
		}
	}
	if p.skip(); p.err == nil && p.text != "" {
		p.fail("got %q behind the types", p.text)
	}
	if p.err != nil {
		return nil, false, fmt.Errorf("returns %q: %w", text, p.err)
	}
	return list, rest, nil
}

// typeParser reads types from the front of text. After the first mistake its
// answers mean nothing.
type typeParser struct {
	text   string
	lookup func(string) *Schema
	err    error
}

func (p *typeParser) fail(format string, args ...any) *Schema {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.text = ""
	return Any
}

func (p *typeParser) skip() { p.text = strings.TrimLeft(p.text, " ") }

func (p *typeParser) take(token string) bool {
	rest, ok := strings.CutPrefix(p.text, token)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *typeParser) want(token string) {
	if p.skip(); !p.take(token) {
		p.fail("want %q at %q", token, p.text)
	}
}

// union reads A|B|C.
func (p *typeParser) union() *Schema {
	var variants []*Schema
	optional := false
	for {
		s := p.postfixed()
		switch {
		case s == nil:
			optional = true
		case s.Kind == "optional":
			optional, variants = true, append(variants, s.Inner)
		default:
			variants = append(variants, s)
		}
		if p.skip(); !p.take("|") {
			break
		}
	}
	s := joined(variants)
	if optional {
		return s.Optional()
	}
	return s
}

// joined answers the union of the variants; literals make one closed list.
func joined(variants []*Schema) *Schema {
	var out []*Schema
	var words *Schema
	for _, v := range variants {
		if v.Kind != "one_of" || v.Cats != "" {
			out = append(out, v)
			continue
		}
		if words == nil {
			words = &Schema{Kind: "one_of"}
			out = append(out, words)
		}
		words.Values = append(words.Values, v.Values...)
	}
	switch len(out) {
	case 0:
		return Any
	case 1:
		return out[0]
	}
	return AnyOf(out...)
}

// postfixed reads a type with its [] and ?; nil for the type nil.
func (p *typeParser) postfixed() *Schema {
	s := p.single()
	for s != nil {
		switch {
		case p.take("[]"):
			s = ArrayOf(s)
		case p.take("?"):
			s = s.Optional()
		default:
			return s
		}
	}
	return s
}

func (p *typeParser) single() *Schema {
	p.skip()
	switch {
	case p.take("("):
		s := p.union()
		p.want(")")
		return s
	case p.take("{"):
		return p.fields()
	case p.take("["):
		return p.tuple()
	case p.take(`"`):
		word, rest, ok := strings.Cut(p.text, `"`)
		if !ok {
			return p.fail("want a closing quote")
		}
		p.text = rest
		return OneOf(word)
	}
	return p.named(p.name())
}

// names are Lua's own types.
var names = map[string]*Schema{
	"any": Any, "string": String, "number": Number, "integer": Integer, "boolean": Boolean,
	"table": Table, "function": Function, "userdata": Userdata,
	"true": OneOf(true), "false": OneOf(false),
}

func (p *typeParser) named(name string) *Schema {
	switch {
	case name == "":
		return p.fail("want a type at %q", p.text)
	case name == "nil":
		return nil
	case name == "fun" && p.take("("):
		return p.signature()
	case name == "table" && p.take("<"):
		key := p.union()
		p.want(",")
		val := p.union()
		p.want(">")
		return MapOf(key, val)
	}
	if s := names[name]; s != nil {
		return s
	}
	if s := p.lookup(name); s != nil {
		return s
	}
	return p.fail("unknown type %q", name)
}

func (p *typeParser) name() string {
	n := len(p.text) - len(strings.TrimLeft(p.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."))
	name := p.text[:n]
	p.text = p.text[n:]
	return name
}

// fields reads { k: T, k2?: U }.
func (p *typeParser) fields() *Schema {
	out := map[string]*Schema{}
	for {
		p.skip()
		name := p.name()
		optional := p.take("?")
		p.want(":")
		s := p.union()
		if optional {
			s = s.Optional()
		}
		if name == "" || out[name] != nil {
			return p.fail("want the name of a field, once")
		}
		out[name] = s
		if p.skip(); !p.take(",") {
			break
		}
	}
	p.want("}")
	return Shape(out, true)
}

func (p *typeParser) tuple() *Schema {
	var items []*Schema
	for {
		items = append(items, p.union())
		if p.skip(); !p.take(",") {
			break
		}
	}
	p.want("]")
	return Tuple(items...)
}

// signature reads fun(a: T, b?: U, ...: V): R, R2 behind its parenthesis. It is
// a function; the signature is kept for the reader.
func (p *typeParser) signature() *Schema {
	whole := p.text
	for p.skip(); !p.take(")"); p.skip() {
		if !p.take("...") {
			if p.name() == "" {
				return p.fail("want a parameter at %q", p.text)
			}
			p.take("?")
		}
		p.want(":")
		p.union()
		if p.skip(); !p.take(",") && !strings.HasPrefix(p.text, ")") {
			return p.fail("want , or ) at %q", p.text)
		}
	}
	if p.take(":") {
		for p.skip(); !p.take("..."); p.skip() {
			p.union()
			if p.skip(); !p.take(",") {
				break
			}
		}
	}
	if p.err != nil {
		return Any
	}
	return Function.Named("fun(" + strings.TrimRight(whole[:len(whole)-len(p.text)], " "))
}
