package luabind

import (
	"context"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// benchLua runs body b.N times inside one run.
func benchLua(b *testing.B, setup, body string) {
	vm := newVM(b, Config{Modules: []*Module{benchModule}})
	proto, err := compile("bench.lua", "local n = ... local noop = require('bench').noop local call = require('bench').call\n"+
		setup+"\nfor i = 1, n do "+body+" end")
	if err != nil {
		b.Fatal(err)
	}
	fn := vm.root.NewFunctionFromProto(proto)
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := vm.Run(context.Background(), fn, lua.LNumber(b.N)); err != nil {
		b.Fatal(err)
	}
}

var benchModule = &Module{Name: "bench", Funcs: []Func{
	{Name: "noop", Args: []Arg{{Name: "n", Kind: Number}}, Fn: func(c *Call) (int, error) { return c.Return(lua.LNumber(c.Number(1))) }},
	{Name: "call", Args: []Arg{{Name: "fn", Kind: Function}}, Fn: func(c *Call) (int, error) {
		out, err := c.Invoke(c.Arg(1), c.Arg(2))
		if err != nil {
			return 0, err
		}
		return c.Return(out...)
	}},
	{Name: "block", Fn: func(c *Call) (int, error) { return 0, c.Block(func(context.Context) error { return nil }) }},
}}

func BenchmarkLoop(b *testing.B)     { benchLua(b, "local x = 0", "x = x + i") }
func BenchmarkHostCall(b *testing.B) { benchLua(b, "", "noop(i)") }
func BenchmarkBlock(b *testing.B)    { benchLua(b, "local block = require('bench').block", "block()") }
func BenchmarkInvoke(b *testing.B)   { benchLua(b, "local function f(x) return x end", "call(f, i)") }
func BenchmarkPcall(b *testing.B)    { benchLua(b, "local function f(x) return x end", "pcall(f, i)") }
func BenchmarkPcallCatch(b *testing.B) {
	benchLua(b, "local function f(x) error('e', 0) end", "pcall(f, i)")
}
func BenchmarkCoroutine(b *testing.B) {
	benchLua(b, "local co = coroutine.wrap(function() while true do coroutine.yield(1) end end)", "co(i)")
}
func BenchmarkCoroutineNew(b *testing.B) {
	benchLua(b, "local function f() coroutine.yield() end", "local co = coroutine.wrap(f) co() co()")
}
func BenchmarkTask(b *testing.B) {
	benchLua(b, "local spawn, print_nothing = std.task.spawn, function() end", "spawn(print_nothing):join()")
}
func BenchmarkConcat(b *testing.B) { benchLua(b, "", "local s = 'a' .. i .. 'b'") }
func BenchmarkMatch(b *testing.B) {
	benchLua(b, "local s = ('word '):rep(20) .. 'key=value'", "s:match('(%w+)=(%w+)')")
}
func BenchmarkFormat(b *testing.B) { benchLua(b, "", "string.format('%s %d %.2f', 'x', i, 0.5)") }

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		vm, err := New(Config{Modules: []*Module{TaskModule}})
		if err != nil {
			b.Fatal(err)
		}
		if err := vm.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProtoCacheHit(b *testing.B) {
	source := string(make([]byte, 0, 8<<10))
	for len(source) < 8<<10 {
		source += "function f(a, b) return a + b end\n"
	}
	if _, err := compile("hit.lua", source); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compile("hit.lua", source); err != nil {
			b.Fatal(err)
		}
	}
}
