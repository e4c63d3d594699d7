package luabind

import (
	"context"
	"encoding/json"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

// What a session's handle writes: events, moves of the ledger, the end.

func sessionAppend(c *Call) (int, error) {
	h := Self[*handle](c)
	d, err := draft(c.Table(1))
	if err != nil {
		return 0, err
	}
	seq, err := wait(c, func(ctx context.Context) (int64, error) { return h.s.Append(ctx, d) })
	if err != nil {
		return 0, err
	}
	return c.Return(lua.LNumber(seq))
}

// draft reads the table of an append.
func draft(t *lua.LTable) (d kernel.Draft, err error) {
	text := func(name string) string {
		v := t.RawGetString(name)
		s, ok := v.(lua.LString)
		if !ok && v != lua.LNil && err == nil {
			err = fault(kernel.Validation, "append", "event.%s: got %s, want a string", name, show(v))
		}
		return string(s)
	}
	object := func(name string) (raw json.RawMessage) {
		v := t.RawGetString(name)
		if v == lua.LNil || err != nil {
			return nil
		}
		if _, ok := v.(*lua.LTable); !ok {
			err = fault(kernel.Validation, "append", "event.%s: got %s, want a table", name, show(v))
			return nil
		}
		raw, jerr := toJSON("event."+name, v)
		if jerr != nil {
			err = fault(kernel.Validation, "append", "%s", jerr)
		}
		return raw
	}
	t.ForEach(func(k, _ lua.LValue) {
		if name := lua.LVAsString(k); err == nil && !slices.Contains(envelope, name) {
			err = fault(kernel.Validation, "append", "event has an unknown key %s (%s): what belongs to a kind stands under data", show(k), Suggest(name, envelope))
		}
	})
	d.Kind, d.Beat = text("kind"), text("beat")
	d.Meta, d.Data = object("meta"), object("data")
	return d, err
}

var envelope = []string{"kind", "beat", "meta", "data"}

// maxUnits is the largest number of which all whole ones below are numbers, too.
const maxUnits = 1 << 53

// units reads argument 1 as a whole number; another one is the kernel's
// validation error, not a mistake in the call.
func units(c *Call) (int64, error) {
	v := c.Number(1)
	n, ok := whole(lua.LNumber(v))
	switch {
	case ok:
		return n, nil
	case v > maxUnits:
		return 0, fault(kernel.Validation, c.fn.Name, "got %s, want a whole number of at most %d", show(c.Arg(1)), int64(maxUnits))
	}
	return 0, fault(kernel.Validation, c.fn.Name, "got %s, want a whole number ≥ 0", show(c.Arg(1)))
}

func sessionReserve(c *Call) (int, error) {
	h := Self[*handle](c)
	n, err := units(c)
	if err != nil {
		return 0, err
	}
	var ok bool
	var tag string
	if err := c.Block(func(ctx context.Context) (err error) {
		ok, tag, err = h.s.Reserve(ctx, n)
		return err
	}); err != nil {
		return 0, err
	}
	if ok {
		return c.Return(lua.LTrue)
	}
	return c.Return(lua.LFalse, textOrNil(tag))
}

func sessionMove(c *Call, move func(*kernel.Session, context.Context, int64) error) (int, error) {
	h := Self[*handle](c)
	n, err := units(c)
	if err != nil {
		return 0, err
	}
	return 0, c.Block(func(ctx context.Context) error { return move(h.s, ctx, n) })
}

func sessionRemaining(c *Call) (int, error) {
	h := Self[*handle](c)
	var n int64
	var ok bool
	if err := c.Block(func(ctx context.Context) (err error) {
		n, ok, err = h.s.Remaining(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	if !ok {
		return c.Return(lua.LNil)
	}
	return c.Return(lua.LNumber(n))
}

func sessionExhausted(c *Call) (int, error) {
	h := Self[*handle](c)
	out, err := wait(c, h.s.Exhausted)
	if err != nil {
		return 0, err
	}
	return c.Return(lua.LBool(out))
}

func sessionClose(c *Call) (int, error) {
	h := Self[*handle](c)
	reason, detail := c.OptString(1, ""), c.OptString(2, "")
	return 0, c.Block(func(ctx context.Context) error { return h.s.Close(ctx, reason, detail) })
}
