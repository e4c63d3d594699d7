-- lshape and schemas that no constructor made: what is broken about them is
-- raised at the line that uses them, and that line is the same whatever the order
-- in which their fields were written.

local check = require("lshape.check")
local luacats = require("lshape.luacats")
local reflect = require("lshape.reflect")
local T = require("lshape.t")

local broken = {
  { "schema of kind 'prim' has no prim type", { kind = "prim" }, 1 },
  { "schema of kind 'shape' has no fields table", { kind = "shape" }, {} },
  { "schema of kind 'shape' has no fields table", { kind = "shape", fields = "x" }, {} },
  { "schema of kind 'array_of' has no elem schema", { kind = "array_of" }, { 1 } },
  { "schema of kind 'map_of' has no key schema", { kind = "map_of", val = T.any }, { 1 } },
  { "schema of kind 'map_of' has no val schema", { kind = "map_of", key = T.any }, { 1 } },
  { "schema of kind 'tuple' has no items list", { kind = "tuple" }, {} },
  { "schema of kind 'one_of' has no values list", { kind = "one_of" }, 1 },
  { "schema of kind 'any_of' has no variants list", { kind = "any_of" }, 1 },
  { "schema of kind 'discriminated' has no variants table",
    { kind = "discriminated", tag = "k" }, { k = "a" } },
  { "schema of kind 'discriminated' has no tag text",
    { kind = "discriminated", variants = {} }, { k = "a" } },
  { "schema of kind 'pattern' has no pattern text", { kind = "pattern" }, "a" },
  { [[schema of kind 'pattern' has the malformed pattern "["]],
    { kind = "pattern", pattern = "[" }, "a" },
  { "schema of kind 'ref' has no name text", { kind = "ref" }, 1 },
  { "schema of kind 'optional' has no inner schema", { kind = "optional" }, 1 },
  { "schema of kind 'described' has no inner schema", { kind = "described" }, 1 },
  { "schema of kind 'described' has a doc that is no text, got number",
    { kind = "described", inner = T.integer, doc = 5 }, "x" },
  { "schema of kind 'bounded' has no inner schema", { kind = "bounded", min = 1 }, 1 },
  { [[schema of kind 'bounded' has a min that is no number, got "1"]],
    { kind = "bounded", inner = T.number, min = "1" }, 1 },
  { "unknown kind 'zzz'", { kind = "zzz" }, 1 },
  { "unknown kind 'boolean'", { kind = false }, 1 },
  { "schema missing 'kind' field", {}, 1 },
}

local registry = { registry = {} }

describe("lshape.check a broken schema", function()
  it("is raised where it is used, with what it lacks", function()
    for _, case in ipairs(broken) do
      assert.errors_at_line(function() check.check(case[3], case[2], registry) end, 0,
        "lshape.check: " .. case[1])
    end
  end)

  it("is named by where it stands", function()
    local schema = { kind = "shape", open = true, fields = { a = T.array_of(T.any) } }
    schema.fields.a.elem = { kind = "prim" }
    assert.errors_at_line(function() check.check({ a = { 1 } }, schema) end, 0,
      "lshape.check: schema of kind 'prim' has no prim type at $.a[1]")
    schema.fields.a = 5
    assert.errors_at_line(function() check.check({ a = 1 }, schema) end, 0,
      "lshape.check: schema must be a table, got number at $.a")
  end)

  it("is passed over by no variant", function()
    local either = { kind = "any_of", variants = { { kind = "shape" }, T.any } }
    assert.errors_at_line(function() check.check({}, either) end, 0,
      "lshape.check: schema of kind 'shape' has no fields table")
  end)

  it("is no matter to a value that ends the check before it", function()
    local fields = { a = T.string, b = { kind = "zzz" } }
    local ok, why = check.check({ a = 1, b = 1 }, { kind = "shape", open = true, fields = fields })
    assert.is_false(ok)
    assert.equal("shape violation at $.a: expected string, got number", why)
  end)

  it("raises what a value raises itself", function()
    local value = setmetatable({}, { __index = function() error("boo") end })
    assert.errors_at_line(function() check.check(value, T.shape({ a = T.any })) end, -1, "boo")
  end)
end)

describe("lshape.check the order of fields", function()
  -- The fields as a script might write them: those of names in this order.
  local function in_order(names, fields)
    local written = {}
    for _, name in ipairs(names) do
      written[name] = fields[name]
    end
    return { kind = "shape", open = true, fields = written }
  end

  local function both_ways(fields, judge)
    judge(in_order({ "a", "b" }, fields))
    judge(in_order({ "b", "a" }, fields))
  end

  it("changes nothing when one field fails and another would raise", function()
    both_ways({ a = T.string, b = T.ref("x") }, function(schema)
      local _, why = check.check({ a = 1 }, schema)
      assert.equal("shape violation at $.a: expected string, got number", why)
    end)
    both_ways({ a = T.ref("x"), b = T.string }, function(schema)
      assert.has_error(function() check.check({ b = 1 }, schema) end,
        "lshape.check: default registry not bound")
    end)
  end)

  it("changes nothing under a variant that another could replace", function()
    both_ways({ a = T.ref("x"), b = T.string }, function(schema)
      assert.has_error(function() check.check({ b = 1 }, T.any_of({ schema, T.table })) end,
        "lshape.check: default registry not bound")
    end)
    both_ways({ a = T.string, b = T.ref("x") }, function(schema)
      assert.is_true((check.check({ a = 1 }, T.any_of({ schema, T.table }))))
    end)
  end)

  it("changes nothing in a map", function()
    local map = T.map_of(T.string, T.any_of({ T.number, T.map_of(T.string, T.ref("x")) }))
    for _, names in ipairs{ { "a", "b" }, { "b", "a" } } do
      local value = {}
      for _, name in ipairs(names) do
        value[name] = name == "a" and "no number" or { k = 1 }
      end
      local ok, why = check.check(value, map)
      assert.is_false(ok)
      assert.matches("shape violation at $[a]: no variant matched", why)
    end
  end)
end)

describe("lshape.reflect and lshape.luacats", function()
  it("raise a broken schema where they are used", function()
    for _, case in ipairs(broken) do
      assert.errors_at_line(function() reflect.walk(case[2], function() end) end, 0,
        "lshape.reflect.walk: " .. case[1])
      assert.errors_at_line(function() local _ = luacats.type_of(case[2]) end, 0,
        "lshape.luacats: " .. case[1])
    end
    assert.errors_at_line(function() reflect.walk(T.any) end, 0,
      "lshape.reflect.walk: expected a visitor function, got nil")
    local optional = { kind = "shape", fields = { a = { kind = "optional" } } }
    assert.errors_at_line(function() reflect.fields(optional) end, 0,
      "lshape: schema of kind 'optional' has no inner schema")
    assert.errors_at_line(function() reflect.fields({ kind = "shape", fields = { a = 1 } }) end, 0,
      "lshape.reflect.fields: field 'a' must be a schema, got number")
  end)

  it("raise a schema that is inside itself", function()
    local wrap, shape = { kind = "optional" }, { kind = "shape", fields = {} }
    wrap.inner, shape.fields.a = wrap, shape
    local deep = ": recursion depth exceeded (> 256; cycle in schema?)"
    local in_shape = { kind = "shape", fields = { a = wrap } }
    assert.errors_at_line(function() reflect.fields(in_shape) end, 0, "lshape" .. deep)
    assert.errors_at_line(function() T.array_of(wrap) end, 0, "lshape" .. deep)
    for _, cyclic in ipairs{ wrap, shape } do
      assert.errors_at_line(function() local _ = luacats.type_of(cyclic) end, 0, deep)
      assert.errors_at_line(function() reflect.walk(cyclic, function() end) end, 0,
        "lshape.reflect.walk" .. deep)
    end
  end)
end)
