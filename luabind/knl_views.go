package luabind

import (
	"context"
	"encoding/json"

	lua "github.com/yuin/gopher-lua"

	"github.com/knl-run/knl/kernel"
)

var viewArgs = []Arg{
	{Name: "session", Kind: Userdata, Type: "knl.session"},
	{Name: "opts", Kind: Table, Optional: true, Type: "knl.view_opts", Fields: []Arg{
		{Name: "sessions", Kind: Table, Optional: true, Type: "(knl.session|string)[]", Doc: "read these (default: this one)"},
		{Name: "limit", Kind: Whole, Optional: true, Doc: "rows (default: all)"},
	}},
}

var viewFuncs = []Func{
	view(Func{Name: "beats", Returns: "knl.beat_row[], boolean", Doc: "One row a beat."}, (*kernel.Session).BeatsView),
	view(Func{Name: "tool_pairs", Returns: "knl.tool_pair[], boolean", Doc: "One row a tool call that has a result."}, (*kernel.Session).PairsView),
	view(Func{Name: "open_calls", Returns: "knl.tool_pair[], boolean", Doc: "One row a tool call without a result."}, (*kernel.Session).OpenCallsView),
	view(Func{Name: "ledger", Returns: "knl.ledger_row[], boolean", Doc: "One row a move of the ledger."}, (*kernel.Session).LedgerView),
	view(Func{Name: "usage", Returns: "knl.usage_row[], boolean", Doc: "One row a session that had an answer: its calls and tokens."}, (*kernel.Session).UsageView),
	kernelView(Func{Name: "tree", Returns: "knl.tree_row[], boolean", Doc: "One row a session of the tree below this one, parents first."},
		func(ctx context.Context, h *handle) ([]kernel.TreeRow, error) { return h.k.Tree(ctx, h.s.ID()) }),
	kernelView(Func{Name: "sessions", Returns: "knl.session_row[], boolean", Doc: "One row a session of the store."},
		func(ctx context.Context, h *handle) ([]kernel.SessionRow, error) { return h.k.Sessions(ctx, "", 0) }),
}

type viewFn[T any] func(*kernel.Session, context.Context, kernel.ViewOptions) ([]T, bool, error)

func view[T any](f Func, read viewFn[T]) Func {
	return viewFunc(f, func(ctx context.Context, h *handle, o kernel.ViewOptions) (any, bool, error) {
		rows, cut, err := read(h.s, ctx, o)
		if rows == nil {
			rows = []T{}
		}
		return rows, cut, err
	})
}

// kernelView is a view of the store; it takes no set of sessions.
func kernelView[T any](f Func, read func(context.Context, *handle) ([]T, error)) Func {
	f = viewFunc(f, func(ctx context.Context, h *handle, o kernel.ViewOptions) (any, bool, error) {
		rows, err := read(ctx, h)
		if o.Limit > 0 && len(rows) > o.Limit {
			return rows[:o.Limit], true, err
		}
		return rows, false, err
	})
	f.Args = []Arg{viewArgs[0], {Name: "opts", Kind: Table, Optional: true, Type: "knl.store_view_opts", Fields: viewArgs[1].Fields[1:]}}
	return f
}

func viewFunc(f Func, read func(context.Context, *handle, kernel.ViewOptions) (any, bool, error)) Func {
	f.Args, f.Fn = viewArgs, func(c *Call) (int, error) {
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
	}
	return f
}
