package luabind

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// What the library does wrong, each with a script that tells the difference.
// TestFaultsOfTheLibrary runs it on both sides: the day the library is right a
// shim can go.
var libraryFaults = []struct{ name, source string }{
	{"pcall closes upvalues of live frames", `local x = 1; local f = function() return x end; pcall(error, "e"); x = 2; return f() == 2`},
	{"xpcall leaves upvalues of dead frames open", `
		local kept
		xpcall(function() local v = "mine"; kept = function() return v end; error("e") end, function() end)
		local function clobber(...) local a, b, c, d = 1, 2, 3, 4; return a, b, c, d end
		for i = 1, 20 do clobber(i, i, i, i) end
		return kept() == "mine"`},
	{"error ignores its level", "local function f() error('m', 2) end\nlocal function g()\nf() return 1 end\nlocal ok, e = pcall(g) return e:match(':(%d+):') == '3'"},
	{"a yield under pcall is lost", `
		local co = coroutine.wrap(function() local ok, v = pcall(function() return coroutine.yield(1) end); return ok, v end)
		co() local ok, v = co(2) return ok == true and v == 2`},
	{"a yield in a metamethod is lost", `
		local t = setmetatable({}, { __index = function(_, k) return coroutine.yield(k) end })
		local co = coroutine.wrap(function() local v = t.key; return v end)
		return co() == "key" and co(5) == 5`},
	{"a swap of locals loses one", `local a, b = 1, 2; a, b = b, a; return a == 2 and b == 1`},
	{"math.huge is finite", `return math.huge == 1 / 0`},
	{"tonumber knows no exponent without a point", `return tonumber("1e3") == 1000`},
	{"tonumber counts a sign into no hexadecimal", `return tonumber("-0x10") == -16`},
	{"string.format cuts a fraction", `return not pcall(string.format, "%d", 3.7)`},
	{"a pattern without captures to find an empty string ignores init", `return ("abc"):find("", 3) == 3`},
	{"frontier patterns are unknown", `return (("THE fox"):gsub("%f[%a]%a+", "x")) == "x x"`},
	{"upper changes bytes of UTF-8", `return ("\228"):upper() == "\228"`},
	{"math.random of nothing panics", `local ok, e = pcall(math.random, 0) return not ok and e:find("empty") ~= nil`},
	{"an index far away makes room for all before it", `local t = {}; t[2 ^ 25] = 1; return #t == 0`},
}

func TestFaultsOfTheLibrary(t *testing.T) {
	for _, fault := range libraryFaults {
		t.Run(fault.name, func(t *testing.T) {
			require.Equal(t, []string{"true"}, eval(t, newVM(t, Config{}), fault.source))
			if fault.name == "an index far away makes room for all before it" {
				return // the setting is the process's
			}
			l := lua.NewState()
			defer l.Close()
			err := l.DoString("return (function() " + fault.source + "\nend)()")
			require.False(t, err == nil && l.Get(-1) == lua.LTrue, "the library does this right now: the shim can go")
		})
	}
}
