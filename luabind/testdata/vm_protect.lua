-- An error that pcall catches leaves the live frames alone: x stays shared.
local x = 1
local function read() return x end
pcall(error, "e")
x = 2
assert(read() == 2, read())
---
-- The same with nesting, and with a closure of the unwound frame.
local kept
local x = 1
local function read() return x end
local ok = pcall(function()
  local y = 10
  kept = function() y = y + 1; return y end
  pcall(error, "inner")
  y = 20
  assert(kept() == 21)
  error("outer")
end)
assert(not ok)
x = 5
assert(read() == 5)
for i = 1, 50 do pcall(function(a, b, c) local d, e = a, b; return d, e, c end, i, i, i) end
assert(kept() == 22 and kept() == 23)
---
-- xpcall: a closure of the unwound frame keeps its own value.
local kept
xpcall(function()
  local secret = "mine"
  kept = function() return secret end
  error("e")
end, function() return "h" end)
local function clobber(...) local a, b, c, d = 1, 2, 3, 4; return a + b + c + d end
for i = 1, 20 do clobber(i, i, i, i) end
assert(kept() == "mine", tostring(kept()))
---
-- A loop that pcalls keeps its fresh locals apart.
local fns = {}
for i = 1, 3 do
  local n = i
  fns[i] = function() n = n + 1; return n end
  pcall(error, i)
end
assert(fns[1]() == 2 and fns[1]() == 3 and fns[2]() == 3 and fns[3]() == 4)
---
-- Results, arguments and nil cross pcall and xpcall.
local function n(...) return select("#", ...) end
assert(n(pcall(function(...) return ... end, nil, nil)) == 3)
local ok, a, b = xpcall(function(p, q) return q, p end, error, 1, 2)
assert(ok and a == 2 and b == 1)
local t = {}
local ok, v = pcall(error, t)
assert(not ok and v == t)
assert(select("#", pcall(error)) == 2)
local callable = setmetatable({}, { __call = function(self, v) return v end })
local ok, v = pcall(callable, 7)
assert(ok and v == 7)
local ok, e = pcall(nil)
assert(not ok and e:find("not a function"), e)
---
local here = debug.getinfo(1).currentline
-- error honours its level.
local function level1() error("msg") end
local function level2() error("msg", 2) end
local function caller() level2() return 1 end
local ok, e = pcall(level1)
assert(e == "vm_protect.lua:" .. here + 2 .. ": msg", e)
local ok, e = pcall(caller)
assert(e == "vm_protect.lua:" .. here + 4 .. ": msg", e)
local ok, e = pcall(function() error("msg", 0) end)
assert(e == "msg", e)
local ok, e = pcall(level2)
assert(e == "msg", e)
local function three() error("msg", 3) end
local function two() three() return 1 end
local function one() two() return 1 end
local ok, e = pcall(one)
assert(e == "vm_protect.lua:" .. here + 15 .. ": msg", e)
---
local function level2() error("deep", 2) end
local function caller()
  level2() --> error: deep
end
caller()
---
local here = debug.getinfo(1).currentline
-- The level passes a pcall: level 3 is who called pcall.
local function f() error("msg", 3) end
local ok, e = pcall(f)
assert(e == "vm_protect.lua:" .. here + 3 .. ": msg", e)
---
-- A tail call is a level without a position.
local function f() error("msg", 2) end
local function g() return f() end
local ok, e = pcall(function() g() return 1 end)
assert(e == "msg", e)
---
local here = debug.getinfo(1).currentline
-- The handler of xpcall sees the frames of the error.
local function broken() local x = nil; return x.field end
local ok, trace = xpcall(broken, debug.traceback)
assert(trace:find("vm_protect.lua:" .. here + 3 .. ":"), trace)
assert(trace:find("in function 'xpcall'", 1, true), trace)
---
-- A handler that raises.
local ok, e = xpcall(error, function() error("again", 0) end, "first")
assert(not ok and e:find("error in error handling") and e:find("again"), e)
---
local here = debug.getinfo(1).currentline
-- assert raises a text with its place and another value as it is.
local ok, e = pcall(function() assert(false, "why") end)
assert(e == "vm_protect.lua:" .. here + 2 .. ": why", e)
local ok, e = pcall(function() assert(nil) end)
assert(e == "vm_protect.lua:" .. here + 4 .. ": assertion failed!", e)
local t = {}
local ok, e = pcall(assert, false, t)
assert(e == t)
assert(select("#", assert(1, nil, 3)) == 3)
---
local t
t.field = 1 --> error: attempt to index local 't' (a nil value) with key 'field'
---
local t = { name = {} }
t.name.missing() --> error: attempt to call "missing", which is not a function
---
local s = "x"
s:missing() --> error: attempt to call "missing", which is not a function
---
string.rep() --> error: bad argument #1 to rep
---
-- Recursion without an end is an ordinary error.
local function f() return 1 + f() end
local ok, e = pcall(f)
assert(not ok and e:find("stack overflow"), e)
local ok, e = pcall(f)
assert(not ok and e:find("stack overflow"), e)
---
local function f() return 1 + f() end --> error: stack overflow
f()
---
-- So is a recursion through pcall, a metamethod, a comparator, a coroutine.
local function f() local ok, e = pcall(f); if not ok then error(e, 0) end return e end
local ok, e = pcall(f)
assert(not ok and e:find("C stack overflow"), e)
local t = setmetatable({}, { __index = function(t, k) return t[k] end })
local ok, e = pcall(function() return t.x end)
assert(not ok and e:find("stack overflow"), e)
local function s() table.sort({ 2, 1 }, function(a, b) s() return a < b end) end
local ok, e = pcall(s)
assert(not ok and e:find("stack overflow"), e)
local function c() coroutine.wrap(c)() end
local ok, e = pcall(c)
assert(not ok and e:find("C stack overflow"), e)
---
-- Tail calls do not grow the stack.
local function loop(n) if n == 0 then return "done" end return loop(n - 1) end
assert(loop(100000) == "done")
---
-- Deep but finite recursion works.
local function depth(n) if n == 0 then return 0 end return 1 + depth(n - 1) end
assert(depth(3000) == 3000)
---
-- setfenv, getfenv and varargs under pcall.
local env = { tostring = tostring }
local f = setfenv(function(...) y = select and 1 or 2; return y, ... end, env)
local ok, a, b = pcall(f, "v")
assert(ok and a == 2 and b == "v" and env.y == 2 and y == nil)
---
local here = debug.getinfo(1).currentline
-- debug.getinfo tells a caller where it is.
local info = debug.getinfo(1)
assert(info.currentline == here + 2 and info.short_src == "vm_protect.lua" and info.what == "main")
local function f() return debug.getinfo(1, "n") end
local r = f()
assert(r.what == "Lua" and r.linedefined == here + 4)
assert(debug.getinfo(print).what == "Go" and debug.getinfo(99) == nil)
assert(debug.sethook == nil and debug.setupvalue == nil and debug.getlocal == nil)
---
-- The handler sees the frames of a coroutine that failed, and may yield itself.
local function broken() error("deep") end
local resumed = coroutine.wrap(function()
  return xpcall(coroutine.wrap(function() broken() end), function(e)
    return e .. coroutine.yield(debug.traceback())
  end)
end)
local trace = resumed()
assert(trace:find("in function 'broken'", 1, true) and trace:find("in function 'xpcall'", 1, true), trace)
local ok, e = resumed(" handled")
assert(not ok and e:find("deep handled$"), e)
---
-- A thread that pcall takes back after an error is as good as a new one.
local kept, sum = {}, 0
for i = 1, 100 do
  pcall(function(a, b)
    local mine = i
    kept[i] = function() mine = mine + 1; return mine end
    local ok, e = pcall(error, "inner " .. a)
    assert(e == "inner " .. a)
    if i % 2 == 0 then error({}) end
    local nothing = nil
    return nothing.field
  end, i, nil)
  local ok, a, b, c = pcall(function(...) return ..., i, nil end, 1, 2)
  assert(ok and a == 1 and b == i and c == nil)
  sum = sum + select(2, pcall(select, "#", 1, 2, 3))
end
for i = 1, 100 do assert(kept[i]() == i + 1 and kept[i]() == i + 2) end
assert(sum == 300)
local function depth(n) if n == 0 then return 0 end return 1 + depth(n - 1) end
for i = 1, 20 do
  pcall(error, i)
  local ok, n = pcall(depth, 3900)
  assert(ok and n == 3900, n)
end
---
-- Texts that begin with a blank or look like one of the library are kept.
local ok, e = pcall(error, " x", 0)
assert(e == " x")
local ok, e = pcall(error, "attempt to call a non-function object", 0)
assert(e == "attempt to call a non-function object")
local ok, e = pcall(string.rep)
assert(e:find("bad argument #1 to '?' (string expected, got nil)", 1, true), e)
---
-- Nor does it take back one whose upvalues an error from elsewhere left open.
local kept
pcall(function()
  local mine = "mine"
  kept = function() return mine end
  coroutine.wrap(function() error("from the coroutine") end)()
end)
for i = 1, 20 do pcall(function(...) local a, b, c, d = 1, 2, 3, 4; return a + b + c + d end, i, i, i) end
assert(kept() == "mine", tostring(kept()))
