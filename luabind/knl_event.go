package luabind

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/shapes"
)

// list answers events as a fresh array of shared, read-only tables.
func (h *handle) list(l *lua.LState, evs []*kernel.Event) *lua.LTable {
	out := TagArray(l, l.CreateTable(len(evs), 0))
	for _, ev := range evs {
		out.Append(h.event(ev))
	}
	if len(h.shown) > 2*len(evs)+1024 {
		kept := make(map[*kernel.Event]*lua.LTable, len(evs))
		for _, ev := range evs {
			kept[ev] = h.shown[ev]
		}
		h.shown = kept
	}
	return out
}

// lazyList is list, made when a script looks at it.
func (h *handle) lazyList(evs []*kernel.Event) *lua.LTable {
	return h.st.vm.mirror(&mirror{value: evs, name: "events", list: true, fill: func(l *lua.LState, t *lua.LTable) {
		TagArray(l, t)
		for i, ev := range evs {
			t.RawSetInt(i+1, h.event(ev))
		}
	}})
}

// event answers the one table that stands for ev.
func (h *handle) event(ev *kernel.Event) *lua.LTable {
	t := h.shown[ev]
	if t == nil {
		t = h.st.vm.mirror(&mirror{value: ev, name: "event", frozen: true, fill: func(l *lua.LState, t *lua.LTable) {
			h.st.vm.fillEvent(l, t, ev)
		}})
		h.shown[ev] = t
	}
	return t
}

// row answers an event of any session with the session as stream.
func (h *handle) row(stream string, ev *kernel.Event) *lua.LTable {
	return h.st.vm.mirror(&mirror{value: ev, name: "event", frozen: true, fill: func(l *lua.LState, t *lua.LTable) {
		t.RawSetString("stream", lua.LString(stream))
		h.st.vm.fillEvent(l, t, ev)
	}})
}

func (vm *VM) fillEvent(l *lua.LState, t *lua.LTable, ev *kernel.Event) {
	vm.fillForm(l, t, shapes.FormOf("event"), reflect.ValueOf(ev).Elem())
	if ev.Beat != "" {
		t.RawGetString("meta").(*lua.LTable).RawSetString("beat", lua.LString(ev.Beat))
	}
	if vm.dev {
		vm.filled("knl.event", t)
		t.RawSetString("meta", vm.sealed(l, t.RawGetString("meta")))
		t.RawSetString("data", vm.sealed(l, t.RawGetString("data")))
	}
}

// eventsOf reads what a script gives knl.fold: a list of events, of beat records
// and of such lists. What the script was handed by the kernel is not converted
// again.
func (vm *VM) eventsOf(l *lua.LState, v lua.LValue) ([]*kernel.Event, error) {
	if v == lua.LNil {
		return nil, nil
	}
	if _, ok := v.(*lua.LTable); !ok {
		return nil, fmt.Errorf("events: got %s, want a list", show(v))
	}
	c := &eventCollector{vm: vm, l: l}
	err := c.add(v, 0)
	return c.out, err
}

// eventCollector gathers events out of nested lists.
type eventCollector struct {
	vm  *VM
	l   *lua.LState
	out []*kernel.Event
}

func (c *eventCollector) add(v lua.LValue, depth int) error {
	t, ok := v.(*lua.LTable)
	if !ok || depth > maxDepth {
		return nil // a fold is tolerant: what is no event says nothing
	}
	if m := mirrorOf(t); m != nil {
		switch native := m.value.(type) {
		case *kernel.Event:
			return c.event(t)
		case *foldLog:
			evs, err := native.all()
			c.out = append(c.out, evs...)
			return err
		case []*kernel.Event:
			c.out = append(c.out, native...)
			return nil
		}
		t = look(c.l, t)
	}
	if t.RawGetString("kind") != lua.LNil {
		return c.event(t)
	}
	if events := t.RawGetString("events"); events != lua.LNil { // a beat record
		return c.add(events, depth+1)
	}
	for i := 1; i <= t.MaxN(); i++ {
		if err := c.add(t.RawGetInt(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *eventCollector) event(t *lua.LTable) error {
	ev, err := c.vm.eventOf(c.l, t, len(c.out)+1)
	if ev != nil {
		c.out = append(c.out, ev)
	}
	return err
}

func (vm *VM) eventOf(l *lua.LState, t *lua.LTable, i int) (*kernel.Event, error) {
	if m := mirrorOf(t); m != nil {
		if ev, ok := m.value.(*kernel.Event); ok {
			return ev, nil
		}
	}
	ev := &kernel.Event{Seq: int64(i), Meta: json.RawMessage("{}"), Data: json.RawMessage("{}")}
	ev.Kind, ev.Beat = lua.LVAsString(t.RawGetString("kind")), lua.LVAsString(t.RawGetString("beat"))
	if meta, ok := t.RawGetString("meta").(*lua.LTable); ok && ev.Beat == "" {
		ev.Beat = lua.LVAsString(look(l, meta).RawGetString("beat"))
	}
	if data, ok := t.RawGetString("data").(*lua.LTable); ok {
		raw, err := AppendJSON(nil, data, &Encoding{Name: fmt.Sprintf("events[%d].data", i), ListFields: true})
		if err != nil {
			return nil, err
		}
		if raw[0] == '{' {
			ev.Data = raw
		}
	}
	return ev, nil
}

// sealed makes what is inside a shared event read-only too, all the way down:
// in dev mode a script that changes it is told at that line.
func (vm *VM) sealed(l *lua.LState, v lua.LValue) lua.LValue {
	t, ok := v.(*lua.LTable)
	if !ok {
		return v
	}
	body := l.CreateTable(0, 4)
	body.Metatable = t.Metatable
	t.ForEach(func(k, v lua.LValue) { body.RawSet(k, vm.sealed(l, v)) })
	return vm.frozen("event", body)
}

// requestTable answers a request as a table that is converted when a script
// looks at it.
func (vm *VM) requestTable(req *kernel.Request) *lua.LTable {
	return vm.mirror(&mirror{value: req, name: "request", fill: func(l *lua.LState, t *lua.LTable) {
		vm.must(l, req.Canonical()).(*lua.LTable).ForEach(func(k, v lua.LValue) { t.RawSet(k, v) })
	}})
}

// requestOf reads a request that a script answers.
func (vm *VM) requestOf(v lua.LValue) (*kernel.Request, error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("answered %s, want a request (a table)", show(v))
	}
	if m := mirrorOf(t); m != nil {
		if req, ok := m.value.(*kernel.Request); ok {
			return req, nil
		}
	}
	raw, err := AppendJSON(nil, t, &Encoding{Name: "request", ListFields: true})
	if err != nil {
		return nil, err
	}
	return kernel.ParseRequest(raw)
}

// foldLog is what a script's fold is handed: the log, read when it is looked at.
type foldLog struct {
	ctx context.Context
	log kernel.Log
}

func (f *foldLog) all() ([]*kernel.Event, error) { return f.log.Events(f.ctx, 1) }

// foldEvents answers the events of a fold as a list that is read from the log
// when a script looks at it.
func (vm *VM) foldEvents(ctx context.Context, log kernel.Log) *lua.LTable {
	f := &foldLog{ctx, log}
	return vm.mirror(&mirror{value: f, name: "events", list: true, fill: func(l *lua.LState, t *lua.LTable) {
		TagArray(l, t)
		evs, err := f.all()
		if err != nil {
			throw(l, vm.ErrorValue(err))
		}
		h, _ := ctx.Value(handleKey{}).(*handle)
		for i, ev := range evs {
			if h != nil {
				t.RawSetInt(i+1, h.event(ev))
			}
		}
	}})
}
