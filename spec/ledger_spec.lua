-- The ledger: granted, reserved, spent, settled.

local knl, ports = require("knl"), require("ports")

local function open(amount, tag)
  return knl.open{ store = "mem", budget = amount and { amount = amount, tag = tag } }
end

local function refused(kind, text, fn)
  local raised = assert.errors_at_line(fn, 0, text)
  assert.equal(kind, raised.kind)
end

local function moves(s)
  local out = {}
  for i, row in ipairs(knl.views.ledger(s)) do
    out[i] = row.kind .. " " .. row.amount
  end
  return out
end

-- Numbers that no ledger takes.
local function refuses_numbers(s, method)
  for _, bad in ipairs{ -1, 1.5, 0 / 0, math.huge, 2 ^ 60 } do
    local raised = assert.has_error(function() s[method](s, bad) end)
    assert.equal("validation", raised.kind, tostring(bad))
  end
  assert.errors_at_line(function() s[method](s, 2 ^ 60) end, 0,
    "got 1152921504606846976, want a whole number of at most 9007199254740992")
  assert.errors_at_line(function() s[method](s) end, 0,
    "session:" .. method .. ": argument 1 (n): got nil, want a number")
  assert.errors_at_line(function() s[method](s, "1") end, 0, 'got "1", want a number')
end

describe("session:reserve", function()
  it("takes what is there, and refuses what is not with the tag", function()
    local s = open(5, "tokens")
    assert.equal(true, s:reserve(3))
    assert.equal(2, s:remaining())
    local ok, tag = s:reserve(3)
    assert.is_false(ok)
    assert.equal("tokens", tag)
    assert.equal(2, s:remaining())
    assert.same({ "budget_granted 5", "budget_reserved 3", "budget_refused 3" }, moves(s))
    assert.equal(2, s:scan{ kinds = { "budget_refused" } }[1].data.remaining)
  end)

  it("is always granted and never recorded without a budget", function()
    local s = open()
    assert.equal(true, s:reserve(1000))
    assert.equal(1, s:len())
  end)

  it("takes nothing at all", function()
    local s = open(1)
    assert.equal(true, s:reserve(0))
    assert.equal(1, s:remaining())
  end)

  it("refuses what is not whole", function()
    refuses_numbers(open(5), "reserve")
  end)
end)

describe("session:spend", function()
  it("never refuses, and stops at zero", function()
    local s = open(5)
    assert.equal(0, select("#", s:spend(2)))
    assert.equal(3, s:remaining())
    s:spend(10)
    assert.equal(0, s:remaining())
    assert.same({ "budget_granted 5", "budget_spent 2", "budget_spent 10" }, moves(s))
  end)

  it("does nothing without a budget", function()
    local s = open()
    s:spend(3)
    assert.equal(1, s:len())
  end)

  it("refuses what is not whole", function()
    local s = open(5)
    refuses_numbers(s, "spend")
    assert.equal(5, s:remaining())
  end)
end)

describe("session:settle", function()
  it("gives back what a reservation did not cost", function()
    local s = open(10)
    s:reserve(6)
    s:settle(2)
    assert.equal(8, s:remaining())
  end)

  it("takes what it cost beyond, never below zero", function()
    local s = open(10)
    s:reserve(2)
    s:settle(5)
    assert.equal(5, s:remaining())
    s:reserve(1)
    s:settle(100)
    assert.equal(0, s:remaining())
  end)

  it("settles one reservation once", function()
    local s = open(10)
    s:reserve(6)
    s:settle(0)
    refused("validation", "reserv", function() s:settle(0) end)
    assert.equal(10, s:remaining())
  end)

  it("refuses what is not whole", function()
    local s = open(5)
    s:reserve(1)
    refuses_numbers(s, "settle")
  end)

  it("is what a device's settle does after a beat", function()
    local s = open(10)
    local device = knl.device{
      llm = ports.script{ { text = "x", usage = { input_tokens = 3, output_tokens = 1 } } }:open(),
      cost = function() return 7 end,
      settle = function(_, response) return response.usage.input_tokens + response.usage.output_tokens end,
    }
    assert.equal("ok", knl.beat(s, device).status)
    assert.equal(6, s:remaining())
    assert.same({ "budget_granted 10", "budget_reserved 7", "budget_settled 4" }, moves(s))
  end)
end)

describe("session:remaining", function()
  it("is nil when nothing was ever granted", function()
    assert.is_nil(open():remaining())
    assert.equal(0, open(0):remaining())
    assert.equal(7, open(7):remaining())
  end)
end)

describe("session:exhausted", function()
  it("is true when a budget exists and nothing is left", function()
    assert.is_false(open():exhausted())
    assert.is_true(open(0):exhausted())
    local s = open(1)
    assert.is_false(s:exhausted())
    s:spend(1)
    assert.is_true(s:exhausted())
  end)
end)

describe("a budget", function()
  it("stops the beat that it does not cover, before the call", function()
    local s = open(1, "beats")
    local calls = 0
    local device = knl.device{ llm = function()
      calls = calls + 1
      return { status = "ok", content = {}, usage = {} }
    end }
    assert.equal("ok", knl.beat(s, device).status)
    local before = s:len()
    local o = knl.beat(s, device)
    assert.same({ status = "stopped", reason = "budget", tag = "beats" }, o)
    assert.equal(1, calls)
    assert.equal(before + 1, s:len())
    assert.equal("budget_refused", s:view("tail", { n = 1 })[1].kind)
  end)

  it("names the beat in its reservation", function()
    local s = open(1)
    local o = knl.beat(s, knl.device{ llm = ports.script{ { text = "x" } }:open() })
    assert.equal(o.out.beat, s:scan{ kinds = { "budget_reserved" } }[1].beat)
  end)

  it("never grows in a tree but by a grant", function()
    local parent = open(10)
    local child = knl.open{ parent = parent, budget = { from_parent = 6 } }
    local grandchild = knl.open{ parent = child, budget = { from_parent = 2, refund = true } }
    assert.equal(10, parent:remaining() + child:remaining() + grandchild:remaining())
    grandchild:close()
    assert.equal(10, parent:remaining() + child:remaining())
  end)
end)
