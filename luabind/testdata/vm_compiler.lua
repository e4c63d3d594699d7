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
