-- require("lshape.check"): how deep a check goes, and what it does there.

local check = require("lshape.check")
local T = require("lshape.t")

describe("lshape.check nesting", function()
  local function nested(n, innermost)
    local schema = innermost or T.any
    for _ = 2, n do
      schema = schema:is_optional()
    end
    return schema
  end

  it("passes 256 visits, and raises at one more", function()
    assert.is_true((check.check(1, nested(256))))
    local _, why = check.check(1, nested(256, T.string))
    assert.equal("shape violation at $: expected string, got number", why)
    assert.errors_at_line(function() check.check(1, nested(257)) end, 0,
      "lshape.check: recursion depth exceeded at $ (> 256; cycle in schema or value?)")
  end)

  it("counts each schema as one visit, whatever its kind", function()
    local wraps = {
      described = function(s, v) return s:describe("d"), v end,
      array_of = function(s, v) return T.array_of(s), { v } end,
      tuple = function(s, v) return T.tuple({ s }), { v } end,
      shape = function(s, v) return T.shape({ a = s }), { a = v } end,
      map_of = function(s, v) return T.map_of(T.any, s), { v } end,
      map_key = function(s, v) return T.map_of(s, T.any), { [v] = 1 } end,
      any_of = function(s, v) return T.any_of({ s, T.string }), v end,
      bounded = function(s, v) return { kind = "bounded", inner = s }, v end,
      discriminated = function(s, v)
        local variant = T.shape({ k = T.any, n = s })
        return T.discriminated("k", { a = variant }), { k = "a", n = v }
      end,
    }
    for kind, wrap in pairs(wraps) do
      local each = kind == "discriminated" and 2 or 1
      local function visits(n)
        local schema, value = T.any, "x"
        for _ = 1, (n - 1) / each do
          schema, value = wrap(schema, value)
        end
        return pcall(check.check, value, schema)
      end
      assert.is_true(visits(257 - each), kind)
      assert.is_false(visits(257), kind)
    end
  end)

  it("counts what a ref names", function()
    local registry = {}
    for i = 1, 300 do
      registry["r" .. i] = T.ref("r" .. i + 1)
    end
    registry.r256 = T.any
    assert.is_true((check.check(1, T.ref("r2"), { registry = registry })))
    assert.has_error(function() check.check(1, T.ref("r1"), { registry = registry }) end,
      "recursion depth exceeded at $ ")
  end)

  it("names where a cycle led, and no variant passes over it", function()
    local value, registry = {}, {}
    value.next = value
    registry.node = T.shape({ next = T.any_of({ T.ref("node"), T.any }) })
    local raised = assert.has_error(function()
      check.check(value, T.ref("node"), { registry = registry })
    end)
    assert.matches("recursion depth exceeded at $.next.next.next", raised)
  end)
end)
