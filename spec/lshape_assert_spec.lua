-- require("lshape.check"): registries, assert, and dev mode.

local check = require("lshape.check")
local T = require("lshape.t")

after_each(function()
  check.default_registry = nil
  check.dev_env_var = "LSHAPE_CHECK"
end)

describe("lshape.check a ref", function()
  local User = T.shape({ friend = T.ref("user"):is_optional() })

  it("is a schema of the registry that was passed", function()
    local registry = { registry = { user = User } }
    assert.is_true((check.check({ friend = { friend = {} } }, T.ref("user"), registry)))
    local ok, why = check.check({ friend = { friend = 5 } }, T.ref("user"), registry)
    assert.is_false(ok)
    assert.equal("shape violation at $.friend.friend: expected table, got number", why)
  end)

  it("that names nothing is a violation", function()
    local _, why = check.check(1, T.ref("nope"), { registry = {} })
    assert.equal("shape violation at $: unresolved ref 'nope'", why)
    _, why = check.check(1, T.ref("nope"),
      { registry = setmetatable({}, { __index = { nope = T.any } }) })
    assert.equal("shape violation at $: unresolved ref 'nope'", why)
  end)

  it("falls back on the default registry", function()
    check.default_registry = { user = User }
    assert.is_true((check.check({ friend = {} }, T.ref("user"))))
    local _, why = check.check({}, T.ref("user"), { registry = {} })
    assert.equal("shape violation at $: unresolved ref 'user'", why)
  end)

  it("without any registry is raised, but only when it is met", function()
    assert.errors_at_line(function() check.check(1, T.ref("user")) end, 0,
      "lshape.check: default registry not bound. Bind")
    assert.is_true((check.check({}, T.shape({ u = T.ref("user"):is_optional() }))))
  end)
end)

describe("lshape.check options", function()
  it("are nil or a table with a registry", function()
    assert.is_true((check.check(1, T.any, {})))
    assert.errors_at_line(function() check.check(1, T.any, "x") end, 0,
      "lshape.check: opts must be a table, got string")
    assert.errors_at_line(function() check.check(1, T.any, false) end, 0,
      "lshape.check: opts must be a table, got boolean")
    assert.errors_at_line(function() check.check(1, nil, { registry = print }) end, 0,
      "lshape.check: opts.registry must be a table, got function")
  end)
end)

describe("lshape.check.assert", function()
  it("hands back what fits", function()
    local t = {}
    assert.equal(t, check.assert(t, T.table))
    assert.is_nil(check.assert(nil, T.any))
    assert.is_false(check.assert(false, "any"))
  end)

  it("raises the reason at the line of its caller, with the hint", function()
    assert.errors_at_line(function() check.assert(1, T.string) end, 0,
      "shape violation at $: expected string, got number")
    assert.errors_at_line(function() check.assert(1, T.string, "f arg 1") end, 0,
      "shape violation at $: expected string, got number (ctx: f arg 1)")
    local raised = assert.has_error(function() check.assert(1, T.string, "") end)
    assert.matches("got number$", raised)
  end)

  it("takes a name of the registry", function()
    local named = { registry = { text = T.string } }
    assert.equal("x", check.assert("x", "text", nil, named))
    assert.errors_at_line(function() check.assert(1, "text", "a", named) end, 0,
      "shape violation at $: expected string, got number (ctx: a)")
    assert.errors_at_line(function() check.assert(1, "txt", nil, named) end, 0,
      "lshape.assert: unknown shape name 'txt'")
    check.default_registry = { text = T.string }
    assert.equal("x", check.assert("x", "text"))
    assert.errors_at_line(function() check.assert(1, "nope") end, 0,
      "lshape.assert: unknown shape name 'nope'")
  end)

  it("refuses what names no schema", function()
    assert.errors_at_line(function() check.assert(1, nil) end, 0,
      "lshape.assert: schema_or_name must not be nil. Pass")
    assert.errors_at_line(function() check.assert(1, 5) end, 0,
      "lshape.assert: schema_or_name must be a schema or a name, got number")
    assert.errors_at_line(function() check.assert(1, "text") end, 0,
      "lshape.check: default registry not bound")
  end)
end)

describe("lshape.check.is_dev_mode", function()
  local function with(value)
    stub(os, "getenv", function(name)
      return name == check.dev_env_var and value or nil
    end)
    return check.is_dev_mode()
  end

  it("is on for exactly 1", function()
    assert.is_true(with("1"))
    for _, value in ipairs{ "0", "true", "yes", "", "01", " 1", "1 " } do
      assert.is_false(with(value), value)
    end
    assert.is_false(with(nil))
  end)

  it("reads the variable that dev_env_var names", function()
    check.dev_env_var = "OTHER_CHECK"
    local asked = stub(os, "getenv", function() return "1" end)
    assert.is_true(check.is_dev_mode())
    assert.equal("OTHER_CHECK", asked.calls[1][1])
  end)

  it("is what the host says", function()
    local dev = os.getenv("LSHAPE_CHECK") == "1"
    assert.equal(dev, check.is_dev_mode())
    assert.equal(dev, require("lshape").check.is_dev_mode())
  end)
end)

describe("lshape.check.assert_dev", function()
  it("asserts in dev mode, asked at each call through the table", function()
    local on = true
    local asked = stub(check, "is_dev_mode", function() return on end)
    assert.equal("x", check.assert_dev("x", T.string))
    assert.errors_at_line(function() check.assert_dev(1, T.string, "f") end, 0,
      "shape violation at $: expected string, got number (ctx: f)")
    on = false
    assert.equal(1, check.assert_dev(1, T.string))
    assert.equal(1, check.assert_dev(1, nil))
    assert.equal(4, #asked.calls)
  end)
end)

describe("lshape.check._internal", function()
  it("shows the parts of a check", function()
    local internal = check._internal
    local walk = internal.build_ctx({ registry = { text = T.string } })
    assert.is_nil(internal.check_node("x", T.ref("text"), walk, 1))
    assert.equal("function", type(internal.handlers.prim))
    assert.equal("shape violation at $.a: b", internal.compose_msg("$", "b", ".a"))
    check.default_registry = {}
    assert.equal(check.default_registry, internal.resolve_default_registry())
  end)
end)
