package luabind

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/pebblestore"
	"github.com/knl-run/knl/kernel/store"
)

// kvHost is a VM on a store.
func kvHost(t *testing.T, st store.Store) *VM {
	t.Helper()
	mask := &Masker{}
	mask.Add("canary-of-the-store")
	vm, err := New(Config{Project: t.TempDir(), Modules: Std(StdOptions{
		Mask:  mask,
		Store: func(string) (store.Store, error) { return st, nil },
	})})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, vm.Close()) })
	return vm
}

func mustLua(t *testing.T, vm *VM, source string) {
	t.Helper()
	_, err := vm.RunString(context.Background(), "chunk", source)
	require.NoError(t, err)
}

func TestPairsOutliveARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, source := range []string{
		`assert(std.kv.get("a") == nil and #std.kv.list() == 0)`,
		`std.kv.set("a", { n = 1 }) std.kv.set("b", "x canary-of-the-store")`,
		`assert(std.kv.get("a").n == 1 and std.kv.get("b") == "x ***") assert(std.kv.delete("a"))`,
		`assert(std.kv.get("a") == nil and #std.kv.list() == 1)`,
	} {
		st, err := pebblestore.Open(dir, pebblestore.Options{})
		require.NoError(t, err)
		mustLua(t, kvHost(t, st), source)
		_, _, err = kernel.New(st, kernel.Options{}).Check(context.Background(), func(p kernel.Problem) { t.Errorf("%+v", p) })
		require.NoError(t, err)
		require.NoError(t, st.Close())
	}
}

func TestReadingBeginsNoLog(t *testing.T) {
	st := store.NewMem()
	mustLua(t, kvHost(t, st), `assert(std.kv.get("a") == nil and not std.kv.delete("a") and #std.kv.list() == 0)`)
	streams, err := st.Streams(context.Background(), "", 0)
	require.NoError(t, err)
	assert.Empty(t, streams)
}

// Hosts on one store see each other's pairs, whoever begins their log.
func TestPairsAreShared(t *testing.T) {
	st := store.NewMem()
	hosts := []*VM{kvHost(t, st), kvHost(t, st), kvHost(t, st), kvHost(t, st)}
	var wg sync.WaitGroup
	for i, vm := range hosts {
		wg.Go(func() {
			_, err := vm.RunString(context.Background(), "chunk", `std.kv.set("from `+string(rune('a'+i))+`", true)`)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	for _, vm := range hosts {
		mustLua(t, vm, `assert(table.concat(std.kv.list(), ",") == "from a,from b,from c,from d")`)
	}
	mustLua(t, hosts[0], `std.kv.set("from a", 2)`)
	mustLua(t, hosts[1], `assert(std.kv.get("from a") == 2)`)
}

func TestPairsAreBounded(t *testing.T) {
	st := store.NewMem()
	vm := kvHost(t, st)
	mustLua(t, vm, `std.kv.set("k0", 0)`)
	k, err := kernel.New(st, kernel.Options{}).Attach(context.Background(), kvSession)
	require.NoError(t, err)
	for i := 1; i < pairLimit; i++ {
		_, err := k.Append(context.Background(), kernel.Draft{Kind: kvSetKind, Data: []byte(`{"key":"k` + string(rune(0x4e00+i)) + `","value":1}`)})
		require.NoError(t, err)
	}
	mustLua(t, vm, `
		local ok, e = pcall(std.kv.set, "one more", 1)
		assert(not ok and e.kind == "too_large", tostring(e))
		std.kv.set("k0", 1)
		std.kv.delete("k0")
		std.kv.set("one more", 1)`)
}
