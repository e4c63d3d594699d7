-- What was nil has its name, in the words of Lua 5.1; an index has its key too.
local t, up = { a = {}, text = "abc", ["two words"] = 1 }, nil
local function g() end
local wants = {
  { function() return t.x.y end, "index field 'x' (a nil value) with key 'y'" },
  { function() t.x.y = 1 end, "index field 'x' (a nil value) with key 'y'" },
  { function() return t.a.b.c end, "index field 'b' (a nil value) with key 'c'" },
  { function() return nowhere.fs end, "index global 'nowhere' (a nil value) with key 'fs'" },
  { function() return up.x end, "index upvalue 'up' (a nil value) with key 'x'" },
  { function() local l return l.x end, "index local 'l' (a nil value) with key 'x'" },
  { function() local l l.x = 2 end, "index local 'l' (a nil value) with key 'x'" },
  { function() local l l:go() end, "index local 'l' (a nil value) with key 'go'" },
  { function(p) local a, b = 1, 2 do local c = a end return p.x end, "index local 'p' (a nil value) with key 'x'" },
  { function() do local a, b = 1, 2 end local l return l.x end, "index local 'l' (a nil value) with key 'x'" },
  { function() if t then local y = 1 end return t.x.b end, "index field 'x' (a nil value) with key 'b'" },
  { function()
      for i = 1, 2 do local a = i end
      for k, v in pairs{ 1 } do local w = v end
      while true do local w = up; break end
      repeat local z = 1 until z
      local function inner(z) local y = z end
      local l
      do local m = l; return m.x end
    end, "index local 'm' (a nil value) with key 'x'" },
  { function() for i = 1, 2 do local l return l.x end end, "index local 'l' (a nil value) with key 'x'" },
  { function() for _, v in ipairs{ 1 } do return v.x end end, "index local 'v' (a number value) with key 'x'" },
  { function() return t.x:go() end, "index field 'x' (a nil value) with key 'go'" },
  { function() local k = 3 return t.list[k].name end, "index field 'list' (a nil value) with key '3'" },
  { function() local k = 3 return t.a[k].name end, "index field '?' (a nil value) with key 'name'" },
  { function() return (t.x and up).y end, "index a nil value with key 'y'" },
  { function() return (up or t.x) + 1 end, "perform arithmetic on a nil value" },
  { function() return g().x end, "index a nil value with key 'x'" },
  { function() return t.text.y.z end, "index field 'y' (a nil value) with key 'z'" },
  { function() return (1).y end, "index a number value with key 'y'" },
  { function() return t.x + 1 end, "perform arithmetic on field 'x' (a nil value)" },
  { function() return 1 + up end, "perform arithmetic on upvalue 'up' (a nil value)" },
  { function() return nowhere * 2 end, "perform arithmetic on global 'nowhere' (a nil value)" },
  { function() return t.a ^ 2 end, "perform arithmetic on field 'a' (a table value)" },
  { function() return 2 % t["two words"] / t.x end, "perform arithmetic on field 'x' (a nil value)" },
  { function() return t.text + 1 end, "perform arithmetic on field 'text' (a string value)" },
  { function() return "5" - t.text end, "perform arithmetic on field 'text' (a string value)" },
  { function() return "5" - up end, "perform arithmetic on upvalue 'up' (a nil value)" },
  { function() return "abc" + 1 end, "perform arithmetic on a string value" },
  { function() return g() + 1 end, "perform arithmetic on a nil value" },
  { function() return -t.x end, "perform arithmetic on field 'x' (a nil value)" },
  { function() return -t.text end, "perform arithmetic on field 'text' (a string value)" },
  { function() return #t.x end, "get length of field 'x' (a nil value)" },
  { function() return t.x .. "a" end, "concatenate field 'x' (a nil value)" },
  { function() return "a" .. t.x end, "concatenate field 'x' (a nil value)" },
  { function() return "a" .. 1 .. up .. "b" .. t.text end, "concatenate upvalue 'up' (a nil value)" },
  { function() return "a" .. t.a .. "b" end, "concatenate field 'a' (a table value)" },
  { function() return "a" .. nil end, "concatenate a nil value" },
  { function() local l = g() return "a: " .. l end, "concatenate local 'l' (a nil value)" },
}
for i, case in ipairs(wants) do
  local ok, e = pcall(case[1])
  local got = e:match("attempt to (.*)$")
  assert(not ok and got == case[2], i .. ": " .. e)
end
---
for i = 1, nil do end --> error: 'for' limit must be a number
---
for i = {}, 2 do end --> error: 'for' initial value must be a number
---
-- A name that is near one that is there: in a local, an upvalue, a global, a part of
-- one, a class, or under a name that was computed.
local lib = { read = function() end, fs = { write = function() end }, count = 1 }
local class = { hello = function() end }
class.__index = class
local heir = setmetatable({ own = function() end }, class)
heir.__index = heir
local key = "raed"
for want, f in pairs{
  ['"raed", which is not a function (did you mean "read"?)'] = function() lib.raed(1, { 2 }, "x" .. 1, lib and 1 or 2) end,
  ['"wriet", which is not a function (did you mean "write"?)'] = function() return lib.fs.wriet() end,
  ['"prnt", which is not a function (did you mean "print"?)'] = function() prnt() end,
  ['"formt", which is not a function (did you mean "format"?)'] = function() string.formt() end,
  ['"uper", which is not a function (did you mean "upper"?)'] = function() return ("x"):uper() end,
  ['"helo", which is not a function (did you mean "hello"?)'] = function() local o = setmetatable({}, heir) o:helo() end,
  ['"onw", which is not a function (did you mean "own"?)'] = function() local o = setmetatable({}, heir) o:onw() end,
  ['"cuont", which is not a function'] = function() lib.cuont() end,
  ['"count", which is not a function'] = function() lib.count() end,
  ['"lib", which is not a function'] = function() local lib lib() end,
  ['a value that is not a function'] = function() lib[key]() end,
} do
  local ok, e = pcall(f)
  local got = e:match("attempt to call (.*)$")
  assert(not ok and got == want, e)
end
