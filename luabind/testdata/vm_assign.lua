-- Every expression of an assignment is evaluated before the first place is set.
local a, b, c = 1, 2, 3
a, b = b, a
assert(a == 2 and b == 1)
a, b, c = c, a, b
assert(a == 3 and b == 2 and c == 1)
---
-- Locals, upvalues, globals and fields beside each other.
local n, t = 0, { 7 }
n, t[1] = t[1], n + 100
assert(n == 7 and t[1] == 100)
t[1], n = n, nil
assert(t[1] == 7 and n == nil)
t[1], t[2] = t[2], t[1]
assert(t[1] == nil and t[2] == 7)
g, n = 5, g
assert(g == 5 and n == nil)
g, n = n, g
assert(g == nil and n == 5)
local function inner() n, t.n = t[2], n end
inner()
assert(n == 7 and t.n == 5)
---
-- The table and the key are those from before.
local i, t = 3, {}
i, t[i] = i + 1, 20
assert(i == 4 and t[3] == 20 and t[4] == nil)
local u = {}
local old = t
t, t.x = u, 1
assert(old.x == 1 and u.x == nil)
u.y, u = 2, nil
assert(t.y == 2)
t.a, t.a = 1, 2
assert(t.a == 1)
---
-- More values than places, and fewer.
local function three() return 1, 2, 3 end
local a, b, c, d
a, b = three()
assert(a == 1 and b == 2)
a, b, c, d = 0, three()
assert(a == 0 and b == 1 and c == 2 and d == 3)
a, b, c, d = three(), 9
assert(a == 1 and b == 9 and c == nil and d == nil)
a, b = 1, 2, error and 3
assert(a == 1 and b == 2)
local function pass(...) a, b, c = ... end
pass(4, nil, 6)
assert(a == 4 and b == nil and c == 6)
---
-- In every block there is.
local a, b = 1, 2
local function swap() a, b = b, a end
local t = { f = function() a, b = b, a end, [1] = { function() a, b = b, a end } }
swap(function() a, b = b, a end)
t.f()
t[1][1]()
assert(a == 2 and b == 1)
for _ = 1, 1 do a, b = b, a end
for _ in pairs{ 1 } do a, b = b, a end
repeat a, b = b, a until true
while a == 2 do a, b = b, a break end
if a == 9 then a = 0 elseif a == 1 then a, b = b, a else a, b = b, a end
do a, b = b, a end
assert(a == 1 and b == 2, a)
local o = {}
function o:m(x) self.x, x = x, self.x; return x end
assert(o:m(1) == nil and o:m(2) == 1)
return (function() a, b = b, a end)()
---
local t
local a
a, t.x = 1, 2 --> error: attempt to index local 't' (a nil value) with key 'x'
---
local t = {}
local a
a, t[nil] = 1, 2 --> error: nil
---
-- The calls are made in order, and errors name them.
local seen = {}
local function note(v) seen[#seen + 1] = v; return v end
local a, t = nil, {}
a, t[note("key")] = note("first"), note("second")
assert(table.concat(seen, " ") == "key first second")
