package luabind

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel/store"
)

var errGone = errors.New("its holder is gone")

// kvHandle is one of several on a store, and may be dead.
type kvHandle struct {
	store.Store
	dead   bool
	doubts int // batches that are applied, whose Wait answers errGone
}

func (h *kvHandle) Head(ctx context.Context, stream string) (store.Head, error) {
	if h.dead {
		return store.Head{}, errGone
	}
	return h.Store.Head(ctx, stream)
}

func (h *kvHandle) Records(ctx context.Context, stream string, from, to int64) iter.Seq2[store.Record, error] {
	if h.dead {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, errGone) }
	}
	return h.Store.Records(ctx, stream, from, to)
}

func (h *kvHandle) Apply(ctx context.Context, b *store.Batch, f store.Flush) (store.Commit, error) {
	if h.dead {
		return nil, errGone
	}
	c, err := h.Store.Apply(ctx, b, f)
	if err == nil && h.doubts > 0 {
		h.doubts--
		return doubt{}, nil
	}
	return c, err
}

type doubt struct{}

func (doubt) Wait(context.Context) error { return errGone }

// kvHandles opens a store anew when the last handle is dead.
type kvHandles struct {
	on     store.Store
	last   *kvHandle
	opened int
	never  bool // what is opened is dead
}

func (s *kvHandles) open(string) (store.Store, error) {
	if s.last == nil || s.last.dead {
		s.opened++
		s.last = &kvHandle{Store: s.on, dead: s.never}
	}
	return s.last, nil
}

func handleHost(t *testing.T) (*kvHandles, *VM) {
	t.Helper()
	s := &kvHandles{on: store.NewMem()}
	vm, err := New(Config{Project: t.TempDir(), Modules: Std(StdOptions{Store: s.open})})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, vm.Close()) })
	return s, vm
}

// A store whose holder went is opened anew by the next call, whichever it is.
func TestPairsGoOnWhenTheStoreIsOpenedAnew(t *testing.T) {
	s, vm := handleHost(t)
	mustLua(t, vm, `std.kv.set("a", 1) std.kv.set("b", 2)`)
	for _, call := range []string{
		`assert(std.kv.get("a") == 1)`,
		`std.kv.set("a", 3) assert(std.kv.get("a") == 3)`,
		`assert(table.concat(std.kv.list(), ",") == "a,b")`,
		`assert(std.kv.delete("b") and not std.kv.delete("b"))`,
		`assert(std.kv.get("a") == 3 and std.kv.get("b") == nil)`,
	} {
		s.last.dead = true
		mustLua(t, vm, call)
	}
	assert.Equal(t, 6, s.opened)
}

// A write that nobody knows of whether it happened is made again.
func TestPairsInDoubtAreWrittenAgain(t *testing.T) {
	s, vm := handleHost(t)
	for _, call := range []string{
		`std.kv.set("a", 1) assert(std.kv.get("a") == 1)`,
		`std.kv.set("a", 2) assert(std.kv.get("a") == 2)`,
		`assert(std.kv.delete("a")) assert(std.kv.get("a") == nil)`,
	} {
		_, err := s.open("")
		require.NoError(t, err)
		s.last.doubts = 2
		mustLua(t, vm, call)
		assert.Less(t, s.last.doubts, 2, call)
		s.last.doubts = 0
	}
}

func TestPairsGiveUpAStoreThatStaysGone(t *testing.T) {
	s, vm := handleHost(t)
	mustLua(t, vm, `std.kv.set("a", 1)`)
	s.last.dead, s.never = true, true
	mustLua(t, vm, `
		for _, name in ipairs{ "get", "set", "delete", "list" } do
			local ok, e = pcall(std.kv[name], "a", name == "set" and 2 or nil)
			assert(not ok and e.kind == "storage" and e.message:find("is gone"), name .. ": " .. tostring(e))
		end`)
	assert.LessOrEqual(t, s.opened, 1+4*kvTries)
	s.never = false
	mustLua(t, vm, `assert(std.kv.get("a") == 1)`)
}
