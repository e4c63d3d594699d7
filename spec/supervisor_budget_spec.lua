-- Budgets of supervisor's children: moved, refused, given back, never made; and
-- what supervisor.reclaim settles behind a killed driver.

local knl = require("knl")
local supervisor = require("supervisor")
local task = std.task

local function open(amount)
  return knl.open{ store = "mem", budget = { amount = amount, tag = "beats" } }
end

local function job(fn, amount, refund)
  return { opts = { budget = { amount = amount, refund = refund } }, fn = fn }
end

local function ledger(s, kind)
  local amounts = {}
  for _, row in ipairs(knl.views.ledger(s)) do
    if row.kind == kind then
      amounts[#amounts + 1] = row.amount
    end
  end
  return amounts
end

describe("supervisor.child with a budget", function()
  it("keeps what is left when refund is not said, and gives it back when it is", function()
    for refund, left in pairs{ [true] = 9, [false] = 6 } do
      local up = open(10)
      supervisor.child(up, job(nil, 4, refund).opts, function(c) c:spend(1) end)
      assert.equal(left, up:remaining())
    end
    local up = open(10)
    supervisor.child(up, job(nil, 4).opts, function() end)
    assert.same({}, ledger(up, "budget_returned"))
  end)

  it("gives back however its function ends", function()
    local up = open(10)
    local opts = job(nil, 4, true).opts
    pcall(supervisor.child, up, opts, function() error("x") end)
    supervisor.child(up, opts, function() return knl.Outcome.stopped("budget") end)
    supervisor.parallel(up, { job(function() task.sleep(3600000) end, 4, true) },
      { timeout_ms = 20 })
    assert.same({ 4, 4, 4 }, ledger(up, "budget_returned"))
    assert.equal(10, up:remaining())
  end)

  it("takes the whole balance and not one unit more", function()
    local up = open(3)
    assert.equal(3, supervisor.child(up, job(nil, 3, true).opts, function(c)
      return c:remaining()
    end))
    assert.equal("refused", select(2, supervisor.child(up, job(nil, 4).opts, print)).kind)
    assert.same({ 4 }, ledger(up, "budget_refused"))
  end)

  it("gives back to the next ancestor when a refunding parent has ended before", function()
    local up, kept = open(10), nil
    supervisor.child(up, job(nil, 6, true).opts, function(c)
      kept = knl.open{ parent = c, budget = { from_parent = 5, refund = true } }
    end)
    kept:spend(2)
    kept:close()
    assert.same({ 1, 3 }, ledger(up, "budget_returned"))
    assert.equal(8, up:remaining())
  end)
end)

describe("supervisor.parallel under one budget", function()
  it("refuses those that the balance does not cover and runs the others", function()
    local up = open(10)
    local list = {}
    for i = 1, 8 do
      list[i] = job(function() task.sleep(1) end, 3)
    end
    local refused = 0
    for _, slot in ipairs(supervisor.parallel(up, list)) do
      if not slot.ok then
        refused = refused + 1
        assert.equal("refused", slot.err.kind)
      end
    end
    assert.equal(5, refused)
    assert.equal(1, up:remaining())
    assert.equal(5, #ledger(up, "budget_refused"))
  end)
end)

-- Numbers that look random and are the same in every run.
local function dice(seed)
  local x = seed * 2654435761 % 2 ^ 31
  return function(n)
    x = (x * 1103515245 + 12345) % 2 ^ 31
    return math.floor(x / 2 ^ 16) % n + 1
  end
end

-- A body that spends, opens children, waits, raises, answers: as dice fall.
local function body(roll, depth, note)
  return function(c)
    local n = math.min(roll(4) - 1, c:remaining())
    c:spend(n)
    note.spent = note.spent + n
    if depth > 0 then
      local list = {}
      for i = 1, roll(3) do
        list[i] = job(body(roll, depth - 1, note), roll(8), roll(2) == 1)
      end
      local joiner = roll(2) == 1 and "isolate" or "cancel_on_error"
      supervisor.parallel(c, list, { joiner = joiner, width = roll(3), timeout_ms = roll(60) })
    end
    local ends = roll(6)
    if ends == 1 then
      error("a body that raises", 0)
    elseif ends == 2 then
      task.sleep(3600000)
    elseif ends == 3 then
      return pcall(task.sleep, roll(20))
    end
  end
end

describe("a tree of children", function()
  it("never has more units than its root was granted, and every child ends", function()
    for seed = 1, 30 do
      local up, note = open(40), { spent = 0 }
      local roll = dice(seed)
      local list = {}
      for i = 1, 4 do
        list[i] = job(body(roll, 2, note), roll(12), roll(2) == 1)
      end
      supervisor.parallel(up, list, { timeout_ms = 100, joiner = seed % 2 == 0
        and "cancel_on_error" or "isolate" })
      local total = note.spent
      for _, row in ipairs(knl.views.tree(up)) do
        total = total + row.remaining
        assert.equal(row.session == up:id(), row.closed_epoch_ms == nil, "seed " .. seed)
      end
      assert.equal(40, total, "seed " .. seed)
    end
  end)
end)

describe("supervisor.reclaim", function()
  -- What a driver that was killed leaves: its children, open.
  local function killed()
    local up = open(20)
    local c = knl.open{ parent = up, budget = { from_parent = 9, refund = true } }
    local g = knl.open{ parent = c, budget = { from_parent = 4, refund = true } }
    local lost = knl.open{ parent = up, budget = { from_parent = 3 } }
    g:spend(1)
    return knl.resume{ session = up:id(), store = "mem" }, c, g, lost
  end

  local function last(s)
    local data = s:view("tail", { n = 1 })[1].data
    return { data.reason, data.detail, data.returned }
  end

  it("closes what an earlier driver left open, the deepest first, and settles it", function()
    local up, c, g, lost = killed()
    assert.equal(8, up:remaining())
    local closed = {}
    for _, row in ipairs(supervisor.reclaim(up)) do
      closed[row.session] = row.returned
    end
    assert.same({ [c:id()] = 8, [g:id()] = 3, [lost:id()] = 0 }, closed)
    assert.equal(16, up:remaining())
    assert.same({ "error", "orphaned", 3 }, last(g))
    assert.same({ "error", "orphaned", 8 }, last(c))
    assert.same({ "error", "orphaned" }, last(lost))
  end)

  it("finds what is below a child that has ended", function()
    local up, c, g = killed()
    knl.resume{ session = c:id(), store = c }:close()
    assert.equal(g:id(), supervisor.reclaim(up)[2].session)
    assert.equal(16, up:remaining())
  end)

  it("leaves alone what this driver has opened", function()
    local up = killed()
    local mine = knl.open{ parent = up, budget = { from_parent = 1, refund = true } }
    assert.equal(3, #supervisor.reclaim(up))
    mine:append{ kind = "note" }
    assert.equal(15, up:remaining())
    assert.same({}, supervisor.reclaim(up))
  end)

  it("finds nothing in a session that was never resumed, or had no children", function()
    local up = open(5)
    knl.open{ parent = up, budget = { from_parent = 1 } }
    assert.same({}, supervisor.reclaim(up))
    assert.same({}, supervisor.reclaim(knl.resume{ session = open(5):id(), store = "mem" }))
    assert.same({}, supervisor.reclaim(knl.open{ store = "mem" }))
  end)

  it("fences a driver that lives on, which keeps what it wrote", function()
    local up, c = killed()
    c:append{ kind = "found", data = { n = 1 } }
    supervisor.reclaim(up)
    assert.equal("fenced", knl.error(assert.has_error(function() c:spend(1) end)).kind)
    assert.equal(1, #c:scan{ kinds = { "found" } })
  end)

  it("raises what closing one raises, and nothing of one that has ended meanwhile", function()
    local up, c = killed()
    local real = knl.resume
    stub(knl, "resume", function(opts)
      if opts.session == c:id() then
        real(opts):close()
      end
      return real(opts)
    end)
    assert.equal(2, #supervisor.reclaim(up))
    up = killed()
    knl.resume = function() error("no disk", 0) end
    assert.equal("no disk", assert.has_error(function() supervisor.reclaim(up) end))
  end)

  it("wants a session", function()
    for _, v in ipairs{ false, 5, {} } do
      assert.errors_at_line(function() supervisor.reclaim(v) end, 0, "supervisor.reclaim: the first"
        .. " argument must be a knl session (from knl.open / knl.session), got " .. type(v))
    end
    assert.errors_at_line(function() supervisor.reclaim() end, 0, "got nil")
  end)
end)
