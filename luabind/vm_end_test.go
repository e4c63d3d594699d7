package luabind

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func countGoroutines() int {
	n := runtime.NumGoroutine()
	for range 100 {
		runtime.Gosched()
		n = min(n, runtime.NumGoroutine())
	}
	return n
}

// A suspended coroutine that nothing can resume is collected with its goroutine.
func TestAbandonedCoroutinesAreCollected(t *testing.T) {
	vm := newVM(t, Config{})
	before := countGoroutines()
	eval(t, vm, `
		for i = 1, 200 do
			local co = coroutine.create(function() while true do pcall(function() coroutine.yield(i) end) end end)
			coroutine.resume(co)
			coroutine.wrap(function()
				local inner = coroutine.create(function() coroutine.yield() end)
				coroutine.resume(inner)
				coroutine.yield(inner)
			end)()
			coroutine.wrap(function() std.task.scope(function() coroutine.yield() end) end)()
			coroutine.create(function() end)
		end`)
	for range 50 {
		runtime.GC()
		eval(t, vm, `coroutine.create(print)`)
		if len(vm.coros.live) == 0 {
			break
		}
	}
	require.Empty(t, vm.coros.live)
	require.LessOrEqual(t, countGoroutines(), before)
}

func TestNoGoroutineIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	vm, err := New(Config{Modules: []*Module{TaskModule}, Warn: func(string) {}})
	require.NoError(t, err)
	eval(t, vm, `
		kept = coroutine.create(function() kept_too = kept; coroutine.yield() end)
		coroutine.resume(kept)
		std.task.spawn(function() std.task.sleep(2) end)
		std.task.scope(function(s) for i = 1, 20 do s:spawn(function() std.task.sleep(i % 3) error("x") end) end end)
		pcall(std.task.with_timeout, 1, function() while true do end end, { grace_ms = 1 })`)
	evalError(t, vm, `std.task.spawn(function() std.task.sleep(60000) end) error("ends the run")`)
	require.NoError(t, vm.Close())
}

// A failed run does not wait for ever behind a task that takes no notice, nor
// does one that ends while a coroutine still holds a scope open.
func TestRunsEndTheirTasks(t *testing.T) {
	vm := newVM(t, Config{Warn: func(string) {}})
	const deaf = "while true do pcall(std.task.yield) end"
	require.EqualError(t, evalError(t, vm, "std.task.spawn(function() "+deaf+" end) std.task.yield() error('failed', 0)"), "failed")
	require.Equal(t, []string{"done"}, eval(t, vm, `
		coroutine.wrap(function()
			std.task.scope(function(s) s:spawn(function() `+deaf+` end) coroutine.yield() end)
		end)()
		std.task.yield()
		return "done"`))
	require.Empty(t, vm.tasks)
}

// What a thread costs: the library's own default is above 100 KB.
func TestCoroutinesAreSmall(t *testing.T) {
	vm := newVM(t, Config{})
	const n = 2000
	runtime.GC()
	before := memoryUsed()
	eval(t, vm, fmt.Sprintf(`
		kept = {}
		for i = 1, %d do
			kept[i] = coroutine.create(function(a) while true do a = coroutine.yield(a) end end)
			coroutine.resume(kept[i], i)
		end`, n))
	runtime.GC()
	each := (memoryUsed() - before) / n
	t.Logf("%d bytes a suspended coroutine", each)
	require.Less(t, each, int64(24<<10))
}

// Two VMs share nothing but compiled code.
func TestVMsRunSideBySide(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		vm := newVM(t, Config{})
		wg.Go(func() {
			for range 20 {
				out, err := vm.RunString(context.Background(), "side.lua", `
					x = (x or 0) + 1
					local h = std.task.spawn(function() return select(2, pcall(function() return ("a"):rep(3) .. x end)) end)
					return h:join()`)
				if err != nil || len(out) != 1 {
					panic(fmt.Sprint(out, err))
				}
			}
		})
	}
	wg.Wait()
}
