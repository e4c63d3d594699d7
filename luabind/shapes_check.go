package luabind

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/shapes"
)

// In dev mode the host holds what its functions answer against what they are
// declared to return. A mismatch is a bug of the host. Tables that nobody looked
// at yet are taken as they are: the check converts nothing.

// answers is what a function is declared to return.
type answers struct {
	list []*shapes.Schema
	rest bool // any number of any values behind the list
}

// returns answers what f is declared to return.
func (b *book) returns(f *Func) answers {
	want, known := b.answers[f]
	if !known && f.Returns != "" {
		list, rest, err := shapes.ParseReturns(f.Returns, b.lookup)
		if err != nil {
			panic("BUG: luabind: " + f.Name + ": " + err.Error())
		}
		want = answers{list, rest}
	}
	b.answers[f] = want
	return want
}

// hold checks the n values that a function leaves on top of the stack.
func (vm *VM) hold(c *Call, n int) {
	want := vm.published().returns(c.fn)
	if n > len(want.list) && !want.rest {
		panic(fmt.Sprintf("BUG: %s: answers %d values, is declared to return %d", c.at.place, n, len(want.list)))
	}
	top := c.L.GetTop()
	for i, s := range want.list {
		v := lua.LValue(lua.LNil)
		if i < n {
			v = c.L.Get(top - n + 1 + i)
		}
		if why := against(v, s); why != nil {
			panic(fmt.Sprintf("BUG: %s: answer %d: %s", c.at.place, i+1, why))
		}
	}
}

// filled checks a table that stands for a Go value when it was looked at.
func (vm *VM) filled(name string, t *lua.LTable) {
	if !vm.dev {
		return
	}
	if why := against(t, vm.published().named[name]); why != nil {
		panic(fmt.Sprintf("BUG: %s: %s", name, why))
	}
}

// misfit is where a value and a schema part.
type misfit struct{ path, text string }

func (m *misfit) String() string { return "at $" + m.path + ": " + m.text }

func (m *misfit) under(part string) *misfit {
	m.path = part + m.path
	return m
}

func expected(want string, got lua.LValue) *misfit {
	return &misfit{text: "expected " + want + ", got " + got.Type().String()}
}

// against answers why v does not fit s, or nil.
func against(v lua.LValue, s *shapes.Schema) *misfit {
	switch s.Kind {
	case "any":
		return nil
	case "optional":
		if v == lua.LNil {
			return nil
		}
		return against(v, s.Inner)
	case "described":
		return against(v, s.Inner)
	case "bounded":
		return againstBounds(v, s)
	case "prim":
		if v.Type().String() != s.Prim && !(s.Prim == "number" && isInt(v)) {
			return expected(s.Prim, v)
		}
		return nil
	case "integer":
		if n, ok := v.(lua.LNumber); !isInt(v) && (!ok || float64(n) != math.Trunc(float64(n))) {
			return expected("integer", v)
		}
		return nil
	case "one_of":
		return againstWords(v, s)
	case "any_of":
		return againstAny(v, s)
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		return expected("table", v)
	}
	if m := mirrorOf(t); m != nil {
		if t = m.body; t == nil { // nobody looked
			return nil
		}
	}
	return againstTable(t, s)
}

// isInt says whether v is an integer that no Lua number holds.
func isInt(v lua.LValue) bool {
	ud, ok := v.(*lua.LUserData)
	if !ok {
		return false
	}
	_, ok = ud.Value.(Int)
	return ok
}

func againstBounds(v lua.LValue, s *shapes.Schema) *misfit {
	if bad := against(v, s.Inner); bad != nil {
		return bad
	}
	if n, ok := v.(lua.LNumber); ok && s.Min != nil && float64(n) < *s.Min {
		return &misfit{text: fmt.Sprintf("%v is below min %v", n, *s.Min)}
	}
	if text, ok := v.(lua.LString); ok && s.MinLen != nil && float64(len(text)) < *s.MinLen {
		return &misfit{text: fmt.Sprintf("length %d is below min_len %v", len(text), *s.MinLen)}
	}
	return nil
}

func againstWords(v lua.LValue, s *shapes.Schema) *misfit {
	for _, word := range s.Values {
		switch word := word.(type) {
		case string:
			if v == lua.LString(word) {
				return nil
			}
		case bool:
			if v == lua.LBool(word) {
				return nil
			}
		}
	}
	return &misfit{text: fmt.Sprintf("expected one of %v, got %s", s.Values, show(v))}
}

func againstAny(v lua.LValue, s *shapes.Schema) *misfit {
	for _, variant := range s.Variants {
		if against(v, variant) == nil {
			return nil
		}
	}
	return &misfit{text: "no variant matched " + show(v)}
}

func againstTable(t *lua.LTable, s *shapes.Schema) *misfit {
	switch s.Kind {
	case "shape":
		return againstShape(t, s)
	case "discriminated":
		tag, _ := t.RawGetString(s.Tag).(lua.LString)
		if variant := s.Cases[string(tag)]; variant != nil {
			return againstShape(t, variant)
		}
		return &misfit{path: "." + s.Tag, text: "no variant for " + show(t.RawGetString(s.Tag))}
	case "array_of":
		for i := 1; i <= t.MaxN(); i++ {
			if bad := against(t.RawGetInt(i), s.Elem); bad != nil {
				return bad.under("[" + strconv.Itoa(i) + "]")
			}
		}
	case "map_of":
		return againstMap(t, s)
	case "tuple":
		for i, item := range s.Items {
			if bad := against(t.RawGetInt(i+1), item); bad != nil {
				return bad.under("[" + strconv.Itoa(i+1) + "]")
			}
		}
	}
	return nil
}

func againstShape(t *lua.LTable, s *shapes.Schema) *misfit {
	for name, field := range s.Fields {
		if bad := against(t.RawGetString(name), field); bad != nil {
			return bad.under("." + name)
		}
	}
	if s.Open {
		return nil
	}
	var extra []string
	t.ForEach(func(k, _ lua.LValue) {
		if name, ok := k.(lua.LString); !ok || s.Fields[string(name)] == nil {
			extra = append(extra, k.String())
		}
	})
	if sort.Strings(extra); len(extra) > 0 {
		return &misfit{path: "." + extra[0], text: "unexpected field"}
	}
	return nil
}

func againstMap(t *lua.LTable, s *shapes.Schema) (bad *misfit) {
	t.ForEach(func(k, v lua.LValue) {
		if bad != nil {
			return
		}
		if bad = against(k, s.Key); bad != nil {
			bad.under("[key=" + k.String() + "]")
		} else if bad = against(v, s.Val); bad != nil {
			bad.under("." + k.String())
		}
	})
	return bad
}
