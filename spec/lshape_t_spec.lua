-- require("lshape").t: constructors of schemas, and their methods.

local lshape = require("lshape")
local T = lshape.t

local function raw(schema)
  return setmetatable(schema, nil)
end

-- Wants fn to raise at its first line, with these words.
local function refused(text, fn)
  assert.errors_at_line(fn, 0, "lshape.t: " .. text)
end

describe("lshape", function()
  it("is five fields and nothing else", function()
    local names = {}
    for name in pairs(lshape) do
      names[#names + 1] = name
    end
    table.sort(names)
    assert.same({ "_VERSION", "check", "luacats", "reflect", "t" }, names)
    assert.equal("0.3.0", lshape._VERSION)
  end)

  it("hands out the very tables that its submodules are", function()
    for _, name in ipairs{ "t", "check", "reflect", "luacats" } do
      assert.equal(lshape[name], require("lshape." .. name))
      assert.equal(require("embedded.lshape")[name], require("embedded.lshape." .. name))
    end
    local vendored = lshape ~= require("embedded.lshape")
    assert.equal(not vendored, lshape.check == require("embedded.lshape").check)
  end)
end)

describe("lshape.t a scalar", function()
  it("is plain data", function()
    assert.same({ kind = "prim", prim = "string" }, T.string)
    assert.same({ kind = "prim", prim = "number" }, T.number)
    assert.same({ kind = "prim", prim = "boolean" }, T.boolean)
    assert.same({ kind = "prim", prim = "table" }, T.table)
    assert.same({ kind = "prim", prim = "function" }, T.fn)
    assert.same({ kind = "any" }, T.any)
    assert.same({ kind = "integer" }, T.integer)
  end)

  it("of another type is made by hand, with the methods", function()
    local userdata = setmetatable({ kind = "prim", prim = "userdata" }, T._internal.schema_mt)
    assert.same({ kind = "optional", inner = { kind = "prim", prim = "userdata" } },
      userdata:is_optional())
    assert.equal(T._internal.combinators, T._internal.schema_mt.__index)
    assert.is_true(T._internal.is_schema(userdata))
    assert.is_true(T._internal.is_schema({ kind = "prim" }))
    assert.is_false(T._internal.is_schema({}))
    assert.is_false(T._internal.is_schema(setmetatable({}, { __index = { kind = "prim" } })))
    assert.is_false(T._internal.is_schema("prim"))
  end)
end)

describe("lshape.t.shape", function()
  it("copies its fields and is open unless told otherwise", function()
    local fields = { a = T.string }
    local shape = T.shape(fields)
    fields.b = T.number
    assert.same({ kind = "shape", fields = { a = T.string }, open = true }, shape)
    assert.is_true(T.shape({}, {}).open)
    assert.is_true(T.shape({}, { open = true, closed = true }).open)
    assert.is_false(T.shape({}, { open = false }).open)
  end)

  it("refuses what is no field", function()
    refused("shape expects fields table as first argument, got string",
      function() T.shape("x") end)
    refused("shape expects fields table as first argument, got nil", function() T.shape() end)
    refused("shape field name must be string, got number", function() T.shape({ T.string }) end)
    refused("shape field 'a' must be a schema (table with kind), got string",
      function() T.shape({ a = "string" }) end)
    refused("shape field 'a' must be a schema (table with kind), got table",
      function() T.shape({ a = {} }) end)
    refused("shape field 'a' must be a schema (table with kind), got function",
      function() T.shape({ a = T.ref }) end)
    refused("shape expects opts table as second argument, got boolean",
      function() T.shape({}, false) end)
  end)
end)

describe("lshape.t.partial", function()
  it("wraps every field once", function()
    local fields = { a = T.string, b = T.number:is_optional(), c = T.any:describe("doc") }
    assert.same({
      kind = "shape",
      open = false,
      fields = {
        a = { kind = "optional", inner = T.string },
        b = { kind = "optional", inner = T.number },
        c = { kind = "optional", inner = { kind = "described", inner = T.any, doc = "doc" } },
      },
    }, T.partial(fields, { open = false }))
    assert.equal(T.string, fields.a)
    assert.is_true(T.partial({}).open)
  end)

  it("refuses what is no field", function()
    refused("partial expects fields table as first argument, got number",
      function() T.partial(1) end)
    refused("partial field name must be string, got number",
      function() T.partial({ T.string }) end)
    refused("partial field 'a' must be a schema (table with kind), got boolean",
      function() T.partial({ a = true }) end)
    refused("partial expects opts table as second argument, got string",
      function() T.partial({}, "open") end)
  end)
end)

describe("lshape.t.array_of", function()
  it("holds its element", function()
    assert.same({ kind = "array_of", elem = T.string }, T.array_of(T.string))
  end)

  it("refuses an optional element, however it is wrapped", function()
    local text = "array_of(optional(T)) is not allowed — a list ends at its first nil"
    refused(text, function() T.array_of(T.string:is_optional()) end)
    refused(text, function() T.array_of(T.string:is_optional():describe("d")) end)
    refused(text, function() T.array_of(T.string:is_optional():min_len(1)) end)
    refused(text, function() T.array_of(T.string:is_optional():min_len(1):describe("d")) end)
    refused("array_of expects a schema as argument, got nil", function() T.array_of() end)
    refused("array_of expects a schema as argument, got table", function() T.array_of({}) end)
  end)
end)

describe("lshape.t.map_of", function()
  it("holds its key and its value", function()
    assert.same({ kind = "map_of", key = T.string, val = T.number }, T.map_of(T.string, T.number))
  end)

  it("refuses what is no schema", function()
    refused("map_of expects a schema as key argument, got string",
      function() T.map_of("string", T.any) end)
    refused("map_of expects a schema as val argument, got nil", function() T.map_of(T.any) end)
  end)
end)

describe("lshape.t.one_of", function()
  it("copies its values; 1 and \"1\" are two", function()
    local values = { 1, "1", true }
    local schema = T.one_of(values)
    values[4] = "later"
    assert.same({ kind = "one_of", values = { 1, "1", true } }, schema)
    assert.same(T.one_of({ false }), T.literal(false))
    assert.same({ kind = "one_of", values = { "x" } }, T.literal("x"))
  end)

  it("refuses what is no list of scalars", function()
    refused("one_of expects a values table as argument, got string",
      function() T.one_of("a") end)
    refused("one_of expects at least one value", function() T.one_of({}) end)
    refused("one_of expects a 1-based dense array of values",
      function() T.one_of({ "a", nil, "c" }) end)
    refused("one_of expects a 1-based dense array of values",
      function() T.one_of({ "a", b = "c" }) end)
    refused("one_of values must be string/number/boolean, got table at index 2",
      function() T.one_of({ "a", {} }) end)
    refused('one_of has duplicate value "a" at index 3', function() T.one_of({ "a", 1, "a" }) end)
    refused("one_of has duplicate value 1 at index 2", function() T.one_of({ 1, 1.0 }) end)
    refused("literal expects string/number/boolean, got nil", function() T.literal(nil) end)
    refused("literal expects string/number/boolean, got table", function() T.literal({}) end)
  end)
end)

describe("lshape.t.any_of", function()
  it("copies its variants", function()
    local variants = { T.string, T.number }
    local schema = T.any_of(variants)
    variants[3] = T.boolean
    assert.same({ kind = "any_of", variants = { T.string, T.number } }, schema)
  end)

  it("refuses what is no list of two schemas", function()
    refused("any_of expects a variants table as argument, got nil", function() T.any_of() end)
    refused("any_of expects at least two variants", function() T.any_of({}) end)
    refused("any_of expects at least two variants", function() T.any_of({ T.string }) end)
    refused("any_of expects a 1-based dense array of variants",
      function() T.any_of({ T.string, nil, T.number }) end)
    refused("any_of variant at index 2 must be a schema, got string",
      function() T.any_of({ T.string, "number" }) end)
  end)
end)

describe("lshape.t.tuple", function()
  it("copies its items", function()
    assert.same({ kind = "tuple", items = { T.string, T.any } }, T.tuple({ T.string, T.any }))
  end)

  it("refuses what is no list of schemas, and optional items", function()
    refused("tuple expects an items table as argument, got string",
      function() T.tuple("schema") end)
    refused("tuple expects at least one item", function() T.tuple({}) end)
    refused("tuple expects a 1-based dense array of items",
      function() T.tuple({ [2] = T.string }) end)
    refused("tuple item at index 1 must be a schema, got number", function() T.tuple({ 1 }) end)
    refused("tuple(optional(T)) at index 2 is not allowed",
      function() T.tuple({ T.any, T.number:is_optional():min(1) }) end)
  end)
end)

describe("lshape.t.discriminated", function()
  local A = T.shape({ k = T.literal("a") })

  it("copies its variants", function()
    local variants = { a = A }
    local schema = T.discriminated("k", variants)
    variants.b = A
    assert.same({ kind = "discriminated", tag = "k", variants = { a = A } }, schema)
  end)

  it("refuses variants that do not declare the tag", function()
    refused("discriminated expects non-empty string tag, got number",
      function() T.discriminated(1, { a = A }) end)
    refused('discriminated expects non-empty string tag, got ""',
      function() T.discriminated("", { a = A }) end)
    refused("discriminated expects variants table, got nil",
      function() T.discriminated("k") end)
    refused("discriminated variant key must be string, got number",
      function() T.discriminated("k", { A }) end)
    refused("discriminated variant 'a' must be a shape schema",
      function() T.discriminated("k", { a = T.table }) end)
    refused("discriminated variant 'a' must declare the tag field 'kind'",
      function() T.discriminated("kind", { a = A }) end)
    refused("discriminated expects at least one variant",
      function() T.discriminated("k", {}) end)
  end)
end)

describe("lshape.t.pattern", function()
  it("holds a Lua pattern", function()
    assert.same({ kind = "pattern", pattern = "^%d+$" }, T.pattern("^%d+$"))
  end)

  it("refuses none, an empty one and a malformed one", function()
    refused("pattern expects string, got nil", function() T.pattern() end)
    refused("pattern must not be empty (", function() T.pattern("") end)
    refused('pattern "[a" is malformed', function() T.pattern("[a") end)
  end)
end)

describe("lshape.t.ref", function()
  it("holds a name", function()
    assert.same({ kind = "ref", name = "usage" }, T.ref("usage"))
  end)

  it("refuses none", function()
    refused("ref expects non-empty string name, got nil", function() T.ref() end)
    refused('ref expects non-empty string name, got ""', function() T.ref("") end)
  end)
end)

describe("lshape.t a method", function()
  it("answers a new table and leaves the old one", function()
    local described = T.integer:min(1):describe("x"):is_optional()
    assert.same({
      kind = "optional",
      inner = {
        kind = "described",
        doc = "x",
        inner = { kind = "bounded", min = 1, inner = { kind = "integer" } },
      },
    }, described)
    assert.same({ kind = "integer" }, T.integer)
  end)

  it("merges chained bounds into one fresh node over the same inner", function()
    local one = T.number:min(1)
    local two = one:max(5)
    assert.same({ kind = "bounded", min = 1, inner = T.number }, one)
    assert.same({ kind = "bounded", min = 1, max = 5, inner = T.number }, two)
    assert.same({ kind = "bounded", min = 2, max = 5, inner = T.number },
      T._internal.combinators.min(two, 2))
    assert.equal(T.number, two.inner)
    assert.same({ kind = "bounded", min_len = 1, max_len = 3, inner = T.string },
      T.string:min_len(1):max_len(3))
  end)

  it("hides a bound that is not there: bounds are read raw", function()
    local schema = T.number:max(3)
    assert.equal("function", type(schema.min))
    assert.is_nil(rawget(schema, "min"))
    assert.equal(3, rawget(schema, "max"))
  end)

  it("refuses what it cannot take", function()
    refused("describe expects string doc, got number", function() T.string:describe(5) end)
    refused("min expects number, got string", function() T.number:min("1") end)
    refused("min expects number, got nan", function() T.number:min(0 / 0) end)
    refused("max expects number, got nil", function() T.number:max() end)
    refused("min_len expects number, got boolean", function() T.string:min_len(true) end)
    refused("min_len expects a non-negative integer, got -1",
      function() T.string:min_len(-1) end)
    refused("max_len expects a non-negative integer, got 1.5",
      function() T.string:max_len(1.5) end)
    refused("max_len expects a non-negative integer, got inf",
      function() T.string:max_len(math.huge) end)
    refused("min (3) must be <= max (2)", function() T.number:max(2):min(3) end)
    refused("min_len (3) must be <= max_len (2)", function() T.string:min_len(3):max_len(2) end)
    refused("min expects a schema before its colon, got number", function() T.number.min(3) end)
    refused("is_optional expects a schema before its colon, got nil",
      function() T.number.is_optional() end)
  end)

  it("takes the same number as both bounds", function()
    assert.same({ kind = "bounded", min = 2, max = 2, inner = T.integer }, T.integer:min(2):max(2))
  end)
end)

describe("lshape.t a mistake", function()
  it("is the line of the script, also below a function of its own", function()
    local function named(name)
      local schema = T.ref(name)
      return schema
    end
    local line = debug.getinfo(named).linedefined + 1
    local failure = assert.has_error(function() local _ = named("") end)
    assert.matches(("lshape_t_spec.lua:%d: lshape.t: ref"):format(line), failure)
  end)

  it("leaves plain data unseen", function()
    local elem = raw(T.string:is_optional())
    assert.is_true(lshape.check.check({ "a" }, { kind = "array_of", elem = elem }))
  end)
end)
