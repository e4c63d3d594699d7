-- A choice that is assigned to a local is assigned, whatever it comes to.
local t, g = {}, nil
local a = 1
a = t.x and 5
assert(a == nil)
local b = 1
b = g and nil
assert(b == nil)
local c = 1
c = (t[1] and t[1].x) and 2
assert(c == nil)
local d = 1
d = t.x and d
assert(d == nil)
local e = 1
e = t.x or t.y
assert(e == nil)
local f = 1
f = t.x == 1 and f
assert(f == false)
local function outer()
  local x = 1
  local function inner() x = t.x and 2 return x end
  return inner(), x
end
local first, second = outer()
assert(first == nil and second == nil)
---
-- What is switched off does not run, and a loop runs its body.
local function sum(each)
  local n = 0
  each(function(v) n = n + v end)
  return n
end
assert(sum(function(add)
  for _, v in ipairs{ 1, 2, 3 } do
    if false then error("switched off") end
    add(v)
  end
end) == 6)
assert(sum(function(add)
  local n = 0
  repeat
    if nil then error("switched off") end
    n = n + 1
    add(n)
  until n == 3
end) == 6)
assert(sum(function(add)
  local n = 0
  while true do
    if false and n then error("switched off") end
    n = n + 1
    add(n)
    if n == 3 then break end
  end
end) == 6)
assert(sum(function(add)
  local n = 0
  while nil or n < 3 do n = n + 1 add(n) end
end) == 6)
assert(sum(function(add)
  for _, v in ipairs{ 1, 2, 3 } do
    local x = nil or v
    local y = false and v
    if not (y or false) then add(x) end
  end
end) == 6)
assert(sum(function(add)
  for _ in ipairs{ 1, 2, 3 } do
    if "x" ~= (true or add) then add(1) end
  end
end) == 3)
assert(sum(function(add)
  for _, a in ipairs{ 1, 2 } do
    for _, b in ipairs{ 1, 2, 3 } do
      if false then error("switched off") elseif a then add(b) end
    end
  end
end) == 12)
---
-- A break that begins a loop ends that loop.
local steps = 0
for _ in pairs{ 1 } do break end
steps = steps + 1
assert(steps == 1, "the second break led to the end of the first loop")
for _ in pairs{ 1 } do do break end end
repeat break until false
while true do break end
for i = 1, 3 do break end
assert(steps == 1)
---
-- A jump back to a label, and a continue.
local n, seen = 0, 0
::top::
if false then error("switched off") end
n = n + 1
if n < 3 then goto top end
assert(n == 3)
for i = 1, 4 do
  if i % 2 == 0 then goto continue end
  seen = seen + i
  ::continue::
end
assert(seen == 4)
for _, i in ipairs{ 1, 2, 3, 4 } do
  if i % 2 == 0 then goto continue end
  seen = seen + i
  ::continue::
end
assert(seen == 8)
---
-- The names that the host puts in do not show.
local i = 0
while nil or i < 1 do
  i = i + 1
  assert(not pcall(function() return start.x end))
end
---
-- A function that a local is made of knows the local of that name around it; one
-- that is declared so knows itself.
local show = function(v) return "outer " .. v end
do
  local show = function(v) return "<" .. show(v) .. ">" end
  assert(show("x") == "<outer x>")
end
local tostring = function(v) return "<" .. tostring(v) .. ">" end
assert(tostring(1) == "<1>")
local function depth(n) return n == 0 and 0 or 1 + depth(n - 1) end
assert(depth(5) == 5)
local late = function() return later end
local later = 1
assert(late() == nil and later == 1)
---
-- Every value of a statement is made before any is assigned.
local a, seen = 9, nil
local function see(v) seen = v end
a = 1, see(a)
assert(a == 1 and seen == 9)
