package luabind

import (
	"encoding/json"
	"reflect"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/shapes"
)

// structTable answers a fresh table of a Go struct, as its Form says.
func (vm *VM) structTable(l *lua.LState, f *shapes.Form, of any) *lua.LTable {
	return vm.formTable(l, f, reflect.Indirect(reflect.ValueOf(of)))
}

func (vm *VM) formTable(l *lua.LState, f *shapes.Form, of reflect.Value) *lua.LTable {
	t := l.CreateTable(0, len(f.Fields)+len(f.More))
	vm.fillForm(l, t, f, of)
	return t
}

func (vm *VM) fillForm(l *lua.LState, t *lua.LTable, f *shapes.Form, of reflect.Value) {
	for i := range f.Fields {
		field := &f.Fields[i]
		if v := of.FieldByIndex(field.Index); !field.Optional || !v.IsZero() {
			t.RawSetString(field.Name, vm.fieldValue(l, field, v))
		}
	}
}

func (vm *VM) fieldValue(l *lua.LState, f *shapes.Field, v reflect.Value) lua.LValue {
	if raw, ok := v.Interface().(json.RawMessage); ok {
		if f.Schema.Kind == "array_of" {
			return vm.lazyJSON(raw)
		}
		return vm.must(l, raw)
	}
	switch v.Kind() {
	case reflect.String:
		return lua.LString(v.String())
	case reflect.Bool:
		return lua.LBool(v.Bool())
	case reflect.Float64:
		return lua.LNumber(v.Float())
	case reflect.Pointer:
		return vm.fieldValue(l, f, v.Elem())
	case reflect.Struct:
		return vm.formTable(l, f.Form, v)
	case reflect.Slice:
		list := TagArray(l, l.CreateTable(v.Len(), 0))
		for i := range v.Len() {
			list.Append(vm.fieldValue(l, f, v.Index(i)))
		}
		return list
	}
	return lua.LNumber(v.Int())
}
