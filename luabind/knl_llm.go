package luabind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/shapes"
)

// llm reads a device's model: one that a port opened, or a script's function.
func (d *device) llm(c *Call, v lua.LValue) (kernel.LLM, error) {
	if v == lua.LNil {
		return nil, nil
	}
	if ud, ok := v.(*lua.LUserData); ok {
		if native, ok := ud.Value.(kernel.LLM); ok {
			return native, nil
		}
	}
	if !callable(c.L, v) {
		return nil, c.Mistake("option \"llm\": got %s, want what port:open() answers, or a function", show(v))
	}
	return d.scripted(v), nil
}

// scripted makes a script's function a model.
func (d *device) scripted(fn lua.LValue) kernel.LLM {
	return kernel.LLMFunc(func(ctx context.Context, req *kernel.Request, o kernel.CallOptions) (a *kernel.Answer, err error) {
		err = d.st.call(ctx, fn,
			func(c *Call) ([]lua.LValue, error) {
				return []lua.LValue{d.st.vm.requestTable(req), callContext(c, o)}, nil
			},
			func(c *Call, out []lua.LValue) (err error) {
				a, err = answerOf(c, out)
				return err
			})
		var raised *LuaError
		if errors.As(err, &raised) {
			if t, ok := raised.Value.(*lua.LTable); ok && t.RawGetString("kind") != lua.LNil { // error{ kind = … }
				return nil, callErrorOf(t, raised.Message)
			}
		}
		return a, err
	})
}

// callContext is the ctx of a model call as a script's function gets it.
func callContext(c *Call, o kernel.CallOptions) *lua.LTable {
	t := c.VM().structTable(c.L, shapes.FormOf("call_context"), o)
	if !o.Deadline.IsZero() {
		t.RawSetString("deadline", epochSeconds(o.Deadline))
	}
	if o.OnDelta != nil {
		t.RawSetString("on_delta", c.VM().function(showDelta(o.OnDelta), bound{place: "ctx.on_delta"}))
	}
	return t
}

// showDelta is ctx.on_delta: the listener is Lua too, and takes the baton.
func showDelta(show func(kernel.Delta)) *Func {
	return &Func{
		Name: "on_delta", Args: []Arg{{Name: "delta", Kind: Table, Type: "knl.delta"}},
		Fn: func(c *Call) (int, error) {
			t := c.Table(1)
			d := kernel.Delta{Kind: lua.LVAsString(t.RawGetString("kind")), Text: lua.LVAsString(t.RawGetString("text"))}
			return 0, c.Block(func(context.Context) error {
				show(d)
				return nil
			})
		},
	}
}

// callOptions reads the ctx that a script hands on to a model.
func callOptions(c *Call, v lua.LValue) (o kernel.CallOptions) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return o
	}
	o.Beat, o.Session = lua.LVAsString(t.RawGetString("beat")), lua.LVAsString(t.RawGetString("session"))
	if n, ok := whole(t.RawGetString("call")); ok {
		o.Call = int(n)
	}
	if at, ok := t.RawGetString("deadline").(lua.LNumber); ok {
		o.Deadline = time.UnixMilli(int64(at * 1000))
	}
	if fn := t.RawGetString("on_delta"); callable(c.L, fn) {
		o.OnDelta = c.VM().onDelta(c.Ctx(), fn, o.Deadline)
	}
	return o
}

// onDelta calls a script's listener, until the deadline of the call if it has
// one. What it raises ends nothing: a listener shows, it does not decide.
func (vm *VM) onDelta(within context.Context, fn lua.LValue, deadline time.Time) func(kernel.Delta) {
	warned := false
	return func(d kernel.Delta) {
		ctx, stop := within, func() {}
		if !deadline.IsZero() {
			ctx, stop = context.WithDeadline(within, deadline)
		}
		defer stop()
		err := vm.Enter(ctx, func(c *Call) error {
			_, err := c.Invoke(fn, c.VM().structTable(c.L, shapes.FormOf("delta"), d))
			return err
		})
		if err != nil && ctx.Err() == nil && !warned {
			warned = true
			vm.config.Warn("on_delta raised: " + err.Error())
		}
	}
}

// llmCall is what calling a model does: llm(request, ctx?).
var llmCall = Func{
	Name: "llm", Args: []Arg{{Name: "request", Kind: Table, Type: "knl.request"}, {Name: "ctx", Kind: Table, Optional: true, Type: "knl.call_context"}},
	Returns: "knl.answer?, knl.call_error?", Doc: "Asks the model. Answers nil and why when it gives no answer.",
	Fn: func(c *Call) (int, error) {
		native := Self[kernel.LLM](c)
		req, err := c.VM().requestOf(c.Arg(1))
		if err != nil {
			return 0, c.Mistake("%s", err)
		}
		var a *kernel.Answer
		o := callOptions(c, c.Arg(2))
		err = c.Block(func(ctx context.Context) (err error) {
			a, err = native.Call(ctx, req, o)
			return err
		})
		var ce *kernel.CallError
		switch {
		case errors.As(err, &ce):
			return c.Return(lua.LNil, callErrorTable(c, ce))
		case err != nil:
			return 0, err
		}
		return c.Return(c.VM().answerTable(c.L, a))
	},
}

func callErrorTable(c *Call, e *kernel.CallError) *lua.LTable {
	t := c.VM().structTable(c.L, shapes.FormOf("call_error"), e)
	t.RawSetString("retryable", lua.LBool(e.Retryable()))
	return c.VM().withText(t, e.Error())
}

// answerTable answers a fresh table of an answer.
func (vm *VM) answerTable(l *lua.LState, a *kernel.Answer) *lua.LTable {
	t := l.CreateTable(0, 4)
	t.RawSetString("status", lua.LString("ok"))
	content := a.Content
	if len(content) == 0 {
		content = json.RawMessage("[]")
	}
	blocks, err := FromJSON(l, content)
	if err != nil {
		blocks = TagArray(l, l.CreateTable(0, 4))
	}
	t.RawSetString("content", blocks)
	t.RawSetString("usage", vm.structTable(l, shapes.FormOf("usage"), a.Usage))
	setText(t, "stop_reason", a.StopReason)
	if a.Refused {
		t.RawSetString("status", lua.LString("refused"))
		t.RawSetString("refusal", vm.structTable(l, shapes.FormOf("refusal"), shapes.Refusal{Kind: a.RefusalKind, Detail: a.RefusalDetail}))
	}
	return t
}

// answerOf reads what a script's model answered: a table, or nil and why not.
func answerOf(c *Call, out []lua.LValue) (*kernel.Answer, error) {
	t, ok := first(out).(*lua.LTable)
	if !ok {
		if len(out) > 1 && out[1] != lua.LNil {
			return nil, callError(c, out[1])
		}
		return nil, broken("got %s, want a table", show(first(out)))
	}
	t = look(c.L, t)
	a := &kernel.Answer{StopReason: lua.LVAsString(t.RawGetString("stop_reason"))}
	switch status := t.RawGetString("status"); status {
	case lua.LString("ok"):
	case lua.LString("refused"):
		a.Refused = true
		r, ok := t.RawGetString("refusal").(*lua.LTable)
		if !ok {
			return nil, broken("refusal: got %s, want a table with a kind", show(t.RawGetString("refusal")))
		}
		a.RefusalKind, a.RefusalDetail = lua.LVAsString(r.RawGetString("kind")), lua.LVAsString(r.RawGetString("detail"))
	default:
		return nil, broken("status: got %s, want \"ok\" or \"refused\"", show(status))
	}
	usage, ok := t.RawGetString("usage").(*lua.LTable)
	if !ok {
		return nil, broken("usage: got %s, want a table of counters", show(t.RawGetString("usage")))
	}
	var err error
	if a.Usage, err = usageOf(usage); err != nil {
		return nil, err
	}
	if content := t.RawGetString("content"); content != lua.LNil {
		if a.Content, err = toJSON("content", content); err != nil {
			return nil, broken("%s", err)
		}
		if string(a.Content) == "{}" { // an empty table that nobody tagged
			a.Content = json.RawMessage("[]")
		}
	}
	return a, nil
}

func broken(format string, args ...any) error {
	return &kernel.CallError{Kind: kernel.Unknown, Message: "the llm's answer cannot be read: " + fmt.Sprintf(format, args...)}
}

func usageOf(t *lua.LTable) (u kernel.Usage, err error) {
	counters := reflect.ValueOf(&u).Elem()
	for _, f := range shapes.FormOf("usage").Fields {
		v := t.RawGetString(f.Name)
		if v == lua.LNil {
			continue
		}
		n, ok := whole(v)
		if !ok || n < 0 {
			return u, broken("usage.%s: got %s, want a whole number ≥ 0", f.Name, show(v))
		}
		counters.FieldByIndex(f.Index).SetInt(n)
	}
	return u, nil
}

// callError reads why a script's model gave no answer.
func callError(c *Call, v lua.LValue) error {
	t, ok := v.(*lua.LTable)
	if !ok {
		if err, ok := ErrorFrom(v); ok {
			return err
		}
		return &kernel.CallError{Kind: kernel.Unknown, Message: c.VM().text(c.L, v)}
	}
	return callErrorOf(t, c.VM().text(c.L, v))
}

// callErrorOf reads { kind, message?, retryable?, retry_after?, status? }; text is
// what a table that knows its own says. What is missing or unknown there, the
// message says.
func callErrorOf(t *lua.LTable, text string) error {
	e := &kernel.CallError{Kind: kernel.CallKind(lua.LVAsString(t.RawGetString("kind"))), Message: lua.LVAsString(t.RawGetString("message"))}
	kind := t.RawGetString("kind")
	if kind == lua.LNil {
		e.Kind = kernel.Unknown
	}
	switch speaks := t.Metatable != nil && t.Metatable != lua.LNil; {
	case e.Message != "":
	case speaks:
		e.Message = text
	case kind == lua.LNil:
		e.Message = "the llm gave no answer: its error has neither a kind nor a message"
	default:
		e.Message = "the llm gave no answer: its error has the kind " + show(kind) + " and no message"
	}
	if !e.Kind.Known() {
		e.Kind = kernel.Unknown
		e.Message += " (kind " + show(kind) + " is no call_error_kind, it is read as unknown)"
	}
	if r, ok := t.RawGetString("retryable").(lua.LBool); ok {
		said := bool(r)
		e.Retry = &said
	}
	if n, ok := t.RawGetString("retry_after").(lua.LNumber); ok && n > 0 {
		e.RetryAfter = float64(n)
	}
	if n, ok := whole(t.RawGetString("status")); ok {
		e.Status = int(n)
	}
	return e
}
