-- require("lshape.shapes"): the declarations of lshape itself.

local lshape = require("lshape")
local shapes = require("lshape.shapes")

local function names(t)
  local out = {}
  for name in pairs(t) do
    if name ~= "_internal" and name ~= "default_registry" then
      out[#out + 1] = name
    end
  end
  table.sort(out)
  return out
end

local function documented(entry, place)
  assert.matches("^%u.*%.$", entry.doc, place)
  for i, arg in ipairs(entry.args or {}) do
    assert.truthy(lshape.t._internal.is_schema(arg[1]), place .. " " .. i)
    assert.equal("string", type(arg[2]), place)
    assert.equal("string", type(arg.name), place)
  end
end

describe("lshape.shapes", function()
  it("declares every export of lshape and of its tables", function()
    assert.same(names(lshape), names(shapes.api))
    for name, entry in pairs(shapes.api) do
      documented(entry, name)
      if entry.members then
        assert.same(names(lshape[name]), names(entry.members))
      end
      for member, inner in pairs(entry.members or {}) do
        documented(inner, name .. "." .. member)
        local is_function = type(lshape[name][member]) == "function"
        assert.equal(is_function, inner.args ~= nil, name .. "." .. member)
      end
    end
  end)

  it("declares every method of a schema", function()
    assert.same(names(lshape.t._internal.combinators), names(shapes.objects["lshape.schema"]))
    for name, entry in pairs(shapes.objects["lshape.schema"]) do
      documented(entry, name)
    end
  end)

  it("declares what is reached by require alone", function()
    assert.same(names(require("lshape.options")), names(shapes.modules["lshape.options"]))
    for name, entry in pairs(shapes.modules["lshape.options"]) do
      documented(entry, name)
    end
    assert.equal("function", type(require("lshape.gate")))
    documented(shapes.modules["lshape.gate"], "lshape.gate")
  end)
end)
