-- require("lshape.gate"): the check of a module's functions in dev mode.

local check = require("lshape.check")
local gate = require("lshape.gate")
local T = require("lshape.t")

-- A module with one function of each form.
local function subject()
  local M = { calls = 0 }
  function M.double(n, text)
    M.calls = M.calls + 1
    return n and n * 2, text
  end
  function M.all(...)
    return select("#", ...)
  end
  M.views = { rows = function(n) return n end, count = 3 }
  M.limit = 5
  M.undeclared = function(...) return ... end
  M.shapes = {
    api = {
      double = {
        doc = "Doubles.",
        args = {
          { T.number, "a factor", name = "n" },
          { T.string, "a text", name = "text", optional = true },
        },
      },
      all = {
        doc = "Counts.",
        args = { { T.string, "first" }, { T.number, "numbers", name = "..." } },
      },
      views = { doc = "Views.", members = { rows = { args = { { T.integer, "how many" } } } } },
      limit = { doc = "A constant.", args = {} },
      shapes = { doc = "Schemas." },
      gone = { doc = "Not exported.", args = {} },
    },
  }
  return M
end

local function gated(on)
  stub(check, "is_dev_mode", function() return on end)
  local M = subject()
  return gate(M, "m"), M
end

describe("lshape.gate", function()
  it("answers the module, and asks for the mode once, at load", function()
    local asked = stub(check, "is_dev_mode", function() return true end)
    local M = subject()
    assert.equal(M, gate(M, "m"))
    assert.equal(1, #asked.calls)
    M.double(1)
    assert.equal(1, #asked.calls)
  end)

  it("touches nothing when it is off", function()
    stub(check, "is_dev_mode", function() return false end)
    local M = subject()
    local before = {}
    for k, v in pairs(M) do
      before[k] = v
    end
    local rows = M.views.rows
    gate(M, "m")
    for k, v in pairs(before) do
      assert.equal(v, M[k], k)
    end
    assert.equal(rows, M.views.rows)
    assert.equal("x", M.views.rows("x"))
  end)

  it("stays off when the mode changes later", function()
    local on = false
    stub(check, "is_dev_mode", function() return on end)
    local M = gate(subject(), "m")
    on = true
    assert.equal("x", M.views.rows("x"))
  end)

  it("calls through with every argument and value", function()
    local M = gated(true)
    local n, text = M.double(2, "x")
    assert.equal(4, n)
    assert.equal("x", text)
    assert.equal(3, (select("#", M.undeclared(nil, nil, nil))))
    assert.equal(2, M.calls + 1)
    assert.equal(5, M.all("a", 1, nil, 2, nil))
  end)

  it("raises at the line of the call, and does not call", function()
    local M = gated(true)
    assert.errors_at_line(function()
      M.double("x")
    end, 1, "shape violation at $: expected number, got string (ctx: m.double arg 1 (a factor))")
    assert.errors_at_line(function() M.double(1, 2) end, 0,
      "expected string, got number (ctx: m.double arg 2 (a text))")
    assert.errors_at_line(function() M.double(false) end, 0,
      "expected number, got boolean (ctx: m.double arg 1 (a factor))")
    assert.equal(0, M.calls)
  end)

  it("does not look at nil, nor past what is declared", function()
    local M = gated(true)
    assert.is_nil(M.double(nil, "x"))
    assert.is_nil((M.double()))
    assert.equal(2, (M.double(1, nil, {})))
  end)

  it("holds every further argument to the one named ...", function()
    local M = gated(true)
    assert.equal(3, M.all("a", 1, 2))
    assert.errors_at_line(function() M.all("a", "1") end, 0,
      "expected number, got string (ctx: m.all arg 2 (numbers))")
    assert.errors_at_line(function() M.all("a", 1, "2") end, 0,
      "expected number, got string (ctx: m.all arg 3 (numbers))")
    assert.errors_at_line(function() M.all(1) end, 0, "(ctx: m.all arg 1 (first))")
  end)

  it("wraps the functions of a declared table", function()
    local M = gated(true)
    assert.equal(2, M.views.rows(2))
    assert.equal(3, M.views.count)
    assert.errors_at_line(function() M.views.rows(1.5) end, 0,
      "expected integer, got 1.5 (ctx: m.views.rows arg 1 (how many))")
  end)

  it("leaves options to the function: a closed shape", function()
    stub(check, "is_dev_mode", function() return true end)
    local Opts = T.shape({ a = T.number }, { open = false })
    local M = {
      f = function(opts) return opts end,
      g = function(data) return data end,
      shapes = {
        api = {
          f = { args = { { Opts:describe("d"):is_optional(), "options", name = "opts" } } },
          g = { args = { { T.shape({ a = T.number }), "data", name = "data" } } },
        },
      },
    }
    gate(M, "m")
    assert.same({ a = "x", b = 1 }, M.f({ a = "x", b = 1 }))
    assert.equal("no table", M.f("no table"))
    assert.errors_at_line(function() M.g({ a = "x" }) end, 0,
      "shape violation at $.a: expected number, got string (ctx: m.g arg 1 (data))")
  end)
end)
