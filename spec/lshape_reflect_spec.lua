-- require("lshape.reflect"): what a schema is made of.

local reflect = require("lshape.reflect")
local T = require("lshape.t")

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

describe("lshape.reflect.fields", function()
  local Shape = T.shape({
    b = T.string:describe("inner"):is_optional():describe("outer"),
    a = T.integer,
    d = T.number:min(1):describe("bounded"),
    c = T.string:is_optional(),
    e = T.string:describe("x"):min_len(1):is_optional(),
  })

  it("lists the fields by name, optional and described peeled", function()
    assert.same({
      { name = "a", type = T.integer, optional = false },
      { name = "b", type = T.string, optional = true, doc = "outer" },
      { name = "c", type = T.string, optional = true },
      { name = "d", type = T.number:min(1), optional = false, doc = "bounded" },
      { name = "e", type = T.string:describe("x"):min_len(1), optional = true },
    }, reflect.fields(Shape))
  end)

  it("reads plain data alike", function()
    assert.same(reflect.fields(Shape), reflect.fields(plain(Shape)))
    assert.same({}, reflect.fields(T.shape({})))
  end)

  it("wants a shape", function()
    assert.errors_at_line(function() reflect.fields("x") end, 0,
      "lshape.reflect.fields: expected table, got string")
    assert.errors_at_line(function() reflect.fields(nil) end, 0,
      "lshape.reflect.fields: expected table, got nil")
    assert.errors_at_line(function() reflect.fields(T.string) end, 0,
      'lshape.reflect.fields: schema must be kind=\'shape\', got kind="prim"')
    assert.errors_at_line(function() reflect.fields({}) end, 0,
      "lshape.reflect.fields: schema must be kind='shape', got kind=nil")
    assert.errors_at_line(function() reflect.fields({ kind = "shape" }) end, 0,
      "lshape.reflect.fields: schema.fields is not a table, got nil")
  end)
end)

describe("lshape.reflect.walk", function()
  local function visited(schema)
    local kinds = {}
    reflect.walk(schema, function(node)
      kinds[#kinds + 1] = node.kind == "prim" and node.prim or node.kind
    end)
    return table.concat(kinds, " ")
  end

  it("visits a node, then its parts, depth first", function()
    local Shape = T.shape({
      z = T.map_of(T.string, T.number),
      a = T.array_of(T.boolean):is_optional(),
      m = T.tuple({ T.fn, T.integer:min(1) }):describe("d"),
    })
    assert.equal("shape optional array_of boolean described tuple function bounded integer"
      .. " map_of string number", visited(Shape))
    assert.equal(visited(Shape), visited(plain(Shape)))
  end)

  it("visits variants in order, those of a tag sorted", function()
    assert.equal("any_of string number boolean",
      visited(T.any_of({ T.string, T.number, T.boolean })))
    assert.equal("discriminated shape string shape table one_of", visited(T.discriminated("k", {
      b = T.shape({ k = T.table, l = T.literal(1) }),
      a = T.shape({ k = T.string }),
    })))
  end)

  it("stops at leaves, a ref among them", function()
    for _, leaf in ipairs{ T.any, T.integer, T.ref("x"), T.pattern("x"), T.literal(1) } do
      assert.equal(leaf.kind, visited(leaf))
    end
  end)
end)

describe("lshape.reflect._internal", function()
  it("unwraps to the inner schema, whether it is optional, and its doc", function()
    local inner, optional, doc = reflect._internal.unwrap(T.string:describe("d"):is_optional())
    assert.equal(T.string, inner)
    assert.is_true(optional)
    assert.equal("d", doc)
    inner, optional, doc = reflect._internal.unwrap(T.any)
    assert.equal(T.any, inner)
    assert.is_false(optional)
    assert.is_nil(doc)
  end)
end)
