package luabind

import (
	"context"
	"encoding/json"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

var viewArgs = []Arg{
	{Name: "session", Kind: Userdata, Type: "session"},
	{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
		{Name: "sessions", Kind: Table, Optional: true, Type: "(session|string)[]", Doc: "read these (default: this one)"},
		{Name: "limit", Kind: Whole, Optional: true, Doc: "rows (default: all)"},
	}},
}

var viewFuncs = []Func{
	view("beats", "One row a beat: session, beat, seq_from, seq_to, kinds.", (*kernel.Session).BeatsView),
	view("tool_pairs", "One row a tool call that has a result: session, beat, call_id, name, ok.", (*kernel.Session).PairsView),
	view("open_calls", "One row a tool call without a result.", (*kernel.Session).OpenCallsView),
	view("ledger", "One row a move of the ledger: session, seq, kind, amount, tag.", (*kernel.Session).LedgerView),
	view("usage", "One row a session: calls and token counters.", (*kernel.Session).UsageView),
	kernelView("tree", "One row a session of the tree below this one, parents first.",
		func(ctx context.Context, h *handle) ([]kernel.TreeRow, error) { return h.k.Tree(ctx, h.s.ID()) }),
	kernelView("sessions", "One row a session of the store.",
		func(ctx context.Context, h *handle) ([]kernel.SessionRow, error) { return h.k.Sessions(ctx, "", 0) }),
}

type viewFn[T any] func(*kernel.Session, context.Context, kernel.ViewOptions) ([]T, bool, error)

func view[T any](name, doc string, read viewFn[T]) Func {
	return viewFunc(name, doc, func(ctx context.Context, h *handle, o kernel.ViewOptions) (any, bool, error) {
		rows, cut, err := read(h.s, ctx, o)
		if rows == nil {
			rows = []T{}
		}
		return rows, cut, err
	})
}

// kernelView is a view of the store; it takes no set of sessions.
func kernelView[T any](name, doc string, read func(context.Context, *handle) ([]T, error)) Func {
	f := viewFunc(name, doc, func(ctx context.Context, h *handle, o kernel.ViewOptions) (any, bool, error) {
		rows, err := read(ctx, h)
		if o.Limit > 0 && len(rows) > o.Limit {
			return rows[:o.Limit], true, err
		}
		return rows, false, err
	})
	f.Args = []Arg{viewArgs[0], {Name: "opts", Kind: Table, Optional: true, Fields: viewArgs[1].Fields[1:]}}
	return f
}

func viewFunc(name, doc string, read func(context.Context, *handle, kernel.ViewOptions) (any, bool, error)) Func {
	return Func{Name: name, Args: viewArgs, Returns: "table[], boolean", Doc: doc, Fn: func(c *Call) (int, error) {
		ud, ok := c.Arg(1).(*lua.LUserData)
		if !ok {
			return 0, c.ArgMistake(1, "a session")
		}
		h, ok := ud.Value.(*handle)
		if !ok {
			return 0, c.ArgMistake(1, "a session")
		}
		opts := c.Options(2)
		var o kernel.ViewOptions
		var err error
		if o.Limit = int(opts.Int("limit", 0)); opts.Has("limit") && o.Limit < 1 {
			return 0, c.Mistake("option \"limit\": got %d, want a whole number ≥ 1", o.Limit)
		}
		if o.Sessions, err = sessionIDs(c, opts.Table("sessions")); err != nil {
			return 0, err
		}
		var raw []byte
		var cut bool
		if err := c.Block(func(ctx context.Context) error {
			rows, more, err := read(ctx, h, o)
			if err != nil {
				return err
			}
			cut = more
			raw, err = json.Marshal(rows)
			return err
		}); err != nil {
			return 0, err
		}
		return c.Return(c.VM().must(c.L, raw), lua.LBool(cut))
	}}
}
