-- A named field takes one value and gives the list none.
local function three() return "x", "y", "z" end
local t = { 1, 2, x = three() }
assert(#t == 2 and t.x == "x")
local function rest(...) return { "a", rest = ... } end
assert(#rest(7, 8) == 1 and rest(7, 8).rest == 7)
local u = { x = three(), three() }
assert(#u == 3 and u.x == "x")
---
-- Lists of every length hold what stands in them, before a call, "...", named
-- fields and nothing.
local function call() return "x", "y" end
local function list(n, tail)
  local values = {}
  for i = 1, n do values[i] = "id(" .. i .. ")" end
  local f = assert(loadstring("local call, id = ... local more = function(...) return { " .. table.concat(values, ", ") .. tail .. " } end return more(7, nil, 9)"))
  return f(call, function(i) return i end)
end
for _, n in ipairs{ 1, 2, 48, 49, 50, 51, 99, 100, 101, 150, 199, 200, 201, 1000 } do
  for tail, want in pairs{
    [""] = {}, [", call()"] = { "x", "y" }, [", (call())"] = { "x" }, [", ..."] = { 7, nil, 9 }, [", (...)"] = { 7 },
    [", named = call()"] = {}, [", named = call(), call()"] = { "x", "y" }, [", named = call(), [id(0)] = ..., 1, call()"] = { 1, "x", "y" },
    [", { call(), ... }, ..."] = { nil, 7, nil, 9 },
  } do
    local t = list(n, tail)
    for i = 1, n do assert(t[i] == i, n .. tail) end
    for i = 1, 4 do
      local inner = t[n + i]
      if type(inner) == "table" then
        assert(i == 1 and inner[1] == "x" and inner[2] == 7 and inner[4] == 9)
      else
        assert(inner == want[i], n .. tail .. " at " .. i)
      end
    end
    assert(t[n + 5] == nil)
    if tail:find("named") then assert(t.named == "x") end
    if tail:find("id") then assert(t[0] == 7) end
  end
end
---
-- Values are made in the order in which they stand.
local order = {}
local function id(i) order[#order + 1] = i return i end
local values = {}
for i = 1, 120 do values[i] = (i % 7 == 0 and "[id(" .. i .. ")] = id(" .. i .. ".5)" or "id(" .. i .. ")") end
assert(loadstring("local id = ... return { " .. table.concat(values, ", ") .. ", n = id(200) }"))(id)
local at = 0
for i = 1, 120 do
  at = at + 1
  assert(order[at] == i)
  if i % 7 == 0 then at = at + 1 assert(order[at] == i + 0.5) end
end
assert(order[at + 1] == 200)
---
-- A long list is whole.
local values = {}
for i = 1, 25600 do values[i] = i % 100 end
local t = assert(loadstring("return { " .. table.concat(values, ",") .. " }"))()
assert(#t == 25600)
for i = 1, 25600 do assert(t[i] == i % 100) end
