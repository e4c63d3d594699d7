-- Values cross in both directions.
local co = coroutine.create(function(a, b)
  local c = coroutine.yield(a + b)
  local d, e = coroutine.yield(c * 2)
  return d + e
end)
assert(select(2, coroutine.resume(co, 1, 2)) == 3)
assert(select(2, coroutine.resume(co, 10)) == 20)
assert(select(2, coroutine.resume(co, 3, 4)) == 7)
local ok, e = coroutine.resume(co)
assert(not ok and e == "cannot resume dead coroutine", e)
assert(coroutine.status(co) == "dead" and type(co) == "thread")
---
-- A yield under pcall, and the pcall works on after it.
local co = coroutine.wrap(function()
  local ok, v = pcall(function()
    local got = coroutine.yield("in pcall")
    error("after " .. got, 0)
  end)
  coroutine.yield(ok == false and v)
  local ok, v = xpcall(function() return coroutine.yield("in xpcall") end, debug.traceback)
  return v
end)
assert(co() == "in pcall")
assert(co("x") == "after x")
assert(co() == "in xpcall")
assert(co("end") == "end")
---
-- A yield in metamethods.
local mt = {
  __index = function(_, k) return coroutine.yield("index " .. k) end,
  __add = function() return coroutine.yield("add") end,
  __call = function(_, v) return coroutine.yield("call " .. v) end,
  __lt = function() return coroutine.yield("lt") end,
  __concat = function() return coroutine.yield("concat") end,
  __newindex = function() coroutine.yield("newindex") end,
}
local t, u = setmetatable({}, mt), setmetatable({}, mt)
local co = coroutine.wrap(function()
  local a = t.key
  local b = t + 1
  local c = t("v")
  local d = t < u
  local e = t .. "s"
  t.new = 1
  return a, b, c, d, e
end)
assert(co() == "index key" and co(1) == "add" and co(2) == "call v" and co(3) == "lt")
assert(co(false) == "concat" and co(5) == "newindex")
local a, b, c, d, e = co()
assert(a == 1 and b == 2 and c == 3 and d == false and e == 5)
---
-- A yield in a comparator, an iterator and a replacement function.
local list = { 3, 1, 2 }
local co = coroutine.wrap(function()
  table.sort(list, function(a, b) coroutine.yield("cmp"); return a < b end)
  for v in function() return coroutine.yield("iter") end do list[#list + 1] = v end
  return (("ab"):gsub(".", function(c) return coroutine.yield(c) end))
end)
local r = co()
while r == "cmp" do r = co() end
assert(table.concat(list, ",") == "1,2,3" and r == "iter")
assert(co(4) == "iter" and list[4] == 4)
assert(co(nil) == "a" and co("x") == "b" and co("y") == "xy")
---
-- status, running, isyieldable.
assert(coroutine.running() == nil and coroutine.isyieldable() == false)
local outer
outer = coroutine.create(function()
  assert(coroutine.running() == outer and coroutine.isyieldable())
  assert(coroutine.status(outer) == "running")
  local inner = coroutine.create(function()
    assert(coroutine.status(outer) == "normal")
    local ok, e = coroutine.resume(outer)
    assert(not ok and e == "cannot resume normal coroutine", e)
    pcall(function() assert(coroutine.running() ~= outer) end)
  end)
  assert(coroutine.status(inner) == "suspended")
  assert(coroutine.resume(inner))
  local ok, e = coroutine.resume(outer)
  assert(not ok and e == "cannot resume running coroutine", e)
end)
assert(coroutine.resume(outer))
---
local here = debug.getinfo(1).currentline
-- An error in a coroutine is the value itself.
local t = {}
local ok, e = coroutine.resume(coroutine.create(function() error(t) end))
assert(not ok and e == t)
local ok, e = pcall(coroutine.wrap(function() error("text") end))
assert(e == "vm_coroutine.lua:" .. here + 5 .. ": text", e)
---
local co = coroutine.wrap(function()
  error("inside") --> error: inside
end)
co()
---
coroutine.yield(1) --> error: attempt to yield from outside a coroutine
---
coroutine.create(42) --> error: coroutine.create: argument 1: got 42, want a function
---
coroutine.resume({}) --> error: coroutine.resume: argument 1: got a table, want a coroutine
---
-- An error of wrap keeps upvalues of the resumer.
local x = 1
local function read() return x end
pcall(coroutine.wrap(function() error("e") end))
x = 2
assert(read() == 2)
---
-- Upvalues shared between a coroutine and its maker.
local n = 0
local co = coroutine.wrap(function() while true do n = n + 1; coroutine.yield(n) end end)
co() n = 10
assert(co() == 11 and n == 11)
---
-- A generator resumed by different callers, and debug.traceback of it.
local function helper() coroutine.yield() end
local co = coroutine.create(function() helper() end)
coroutine.resume(co)
local trace = debug.traceback(co, "why")
assert(trace:find("^why\nstack traceback:\n") and trace:find("in function 'helper'", 1, true), trace)
