-- A goto leaves what functions use together.
local n = 0
local function inc() n = n + 1 end
for i = 1, 3 do
  if i == 2 then goto continue end
  inc()
  ::continue::
end
assert(n == 2)
local kept = {}
for i = 1, 3 do
  local v = i * 10
  kept[i] = { up = function() v = v + 1 end, read = function() return v end }
  if i == 2 then goto next end
  kept[i].up()
  do
    local w = v
    kept[i].w = function() return w end
    if i == 3 then goto next end
  end
  ::next::
end
kept[2].up()
assert(kept[1].read() == 11 and kept[2].read() == 21 and kept[3].read() == 31)
assert(kept[1].w() == 11 and kept[3].w() == 31)
local i, fs = 1, {}
::again::
do
  local x = i
  fs[i] = function() x = x + 1 return x, i end
  i = i + 1
  if i < 4 then goto again end
end
local x, j = fs[1]()
assert(x == 2 and j == 4 and fs[3]() == 4)
---
-- A break leaves each local to the function that uses it.
local function over(...) local a, b, c, d, e, g, h = ... return h end
local f, g, h
for i = 1, 3 do
  if i == 2 then
    local x = i * 10
    f = function() return x end
    break
  end
end
for _, name in ipairs{ "a", "b" } do
  do
    local found = name .. "!"
    if name == "b" then
      g = function() return found end
      break
    end
  end
end
local k = 0
while true do
  k = k + 1
  repeat
    local y = k
    if y == 3 then
      h = function() y = y + 1 return y end
      break
    end
  until y > 0
  if h then local z = k f = (function(old) return function() return old(), z end end)(f) break end
end
over(1, 2, 3, 4, 5, 6, 7)
local first, second = f()
assert(first == 20 and second == 3 and g() == "b!" and h() == 4 and h() == 5)
---
-- One value of a call, or of "...", goes where it is assigned and nowhere else.
local function trim(s) s = (s:gsub("^%s+", "")) return s end
assert(trim("  x") == "x")
local function twice(a, s, ...) s = (string.rep(s, 2)) return a, s, ... end
local a, s, rest = twice(1, "ab", 3)
assert(a == 1 and s == "abab" and rest == 3)
local t = { v = 1 }
function t:me() self = (select(1, self)) return self.v end
assert(t:me() == 1)
local function one(s) for i = 1, 2 do local q = i s = (tostring(s)) assert(q == i) end return s end
assert(one(5) == "5")
local function firstof(...) local a, b, c = 1, 2, 3 a = (...) return a, b, c end
local p, q, r = firstof(9, 8)
assert(p == 9 and q == 2 and r == 3)
local function allof(...) local a, b = 1, 2 a = ... return a, b end
p, q = allof(9, 8)
assert(p == 9 and q == 2)
---
-- The iterator of a loop may come from what a call answers.
local mod = { each = function(t) return ipairs(t) end }
local function lib() return mod end
local function maker() return function(n) return function(_, i) if i < n then return i + 1 end end, nil, 0 end end
local seen = {}
local function chain(...)
  for _, v in lib().each{ "a", "b" } do seen[#seen + 1] = v end
  for i in maker()(2) do seen[#seen + 1] = i end
  for i in (...)(1) do seen[#seen + 1] = i end
  for w in (function() return "x y" end)():gmatch("%a") do seen[#seen + 1] = w if w == "x" then break end end
  for k in lib()[(...) and "pairs" or "each"]{ 7 } do seen[#seen + 1] = k end
end
mod.pairs = pairs
chain(maker())
assert(table.concat(seen, " ") == "a b 1 2 1 x 1")
---
-- A list ends where its last element is.
local t = { 10, 20, 30 }
t[#t] = nil
assert(#t == 2 and table.remove(t) == 20 and #t == 1)
t[1] = nil
assert(table.remove(t) == nil and #t == 0)
t = { 1, 2 }
assert(select("#", table.remove(t, 0)) == 0 and select("#", table.remove(t, -1)) == 0 and select("#", table.remove(t, 3)) == 0 and #t == 2)
t = { 3, 2, 1, 0 }
t[#t] = nil
table.sort(t)
assert(table.concat(t, ",") == "1,2,3")
t = { 3, 2, 1, 0 }
t[4] = nil
table.sort(t, function(a, b) return a > b end)
table.insert(t, 9)
table.insert(t, 1, 8)
assert(table.concat(t, ",") == "8,3,2,1,9")
local o = { list = { 1, 2, 3 } }
o.list[#o.list] = nil
assert(#o.list == 2 and o.list[3] == nil)
local watched, log = setmetatable({}, { __newindex = function(_, k, v) rawset(o, "k", k) o.v = v end }), {}
watched[#watched] = nil
assert(o.k == 0 and o.v == nil)
assert(not pcall(function() local s = "text" s[#s] = nil end))
assert(not pcall(function() local s s[#s] = nil end))
local none = {}
none[0] = "zero"
none[#none] = nil
assert(none[0] == nil)
---
-- A stack takes as long for its last element as for its first.
local stack = {}
for i = 1, 200000 do stack[i] = i end
for _ = 1, 200000 do stack[#stack] = nil end
for i = 1, 200000 do stack[#stack + 1] = i end
assert(#stack == 200000)
local class = {}
class.__index = class
function class:push(v) self[#self + 1] = v end
function class:pop() local v, n = self[#self], #self self[n] = nil return v end
local s = setmetatable({}, class)
for i = 1, 200000 do s:push(i) end
for i = 200000, 1, -1 do assert(s:pop() == i) end
assert(#s == 0 and next(s) == nil)
---
-- Fields may be cleared while next goes over them, and the list get shorter.
local function keys(t, at, shorten)
  local seen = {}
  for k in pairs(t) do
    seen[#seen + 1] = tostring(k)
    if k == at then shorten(t) end
  end
  return table.concat(seen, " ")
end
local function list() return { "x", "y", "z", one = 1 } end
assert(keys(list(), 3, function(t) t[#t] = nil end) == "1 2 3 one")
assert(keys(list(), 1, function(t) for i = 3, 1, -1 do t[i] = nil end assert(#t == 0) end) == "1 one")
assert(keys(list(), 2, function(t) table.remove(t) table.remove(t) table.sort(t) end) == "1 2 one")
assert(keys({ "x", "y", [9] = 9 }, 9, function(t) t[9] = nil assert(#t == 2) end) == "1 2 9")
assert(keys({ "x", "y" }, 2, function(t) t[2] = nil assert(#t == 1) end) == "1 2")
---
-- A loop over what is no call begins anew: with nil, or with what it is given.
local a, b = { 1, 2, 3 }, { "x", "y", "z" }
local n = 0
for _ in next, a do n = n + 1 end
for _, v in next, b do n = n + 1 end
for _, v in next, b, 1 do n = n + 1 end
assert(n == 8, n)
local function count(s, i) assert(s == nil) i = (i or 0) + 1 return i < 4 and i or nil end
for round = 1, 2 do
  n = 0
  for i in count do n = n + i end
  for i, j in count, nil do n = n + i end
  for i, j in count, nil, 2 do n = n + i end
  assert(n == 15, n)
end
---
-- Text that holds numbers is a date, too; numerals of a base are those of Lua.
assert(os.time{ year = "2020", month = "01", day = "02", hour = "08" } == os.time{ year = 2020, month = 1, day = 2, hour = 8 })
assert(not pcall(os.time, { year = "x", month = 1, day = 2 }))
assert(tonumber("1.5", 10) == 1.5 and tonumber("1e3", 10) == 1000 and tonumber("ffffffffffffffff", 16) == 2 ^ 64)
assert(tonumber("-ff", 16) == -255 and tonumber("zz", 36) == 1295 and tonumber("8", 8) == nil and tonumber("", 16) == nil)
assert(table.concat({ 1 / 0, -1 / 0 }, " ") == "inf -inf" and select("2", "a", "b") == "b")
