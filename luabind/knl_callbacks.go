package luabind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/shapes"
)

// How the kernel calls the functions that a script gave a device. It calls them
// from inside Block, so each takes the baton first.

// traced is an error of a script's function with its traceback, in dev mode.
type traced struct {
	error
	at string
}

// Traceback answers where the script raised it.
func (t *traced) Traceback() string { return t.at }

// Unwrap answers the error without it.
func (t *traced) Unwrap() error { return t.error }

func (st *knlState) traced(err error) error {
	var e *LuaError
	if st.vm.dev && errors.As(err, &e) {
		return &traced{err, e.Traceback}
	}
	return err
}

// call runs a script's function from the kernel, which left Lua by Block.
func (st *knlState) call(ctx context.Context, fn lua.LValue, args func(*Call) ([]lua.LValue, error), out func(*Call, []lua.LValue) error) error {
	err := st.vm.Enter(ctx, func(c *Call) error {
		in, err := args(c)
		if err != nil {
			return err
		}
		got, err := c.Invoke(fn, in...)
		if err != nil {
			return err
		}
		return out(c, got)
	})
	return st.traced(err)
}

func first(out []lua.LValue) lua.LValue {
	if len(out) == 0 {
		return lua.LNil
	}
	return out[0]
}

func (d *device) fold(fn lua.LValue) kernel.Fold {
	return func(ctx context.Context, log kernel.Log, _ *kernel.Device) (req *kernel.Request, err error) {
		err = d.st.call(ctx, fn,
			func(c *Call) ([]lua.LValue, error) {
				return []lua.LValue{d.st.vm.foldEvents(ctx, log), d.ud}, nil
			},
			func(_ *Call, out []lua.LValue) (err error) {
				if req, err = d.st.vm.requestOf(first(out)); err == nil && len(out) > 1 {
					req, err = withWindow(req, out[1])
				}
				return err
			})
		return req, err
	}
}

// withWindow answers req with what a fold says of the log that it left out.
func withWindow(req *kernel.Request, v lua.LValue) (*kernel.Request, error) {
	if v == lua.LNil {
		return req, nil
	}
	if v.Type() != lua.LTTable {
		return nil, fmt.Errorf("second value: got %s, want a table (what was left out)", show(v))
	}
	raw, err := toJSON("window", v)
	if err != nil {
		return nil, err
	}
	own := *req
	own.Window = raw
	return &own, nil
}

func (d *device) filter(fn lua.LValue) kernel.Filter {
	return func(ctx context.Context, req *kernel.Request) (next *kernel.Request, err error) {
		err = d.st.call(ctx, fn,
			func(*Call) ([]lua.LValue, error) { return []lua.LValue{d.st.vm.requestTable(req)}, nil },
			func(_ *Call, out []lua.LValue) (err error) {
				next, err = d.st.vm.requestOf(first(out))
				return err
			})
		return next, err
	}
}

func (d *device) cost(fn lua.LValue) kernel.Cost {
	return func(ctx context.Context, req *kernel.Request) (n int64, err error) {
		err = d.st.call(ctx, fn,
			func(*Call) ([]lua.LValue, error) { return []lua.LValue{d.st.vm.requestTable(req)}, nil },
			func(_ *Call, out []lua.LValue) (err error) {
				n, err = wholeResult(first(out))
				return err
			})
		return n, err
	}
}

func (d *device) settle(fn lua.LValue) kernel.Settle {
	return func(ctx context.Context, req *kernel.Request, a *kernel.Answer) (n int64, err error) {
		err = d.st.call(ctx, fn,
			func(c *Call) ([]lua.LValue, error) {
				return []lua.LValue{d.st.vm.requestTable(req), d.st.vm.answerTable(c.L, a)}, nil
			},
			func(_ *Call, out []lua.LValue) (err error) {
				n, err = wholeResult(first(out))
				return err
			})
		return n, err
	}
}

func wholeResult(v lua.LValue) (int64, error) {
	n, ok := whole(v)
	if !ok {
		return 0, fmt.Errorf("got %s, want a whole number", show(v))
	}
	return n, nil
}

func (d *device) policy(fn lua.LValue) kernel.ToolPolicy {
	return func(ctx context.Context, call *kernel.Call, a *kernel.Answer) (said kernel.Decision, reason string, err error) {
		err = d.st.call(ctx, fn,
			func(c *Call) ([]lua.LValue, error) {
				return []lua.LValue{d.st.vm.must(c.L, call.Block), d.st.vm.answerTable(c.L, a)}, nil
			},
			func(_ *Call, out []lua.LValue) error {
				switch v := first(out).(type) {
				case *lua.LNilType:
				case lua.LString:
					if said = kernel.Decision(v); v == "" {
						said = `""`
					}
				default:
					said = kernel.Decision(show(v))
				}
				if len(out) > 1 {
					reason = lua.LVAsString(out[1])
				}
				return nil
			})
		return said, reason, err
	}
}

func (d *device) handler(name string, fn lua.LValue) kernel.Handler {
	return func(ctx context.Context, args json.RawMessage, tc kernel.ToolContext) (result json.RawMessage, err error) {
		err = d.st.call(ctx, fn,
			func(c *Call) ([]lua.LValue, error) {
				in, err := FromJSON(c.L, args)
				if err != nil {
					return nil, fmt.Errorf("arguments: %w", err)
				}
				return []lua.LValue{in, toolContext(ctx, c, tc)}, nil
			},
			func(_ *Call, out []lua.LValue) (err error) {
				if v := first(out); v != lua.LNil {
					result, err = toJSON("result", v)
				}
				return err
			})
		return result, err
	}
}

// handleKey is where a context carries the handle that is being beaten.
type handleKey struct{}

func toolContext(ctx context.Context, c *Call, tc kernel.ToolContext) *lua.LTable {
	t := c.VM().structTable(c.L, shapes.FormOf("tool_context"), tc)
	if h, ok := ctx.Value(handleKey{}).(*handle); ok {
		t.RawSetString("session", h.ud)
	}
	if !tc.Deadline.IsZero() {
		t.RawSetString("deadline", epochSeconds(tc.Deadline))
	}
	return t
}

func epochSeconds(at time.Time) lua.LNumber { return lua.LNumber(float64(at.UnixMilli()) / 1000) }
