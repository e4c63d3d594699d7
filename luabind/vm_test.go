package luabind

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

func TestRunFile(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "main.lua")
	write(t, script, "#!/usr/bin/env knl\nprint('hello', nil, 1.5, 1/0)\nreturn arg[0], arg[1], #arg, require('beside')")
	write(t, filepath.Join(dir, "beside.lua"), "return 'beside of ' .. ...")
	var out bytes.Buffer
	vm := newVM(t, Config{Stdout: &out})
	values, err := vm.RunFile(context.Background(), script, []string{"one", "two"})
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LString(script), lua.LString("one"), lua.LNumber(2), lua.LString("beside of beside")}, values)
	require.Equal(t, "hello\tnil\t1.5\tinf\n", out.String())

	_, err = vm.RunFile(context.Background(), filepath.Join(dir, "absent.lua"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "reading script: ")
}

func write(t testing.TB, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestEnvironmentIsTheHosts(t *testing.T) {
	vm := newVM(t, Config{Env: func(name string) (string, bool) { return "1", name == "LSHAPE_CHECK" }})
	require.True(t, vm.Dev())
	require.Equal(t, []string{"1", "nil"}, eval(t, vm, `return os.getenv("LSHAPE_CHECK"), os.getenv("HOME")`))
	off := newVM(t, Config{Env: func(string) (string, bool) { return "", false }})
	require.False(t, off.Dev())
}

// requireVM has a project, a script folder and embedded modules.
func requireVM(t *testing.T, files map[string]string) *VM {
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return newVM(t, Config{
		ScriptDir: filepath.Join(dir, "script"), Project: filepath.Join(dir, "project"),
		Modules: []*Module{faulty},
		Embedded: fstest.MapFS{
			"policy/init.lua":   {Data: []byte("return { from = 'embedded', window = require('policy.window') }")},
			"policy/window.lua": {Data: []byte("return 'embedded window'")},
			"prompt.lua":        {Data: []byte("return 'prompt'")},
			"faulty.lua":        {Data: []byte("return 'never'")},
		},
	})
}

func TestRequireOrder(t *testing.T) {
	vm := requireVM(t, map[string]string{
		"script/near.lua":                "return 'near'",
		"project/lua/near.lua":           "return 'far'",
		"project/lua/deep/down/init.lua": "return ...",
		"project/lua/policy/window.lua":  "return 'vendored window'",
		"script/nothing.lua":             "loaded = (loaded or 0) + 1",
	})
	require.Equal(t, []string{"near", "deep.down", "embedded", "embedded window", "vendored window", "embedded window", "prompt", "true", "true", "1", "table"}, eval(t, vm, `
		require("nothing")
		return require("near"), require("deep.down"), require("policy").from, require("policy").window,
			require("policy.window"), require("embedded.policy.window"), require("prompt"), require("policy") == require("embedded.policy"),
			require("nothing"), loaded, type(require("faulty"))`))
}

// What is embedded requires what is embedded, a vendored module what is vendored.
func TestRequireOfAVendoredModule(t *testing.T) {
	vm := requireVM(t, map[string]string{
		"project/lua/policy/init.lua":   "return { from = 'vendored', window = require('policy.window') }",
		"project/lua/policy/window.lua": "return 'vendored window'",
	})
	require.Equal(t, []string{"vendored", "vendored window", "embedded", "embedded window", "false"}, eval(t, vm, `
		local own, shipped = require("policy"), require("embedded.policy")
		return own.from, own.window, shipped.from, shipped.window, own == shipped`))
}

func TestRequireBeside(t *testing.T) {
	vm := requireVM(t, map[string]string{
		"script/near.lua":       "return 'beside the script'",
		"project/near.lua":      "return 'beside'",
		"project/only.lua":      "return 'beside'",
		"project/lua/only.lua":  "return 'in lua'",
		"project/lua/third.lua": "return 'in lua'",
	})
	vm.config.Beside = []string{vm.config.Project}
	require.Equal(t, []string{"beside the script", "beside", "in lua"},
		eval(t, vm, `return require("near"), require("only"), require("third")`))
}

func TestRequireRefuses(t *testing.T) {
	vm := requireVM(t, map[string]string{
		"script/a.lua":      "return require('b')",
		"script/b.lua":      "return require('a')",
		"script/broken.lua": "local x =\n",
		"script/raises.lua": "\nerror('inside')",
	})
	for source, want := range map[string]string{
		`require("prompd")`:     `test.lua:1: module "prompd" not found (did you mean "prompt"?); looked for`,
		`require("../etc")`:     `test.lua:1: require: got "../etc", want words joined by dots ("policy.window")`,
		`require(5)`:            "test.lua:1: require: argument 1: got 5, want the name of a module",
		`require("a")`:          `b.lua:1: module "a" requires itself: a -> b -> a`,
		`require("broken")`:     "broken.lua:1: unexpected end of file",
		`require("raises")`:     "raises.lua:2: inside",
		`require("embedded.x")`: "looked for\n\tembedded/x.lua\n\tembedded/x/init.lua",
	} {
		require.ErrorContains(t, evalError(t, vm, source), want)
	}
	err := evalError(t, vm, "local function load() local m = require('raises') return m end\nload()")
	require.Contains(t, traceOf(err), "raises.lua:2: in main chunk\n\t[Go]: in function 'require'\n\ttest.lua:1: in function 'load'")
	require.Equal(t, []string{"false", "false"}, eval(t, vm, `return pcall(require, "raises"), (pcall(require, "raises"))`)[:2], "a module that failed is tried again")
}

func TestModulesAreWalked(t *testing.T) {
	vm := newVM(t, Config{})
	signatures := map[string]string{}
	for _, m := range vm.Modules() {
		m.Walk(func(place string, f *Func) {
			signatures[place] = f.Signature(place)
			require.NotEmpty(t, f.Doc, place)
		})
	}
	require.Equal(t, "std.task.with_timeout(ms, fn, opts?) -> ...", signatures["std.task.with_timeout"])
	require.Equal(t, "task:join() -> ...", signatures["task:join"])
	require.Equal(t, "integer", (&Arg{Kind: Whole}).LuaType())

	_, err := New(Config{Modules: []*Module{TaskModule, {Name: "std.task"}}})
	require.EqualError(t, err, `module "std.task" is configured twice`)
}

func TestModuleState(t *testing.T) {
	closed := 0
	counter := &Module{Name: "counter",
		Open:   func(*VM) (any, error) { return new(int), nil },
		Close:  func(any) error { closed++; return nil },
		Consts: []Const{{Name: "version", Value: func(*VM) lua.LValue { return lua.LString("1") }}},
		Funcs: []Func{{Name: "add", Fn: func(c *Call) (int, error) {
			n := c.State().(*int)
			*n++
			return c.Return(lua.LNumber(*n))
		}}},
	}
	for range 2 {
		vm, err := New(Config{Modules: []*Module{counter}})
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2", "1"}, eval(t, vm, `local c = require("counter") return c.add(), c.add(), c.version`))
		require.Equal(t, 2, *vm.StateOf(counter).(*int))
		require.NoError(t, vm.Close())
	}
	require.Equal(t, 2, closed)
	_, err := New(Config{Modules: []*Module{{Name: "m", Open: func(*VM) (any, error) { return nil, os.ErrPermission }}}})
	require.EqualError(t, err, `opening module "m": permission denied`)
}

var optionModule = &Module{Name: "opt", Funcs: []Func{{
	Name: "f",
	Args: []Arg{{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{
		{Name: "timeout", Kind: Seconds, Optional: true}, {Name: "cwd", Kind: Text, Optional: true},
		{Name: "count", Kind: Whole, Optional: true}, {Name: "loud", Kind: Flag, Optional: true},
		{Name: "ms", Kind: Milliseconds, Optional: true}, {Name: "env", Kind: Table, Optional: true},
		{Name: "ratio", Kind: Number, Optional: true}, {Name: "fn", Kind: Function, Optional: true},
	}}},
	Fn: func(c *Call) (int, error) {
		o := c.Options(1)
		text := fmt.Sprint(o.Seconds("timeout", time.Minute), o.String("cwd", "."), o.Int("count", 7), o.Bool("loud", true),
			o.Millis("ms", time.Hour), o.Table("env") != nil, o.Number("ratio", 0.5), o.Has("fn"))
		return c.Return(lua.LString(text))
	},
}}}

func TestOptions(t *testing.T) {
	vm := newVM(t, Config{Modules: []*Module{optionModule}})
	require.Equal(t, []string{"1m0s.7 true 1h0m0s false 0.5 false", "1.5s/tmp3 false 20ms true 2 true"}, eval(t, vm, `
		local f = require("opt").f
		return f(), f{ timeout = 1.5, cwd = "/tmp", count = 3, loud = false, ms = 20, env = {}, ratio = 2, fn = print }`))
	for args, want := range map[string]string{
		`{ timeot = 1 }`:    `opt.f: unknown option "timeot" (did you mean "timeout"?)`,
		`{ zzzzzz = 1 }`:    `opt.f: unknown option "zzzzzz" (known: timeout, cwd, count, loud, ms, env, ratio, fn)`,
		`{ 5 }`:             `opt.f: unknown option [1] (known: timeout`,
		`{ timeout = "x" }`: `opt.f: option "timeout": got "x", want seconds (a number)`,
		`{ timeout = -1 }`:  `opt.f: option "timeout": got -1, want seconds (a number)`,
		`{ count = 2.5 }`:   `opt.f: option "count": got 2.5, want a whole number`,
		`{ loud = 1 }`:      `opt.f: option "loud": got 1, want true or false`,
		`{ cwd = 5 }`:       `opt.f: option "cwd": got 5, want a string`,
		`{ env = "A=1" }`:   `opt.f: option "env": got "A=1", want a table`,
		`{ fn = {} }`:       `opt.f: option "fn": got a table, want a function`,
		`"text"`:            `opt.f: argument 1 (opts): got "text", want a table`,
	} {
		require.ErrorContains(t, evalError(t, vm, `require("opt").f(`+args+`)`), "test.lua:1: "+want)
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"append", "read", "timeout"}
	require.Equal(t, `did you mean "append"?`, Suggest("apend", names))
	require.Equal(t, `did you mean "timeout"?`, Suggest("tiemout", names))
	require.Equal(t, "known: append, read, timeout", Suggest("xyz", names))
	require.Equal(t, "no name is known here", Suggest("xyz", nil))
}

func TestProtosAreShared(t *testing.T) {
	a, err := compile("shared.lua", "return 1")
	require.NoError(t, err)
	b, err := compile("shared.lua", "return 1")
	require.NoError(t, err)
	require.Same(t, a, b)
	other, err := compile("other.lua", "return 1")
	require.NoError(t, err)
	require.NotSame(t, a, other, "the name is in the code")
	for i := range cachedProtos + 1 {
		_, err := compile("filler.lua", fmt.Sprintf("return %d", i))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(protos.byHash), cachedProtos)
	require.Len(t, protos.order, len(protos.byHash))
	again, err := compile("shared.lua", "return 1")
	require.NoError(t, err)
	require.NotSame(t, a, again)
}

func TestBatonIsFair(t *testing.T) {
	var b baton
	b.take()
	var order []int
	var wg sync.WaitGroup
	for i := range 8 {
		turn := b.ask()
		wg.Go(func() {
			<-turn
			order = append(order, i)
			b.pass()
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, b.takeWithin(ctx), context.Canceled)
	b.pass()
	wg.Wait()
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, order)
	require.False(t, b.held)
	require.PanicsWithValue(t, "BUG: luabind: the baton is passed by one who does not hold it", b.pass)
}

// Tool handlers called back from many goroutines at once.
func TestEnterInParallel(t *testing.T) {
	parallel := &Module{Name: "parallel", Funcs: []Func{{Name: "map", Fn: func(c *Call) (int, error) {
		fn, n, vm := c.Func(1), int(c.Int(2)), c.VM()
		out := make([]lua.LValue, n)
		err := c.Block(func(ctx context.Context) error {
			var wg sync.WaitGroup
			errs := make([]error, n)
			for i := range n {
				wg.Go(func() {
					errs[i] = vm.Enter(ctx, func(c *Call) error {
						values, err := c.Invoke(fn, lua.LNumber(i))
						if err == nil {
							out[i] = values[0]
						}
						return err
					})
				})
			}
			wg.Wait()
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		return c.Return(out...)
	}}}}
	vm := newVM(t, Config{Modules: []*Module{parallel}})
	require.Equal(t, []string{"0", "1", "4", "9", "4"}, eval(t, vm, `
		local live, peak = 0, 0
		local a, b, c, d = require("parallel").map(function(i)
			live = live + 1
			peak = math.max(peak, live)
			std.task.spawn(function() std.task.sleep(1) end)
			while peak < 4 do std.task.yield() end -- until all of them are here
			live = live - 1
			return i * i
		end, 4)
		return a, b, c, d, peak`))
	require.ErrorContains(t, evalError(t, vm, `require("parallel").map(function(i) error("no " .. i) end, 3)`), "test.lua:1: no ")
	require.EqualError(t, vm.Enter(context.Background(), nil), "luabind: Enter: the context does not come from a running script")
}

// Lua under an entry whose context has ended gets a grace and no more.
func TestEnterEndsWithItsContext(t *testing.T) {
	var end context.CancelFunc
	short := &Module{Name: "short", Funcs: []Func{
		{Name: "call", Fn: func(c *Call) (int, error) {
			fn, vm := c.Func(1), c.VM()
			var err error
			_ = c.Block(func(ctx context.Context) error {
				ctx, end = context.WithCancel(ctx)
				defer end()
				err = vm.Enter(ctx, func(c *Call) error { _, err := c.Invoke(fn); return err })
				return nil
			})
			return c.Return(lua.LString(fmt.Sprint(err)))
		}},
		{Name: "cancel", Fn: func(*Call) (int, error) { end(); return 0, nil }},
	}}
	vm := newVM(t, Config{Modules: []*Module{short}})
	out := eval(t, vm, `
		local s = require("short")
		local seen
		return s.call(function() s.cancel() while true do pcall(std.task.yield) end end),
			s.call(function() s.cancel() local ok, e = pcall(std.task.sleep, 60000) seen = tostring(e) end), seen`)
	require.Equal(t, []string{"task cancelled", "<nil>", "std.task.sleep: task cancelled"}, out)
}

func TestErrorsOfTasksNobodyJoinedAreTold(t *testing.T) {
	var told []string
	vm := newVM(t, Config{Warn: func(text string) { told = append(told, text) }})
	eval(t, vm, `
		std.task.scope(function(s)
			s:spawn(function() error("lost") end, { name = "unjoined" })
			local h = s:spawn(function() error("seen") end)
			pcall(h.join, h)
			s:spawn(function() std.task.sleep(60000) end):cancel()
		end)`)
	require.Len(t, told, 1)
	require.Contains(t, told[0], `task "unjoined": test.lua:3: lost`)
	require.Contains(t, told[0], "(spawned as \"unjoined\" by)\n\ttest.lua:3: in function")
}

func TestAbortIsTold(t *testing.T) {
	aborted := make(chan string, 1)
	watched := false
	hook := &Module{Name: "hook", Funcs: []Func{{Name: "watch", Fn: func(c *Call) (int, error) {
		watched = true
		task := TaskOf(c.Ctx())
		task.OnAbort(func() { aborted <- task.Name() })
		return 0, nil
	}}}}
	vm := newVM(t, Config{Modules: []*Module{hook}})
	for ms := 1; !watched; ms *= 2 { // a busy machine may end the task before its first line
		require.Equal(t, []string{"false"}, eval(t, vm, fmt.Sprintf(`
			return pcall(std.task.with_timeout, %d, function() require("hook").watch() while true do end end, { grace_ms = 1 })`, ms))[:1])
	}
	require.Equal(t, "with_timeout", <-aborted)
	require.Nil(t, TaskOf(context.Background()))
}

// countGoroutines answers how many there are once those that are ending ended.
