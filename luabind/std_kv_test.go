package luabind

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

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

// closeLog ends the log of that number, as a script may that closes what is open.
func closeLog(t *testing.T, st store.Store, number int) {
	t.Helper()
	s, err := kernel.New(st, kernel.Options{}).Resume(context.Background(), kvSessionID(number), kernel.Resume{})
	require.NoError(t, err)
	require.NoError(t, s.Close(context.Background(), "", "cleanup"))
}

// kvLogs answers the sessions that hold pairs.
func kvLogs(t *testing.T, st store.Store) (ids []string) {
	t.Helper()
	streams, err := st.Streams(context.Background(), "", 0)
	require.NoError(t, err)
	for _, s := range streams {
		ids = append(ids, s.Stream)
	}
	return ids
}

func TestPairsOutliveTheEndOfTheirLog(t *testing.T) {
	st := store.NewMem()
	one, two := kvHost(t, st), kvHost(t, st)
	mustLua(t, one, `std.kv.set("a", 1) std.kv.set("b", 2)`)
	mustLua(t, two, `assert(std.kv.get("a") == 1)`)
	closeLog(t, st, 1)
	mustLua(t, two, `assert(std.kv.get("a") == 1 and #std.kv.list() == 2)`)
	assert.Equal(t, []string{".kv"}, kvLogs(t, st), "reading begins no log")
	mustLua(t, one, `assert(std.kv.delete("b")) std.kv.set("a", 3)`)
	mustLua(t, two, `assert(std.kv.get("a") == 3 and std.kv.get("b") == nil) std.kv.set("c", 4)`)
	closeLog(t, st, 2)
	three := kvHost(t, st)
	mustLua(t, three, `assert(table.concat(std.kv.list(), ",") == "a,c") std.kv.set("d", 5)`)
	mustLua(t, one, `assert(table.concat(std.kv.list(), ",") == "a,c,d")`)
	assert.Equal(t, []string{".kv", ".kv-000002", ".kv-000003"}, kvLogs(t, st))
}

// Who begins the next log may go before it holds everything, and what it keeps
// may come late.
func TestALogThatWasNotFilledLosesNothing(t *testing.T) {
	st := store.NewMem()
	mustLua(t, kvHost(t, st), `std.kv.set("a", 1) std.kv.set("b", 2)`)
	closeLog(t, st, 1)
	begin := func(number int, data string) *kernel.Session {
		k := kernel.New(st, kernel.Options{Mint: func() string { return kvSessionID(number) }})
		_, err := k.Open(context.Background(), kernel.Open{Owner: "std.kv"})
		require.NoError(t, err)
		s, err := k.Attach(context.Background(), kvSessionID(number))
		require.NoError(t, err)
		_, err = s.Append(context.Background(), kernel.Draft{Kind: kvKeptKind, Data: []byte(data)})
		require.NoError(t, err)
		return s
	}
	begin(2, `{"values":{"a":1}}`)
	closeLog(t, st, 2)
	late := begin(3, `{"values":{"a":1}}`)
	mustLua(t, kvHost(t, st), `assert(std.kv.get("a") == 1 and std.kv.get("b") == 2) std.kv.set("b", 9) std.kv.delete("a")`)
	for _, d := range []kernel.Draft{{Kind: kvKeptKind, Data: []byte(`{"values":{"a":1,"b":2}}`)}, {Kind: kvBegunKind}} {
		_, err := late.Append(context.Background(), d)
		require.NoError(t, err)
	}
	mustLua(t, kvHost(t, st), `assert(std.kv.get("a") == nil and std.kv.get("b") == 9)`)
	assert.Equal(t, []string{".kv", ".kv-000002", ".kv-000003"}, kvLogs(t, st))
}

func TestALogOfPairsStaysShort(t *testing.T) {
	st := store.NewMem()
	hosts := []*VM{kvHost(t, st), kvHost(t, st)}
	var wg sync.WaitGroup
	for i, vm := range hosts {
		vm.SetGlobal("me", lua.LString(string(rune('a'+i))))
		wg.Go(func() {
			_, err := vm.RunString(context.Background(), "chunk", `for i = 1, 3000 do std.kv.set(me .. i % 50, i) end`)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	ids := kvLogs(t, st)
	assert.Greater(t, len(ids), 4)
	for _, vm := range append(hosts, kvHost(t, st)) {
		mustLua(t, vm, `
			assert(#std.kv.list() == 100)
			for i = 2951, 3000 do
				for _, me in ipairs{ "a", "b" } do
					local got = std.kv.get(me .. i % 50)
					assert(got == i, ("%s%d: want %d, got %s"):format(me, i % 50, i, tostring(got)))
				end
			end`)
	}
	for _, id := range ids {
		head, err := st.Head(context.Background(), id)
		require.NoError(t, err)
		assert.Less(t, head.Seq, int64(kvDead+2*100+20), id)
	}
}

// What is kept is cut into events that are not too large.
func TestLargePairsAreKeptInParts(t *testing.T) {
	st := store.NewMem()
	mustLua(t, kvHost(t, st), `for i = 1, 20 do std.kv.set("k" .. i, ("x"):rep(60000)) end`)
	closeLog(t, st, 1)
	mustLua(t, kvHost(t, st), `
		std.kv.set("more", 1)
		assert(#std.kv.list() == 21)
		for i = 1, 20 do assert(#std.kv.get("k" .. i) == 60000) end`)
	s, err := kernel.New(st, kernel.Options{}).Attach(context.Background(), kvSessionID(2))
	require.NoError(t, err)
	rows, _, err := s.Scan(context.Background(), kernel.Where{Kinds: []string{kvKeptKind}})
	require.NoError(t, err)
	assert.Len(t, rows, 5)
	for _, r := range rows {
		assert.Less(t, len(r.Event.Data), kvKeptSize+1000)
	}
}
