-- require("lshape.check"): what each kind of schema takes, and in which words it
-- refuses.

local check = require("lshape.check")
local T = require("lshape.t")
local knl = require("knl")

-- The schema without metatables, as JSON would bring it back.
local function plain(v)
  if type(v) ~= "table" then
    return v
  end
  local copy = {}
  for k, x in next, v do
    copy[k] = plain(x)
  end
  return copy
end

local function passes(value, schema, opts)
  local ok, why = check.check(value, schema, opts)
  assert.is_true(ok, why)
  assert.is_nil(why)
  assert.is_true((check.check(value, plain(schema), opts)))
end

-- Wants a violation in exactly these words, of plain data too.
local function fails(words, value, schema, opts)
  local ok, why = check.check(value, schema, opts)
  assert.is_false(ok)
  assert.equal("shape violation at " .. words, why)
  local _, of_plain = check.check(value, plain(schema), opts)
  assert.equal(why, of_plain)
end

describe("lshape.check a prim", function()
  it("is a value of that type", function()
    passes("", T.string)
    passes(0 / 0, T.number)
    passes(false, T.boolean)
    passes({}, T.table)
    passes(print, T.fn)
  end)

  it("names both types", function()
    fails("$: expected string, got number", 5, T.string)
    fails("$: expected number, got string", "5", T.number)
    fails("$: expected boolean, got nil", nil, T.boolean)
    fails("$: expected table, got string", "t", T.table)
    fails("$: expected function, got table", setmetatable({}, { __call = print }), T.fn)
  end)
end)

describe("lshape.check any", function()
  it("takes everything, nil too, and so does no schema", function()
    passes(nil, T.any)
    passes({}, T.any)
    passes(5, nil)
    passes(nil, nil)
  end)
end)

describe("lshape.check an integer", function()
  it("is a whole number", function()
    passes(2, T.integer)
    passes(2.0, T.integer)
    passes(-2 ^ 60, T.integer)
    fails("$: expected integer, got string", "2", T.integer)
    fails("$: expected integer, got nil", nil, T.integer)
    fails("$: expected integer, got 2.5", 2.5, T.integer)
    fails("$: expected integer, got nan", 0 / 0, T.integer)
    fails("$: expected integer, got inf", math.huge, T.integer)
    fails("$: expected integer, got -inf", -math.huge, T.integer)
  end)
end)

describe("lshape.check an optional", function()
  it("takes nil, and else what is inside", function()
    passes(nil, T.string:is_optional())
    passes("x", T.string:is_optional())
    fails("$: expected string, got boolean", false, T.string:is_optional())
  end)
end)

describe("lshape.check a description", function()
  it("changes nothing", function()
    passes("x", T.string:describe("d"))
    passes(nil, T.string:is_optional():describe("d"))
    fails("$: expected string, got nil", nil, T.string:describe("d"))
  end)
end)

describe("lshape.check a bound", function()
  it("of a number says which", function()
    passes(1, T.number:min(1):max(5))
    passes(5, T.number:min(1):max(5))
    fails("$: 0 is below min 1", 0, T.number:min(1))
    fails("$: 9 is above max 5", 9, T.number:max(5))
    fails("$: 0.5 is below min 1", 0.5, T.number:min(1))
    fails("$: nan is below min 1", 0 / 0, T.number:min(1))
    fails("$: nan is above max 1", 0 / 0, T.number:max(1))
    fails("$: min/max bound applies to number, got string", "x", T.string:min(1))
  end)

  it("of a length counts bytes or elements", function()
    passes("é", T.string:min_len(2):max_len(2))
    passes({ 1, 2 }, T.array_of(T.number):min_len(2))
    fails("$: length 0 is below min_len 1", "", T.string:min_len(1))
    fails("$: length 2 is above max_len 1", "ab", T.string:max_len(1))
    fails("$: length 2 is above max_len 1", { 1, 2 }, T.array_of(T.number):max_len(1))
    fails("$: min_len/max_len bound applies to string or table, got number", 5,
      T.number:min_len(1))
  end)

  it("comes after what is inside, and passes the nil that that admits", function()
    fails("$: expected number, got string", "x", T.number:min(1))
    passes(nil, T.number:is_optional():min(1))
    fails("$: expected number, got nil", nil, T.number:min(1))
  end)
end)

describe("lshape.check an array", function()
  it("is a table whose elements 1 to # fit", function()
    passes({}, T.array_of(T.string))
    passes({ "a", "b" }, T.array_of(T.string))
    passes({ named = 1 }, T.array_of(T.string))
    fails("$: expected table (array), got number", 5, T.array_of(T.string))
    fails("$[2]: expected string, got number", { "a", 2, 3 }, T.array_of(T.string))
  end)
end)

describe("lshape.check a tuple", function()
  local Pair = T.tuple({ T.string, T.number })

  it("has exactly its items", function()
    passes({ "a", 1 }, Pair)
    fails("$: expected table (tuple), got string", "ab", Pair)
    fails("$[2]: expected number, got string", { "a", "b" }, Pair)
    fails("$[2]: missing tuple element (expected 2 elements)", { "a" }, Pair)
    fails("$[1]: missing tuple element (expected 2 elements)", {}, Pair)
    fails("$[3]: tuple has more than 2 elements", { "a", 1, true }, Pair)
    fails("$[1]: missing tuple element (expected 1 elements)", {}, T.tuple({ T.any }))
  end)
end)

describe("lshape.check a shape", function()
  local Open = T.shape({ b = T.string, a = T.number })
  local Closed = T.shape({ a = T.number:is_optional() }, { open = false })

  it("takes other fields when it is open", function()
    passes({ a = 1, b = "x", c = true, "list" }, Open)
    fails("$: expected table, got string", "x", Open)
    fails("$: expected table, got userdata", knl.device{}, Open)
  end)

  it("fails at the first field by name", function()
    fails("$.a: expected number, got nil", {}, Open)
    fails("$.b: expected string, got nil", { a = 1 }, Open)
    fails("$.a: expected number, got string", { a = "x", b = 1 }, Open)
  end)

  it("reads fields as any code does", function()
    passes(setmetatable({}, { __index = { a = 1, b = "x" } }), Open)
  end)

  it("refuses every other key when it is closed, strings first", function()
    passes({}, Closed)
    passes({ a = 1 }, Closed)
    fails("$.b: unexpected field", { c = 1, b = 2 }, Closed)
    fails("$.b: unexpected field", { 1, 2, b = 2 }, Closed)
    fails("$[1]: unexpected field", { "x", "y" }, Closed)
    fails("$[0.5]: unexpected field", { [2] = 1, [0.5] = 1 }, Closed)
    fails("$[2]: unexpected field", { [10] = 1, [2] = 1 }, Closed)
    fails("$[true]: unexpected field", { [true] = 1 }, Closed)
    fails("$[table]: unexpected field", { [{}] = 1 }, Closed)
    fails("$.a: expected number, got string", { a = "x", b = 1 }, Closed)
  end)

  it("takes the tables that the kernel hands out", function()
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "hi" } }
    local Event = T.shape({ kind = T.string, seq = T.integer, data = T.table:is_optional() })
    passes(s:events(), T.array_of(Event):min_len(2))
    local narrow = T.array_of(T.shape({ kind = T.string }, { open = false }))
    local _, why = check.check(s:events(), narrow)
    assert.matches("shape violation at $[1].", why)
    assert.matches(": unexpected field", why)
  end)
end)

describe("lshape.check a map", function()
  local Counts = T.map_of(T.string:min_len(1), T.integer)

  it("holds every key and its value", function()
    passes({}, Counts)
    passes({ a = 1, b = 2 }, Counts)
    fails("$: expected table (map), got nil", nil, Counts)
    fails("$[a]: expected integer, got string", { a = "x" }, Counts)
    fails("$[key=1]: expected string, got number", { "x" }, Counts)
    fails("$[key=]: length 0 is below min_len 1", { [""] = 1 }, Counts)
    fails("$[a].b: expected number, got nil", { a = {} },
      T.map_of(T.string, T.shape({ b = T.number })))
  end)

  it("fails at the first key in order", function()
    for _ = 1, 20 do
      fails("$[a]: expected integer, got string", { c = "x", b = "x", a = "x", d = "x" }, Counts)
    end
  end)
end)

describe("lshape.check one_of", function()
  local Mixed = T.one_of({ "a", 2, true })

  it("wants an equal value", function()
    passes("a", Mixed)
    passes(2, Mixed)
    passes(true, Mixed)
    fails('$: expected one of ["a", 2, true], got z', "z", Mixed)
    fails('$: expected one of ["a", 2, true], got 2', "2", Mixed)
    fails('$: expected one of ["a", 2, true], got false', false, Mixed)
    fails('$: expected one of ["a", 2, true], got nil', nil, Mixed)
    fails('$: expected one of ["a", 2, true], got table', {}, Mixed)
    fails('$: expected one of ["x"], got y', "y", T.literal("x"))
  end)

  it("cuts a long name, and keeps any on its line", function()
    local closed = T.shape({}, { open = false })
    fails("$." .. ("x"):rep(80) .. "…: unexpected field", { [("x"):rep(1000)] = 1 }, closed)
    fails("$.a\\nb\\0001: unexpected field", { ["a\nb\0001"] = 1 }, closed)
    fails("$[" .. ("k"):rep(80) .. "…]: expected string, got number", { [("k"):rep(81)] = 1 },
      T.map_of(T.string, T.string))
    fails("$[key=a\\rb]: expected number, got string", { ["a\rb"] = 1 },
      T.map_of(T.number, T.any))
    fails([[$: expected one of ["x\\ny"], got a\nb]], "a\nb", T.literal("x\\ny"))
  end)

  it("cuts a long string between characters", function()
    local cut = {
      { ("é"):rep(500), ("é"):rep(40) .. "…" },
      { ("À"):rep(40), ("À"):rep(40) },
      { "xx" .. ("€"):rep(40), "xx" .. ("€"):rep(26) .. "…" },
      { "xxx" .. ("À"):rep(40), "xxx" .. ("À"):rep(38) .. "…" },
      { "x" .. ("é"):rep(500), "x" .. ("é"):rep(39) .. "…" },
    }
    for _, case in ipairs(cut) do
      fails('$: expected one of ["x"], got ' .. case[2], case[1], T.literal("x"))
    end
  end)
end)

describe("lshape.check any_of", function()
  local Content = T.any_of({ T.string, T.array_of(T.shape({ type = T.string })) })

  it("takes what the first or another variant takes", function()
    passes("x", Content)
    passes({ { type = "text" } }, Content)
  end)

  it("tells the whole reason of every variant", function()
    fails("$: no variant matched"
      .. "\n  variant 1: shape violation at $: expected string, got table"
      .. "\n  variant 2: shape violation at $[2].type: expected string, got nil",
      { { type = "a" }, {} }, Content)
    fails("$.c: no variant matched"
      .. "\n  variant 1: shape violation at $.c: expected string, got number"
      .. "\n  variant 2: shape violation at $.c: expected table (array), got number",
      { c = 5 }, T.shape({ c = Content }))
  end)

  it("nests, further in", function()
    fails("$: no variant matched"
      .. "\n  variant 1: shape violation at $: no variant matched"
      .. "\n    variant 1: shape violation at $: expected string, got nil"
      .. "\n    variant 2: shape violation at $: expected number, got nil"
      .. "\n  variant 2: shape violation at $: expected table, got nil",
      nil, T.any_of({ T.any_of({ T.string, T.number }), T.table }))
  end)
end)

describe("lshape.check discriminated", function()
  local Block = T.discriminated("k", {
    x = T.shape({ k = T.literal("x"), n = T.number }),
    a = T.shape({ k = T.literal("a") }, { open = false }),
  })

  it("holds the shape that the tag names", function()
    passes({ k = "x", n = 1 }, Block)
    passes({ k = "a" }, Block)
    fails("$.n: expected number, got nil", { k = "x" }, Block)
    fails("$.n: unexpected field", { k = "a", n = 1 }, Block)
    fails("$: expected table, got string", "a", Block)
    fails("$: missing discriminant field 'k'", {}, Block)
    fails("$: discriminant 'k' = \"q\" not in [\"a\", \"x\"]", { k = "q" }, Block)
    fails("$: discriminant 'k' = 5 not in [\"a\", \"x\"]", { k = 5 }, Block)
    fails("$[2]: missing discriminant field 'k'", { { k = "a" }, {} }, T.array_of(Block))
  end)
end)

describe("lshape.check a pattern", function()
  it("is found in the string, anchored only by itself", function()
    passes("xay", T.pattern("a"))
    passes("abc", T.pattern("^a"))
    fails("$: expected string (pattern), got number", 5, T.pattern("5"))
    fails('$: string "zz" does not match pattern "^a"', "zz", T.pattern("^a"))
  end)
end)

describe("lshape.check a path", function()
  it("joins fields, elements and keys", function()
    local Schema = T.shape({ stages = T.array_of(T.shape({ name = T.string })) })
    fails("$.stages[2].name: expected string, got number",
      { stages = { { name = "a" }, { name = 1 } } }, Schema)
    fails("$.a.b: expected string, got nil", { a = {} },
      T.shape({ a = T.shape({ b = T.string }) }))
    fails("$.odd key: expected string, got nil", {}, T.shape({ ["odd key"] = T.string }))
    fails("$.m[k][1]: expected string, got number", { m = { k = { 1 } } },
      T.shape({ m = T.map_of(T.string, T.array_of(T.string)) }))
  end)

  it("is the same each time", function()
    local fields, value = {}, {}
    for i = 1, 50 do
      fields["f" .. i] = T.string
      value["f" .. i] = i
    end
    for _ = 1, 10 do
      fails("$.f1: expected string, got number", value, T.shape(fields))
    end
  end)
end)

describe("lshape.check a broken schema", function()
  it("is raised at the line of the check", function()
    assert.errors_at_line(function() check.check(1, { kind = "zzz" }) end, 0,
      "lshape.check: unknown kind 'zzz'")
    assert.errors_at_line(function() check.check(1, {}) end, 0,
      "lshape.check: schema missing 'kind' field")
    assert.errors_at_line(function() check.check(1, "string") end, 0,
      "lshape.check: schema must be a table, got string")
    local Hollow = { kind = "shape", fields = { a = {} } }
    assert.errors_at_line(function() check.check({ a = 1 }, Hollow) end, 0,
      "lshape.check: schema missing 'kind' field")
  end)

  it("is any table whose raw kind is known", function()
    passes("x", { kind = "prim", prim = "string" })
    fails("$.a: expected string, got nil", {},
      { kind = "shape", open = true, fields = { a = { kind = "prim", prim = "string" } } })
    passes("x", setmetatable({ kind = "prim", prim = "string" }, {}))
  end)
end)
