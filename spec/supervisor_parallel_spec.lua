-- supervisor.parallel: slots, their order, how many run, and what is refused.

local knl = require("knl")
local ports = require("ports")
local supervisor = require("supervisor")
local task = std.task

local function open(amount)
  return knl.open{ store = "mem", budget = { amount = amount or 100 } }
end

local function job(fn, amount, refund)
  return { opts = { budget = { amount = amount or 1, refund = refund } }, fn = fn }
end

local function jobs(n, fn)
  local list = {}
  for i = 1, n do
    list[i] = job(function(c) return fn(i, c) end)
  end
  return list
end

-- How many of the sessions below up have not ended.
local function open_below(up)
  local n = 0
  for _, row in ipairs(knl.views.tree(up)) do
    if row.session ~= up:id() and not row.closed_epoch_ms then
      n = n + 1
    end
  end
  return n
end

describe("supervisor.parallel", function()
  it("answers an empty array for an empty list", function()
    assert.same({}, supervisor.parallel(open(), {}))
  end)

  it("answers a slot for each child in the order of the list, whatever ended first", function()
    local slots = supervisor.parallel(open(), jobs(4, function(i)
      task.sleep(20 - 5 * i)
      return i, nil, i * i, nil
    end))
    assert.equal(4, #slots)
    for i, slot in ipairs(slots) do
      assert.same({ ok = true, values = { n = 4, i, nil, i * i } }, slot)
    end
  end)

  it("gives what a body raised as err, never nil", function()
    local t = {}
    local slots = supervisor.parallel(open(), {
      job(function() error(t) end),
      job(function() error("words", 0) end),
      job(function() error(nil) end),
      job(function() error("at a line") end),
    })
    assert.same({ ok = false, err = t }, slots[1])
    assert.equal(t, slots[1].err)
    assert.same({ ok = false, err = "words" }, slots[2])
    assert.same({ ok = false, err = "the body raised nil" }, slots[3])
    assert.matches("supervisor_parallel_spec.lua:%d+: at a line$", slots[4].err)
  end)

  it("gives an Outcome that is not ok as a value", function()
    local stopped = knl.Outcome.stopped("budget")
    local slot = supervisor.parallel(open(), { job(function() return stopped end) })[1]
    assert.is_true(slot.ok)
    assert.equal(stopped, slot.values[1])
  end)

  it("tells a refusal from a body that answers nil", function()
    local body = function() return nil, { kind = "refused" } end
    local slots = supervisor.parallel(open(3), { job(body, 2), job(body, 2) })
    table.sort(slots, function(a) return a.ok end) -- either may have come first
    local ran, refused = slots[1], slots[2]
    assert.same({ n = 2, nil, { kind = "refused" } }, ran.values)
    assert.is_false(refused.ok)
    assert.equal("refused", refused.err.kind)
    assert.is_nil(refused.cancelled)
  end)

  it("gives why a child could not be opened, whatever it was", function()
    local ended, stale = open(), open()
    ended:close()
    knl.resume{ session = stale:id(), store = "mem" }
    for kind, up in pairs{ closed = ended, fenced = stale } do
      local slots = supervisor.parallel(up, jobs(3, function() end))
      for i = 1, 3 do
        assert.is_false(slots[i].ok)
        assert.equal(kind, slots[i].err.kind)
      end
    end
  end)

  it("lets siblings overlap while they wait, in a model call, a sleep and a command", function()
    local device = knl.device{ llm = ports.script(function()
      return { text = "late", delay = 0.1 }
    end):open() }
    local waits = {
      function(c) return knl.beat(c, device).status end,
      function() std.time.sleep(0.1) end,
      function() task.sleep(100) end,
      function() std.sh.run("sleep 0.1") end,
    }
    local list = {}
    for i = 1, 16 do
      list[i] = job(waits[i % 4 + 1])
    end
    local from = std.time.monotonic()
    for _, slot in ipairs(supervisor.parallel(open(), list)) do
      assert.is_true(slot.ok)
    end
    assert.is_true(std.time.monotonic() - from < 0.8) -- one after the other: 1.6 s
  end)

  it("runs width children at a time and opens the next when one has ended", function()
    local up, running, most = open(), 0, 0
    local slots = supervisor.parallel(up, jobs(60, function(i)
      running = running + 1
      most = math.max(most, running, open_below(up))
      task.sleep(1)
      running = running - 1
      return i
    end), { width = 4 })
    assert.equal(4, most)
    for i, slot in ipairs(slots) do
      assert.same({ n = 1, i }, slot.values)
    end
  end)

  it("runs 32 at a time when width is not given", function()
    local running, most = 0, 0
    supervisor.parallel(open(), jobs(40, function()
      running = running + 1
      most = math.max(most, running)
      task.sleep(200)
      running = running - 1
    end))
    assert.equal(32, most)
  end)

  it("takes 200 children", function()
    local up = open(200)
    local slots = supervisor.parallel(up, jobs(200, function(i, c)
      c:spend(1)
      return i
    end), { width = 4 })
    assert.equal(200, #slots)
    assert.equal(200, slots[200].values[1])
    assert.equal(0, up:remaining())
    assert.equal(0, open_below(up))
  end)

  it("runs inside itself, and inside the handler of a tool", function()
    local up = open()
    local inner
    local device = knl.device{
      llm = ports.script{ { calls = { { "fan", {} } } } }:open(),
      tools = { fan = { handler = function(_, ctx)
        inner = supervisor.parallel(ctx.session, jobs(3, function(i) return i end))
        return #inner
      end } },
    }
    local slots = supervisor.parallel(up, {
      job(function(c)
        return supervisor.parallel(c, jobs(2, function(i) return i * 10 end))
      end, 5),
      job(function(c) return knl.beat(c, device).out.tools[1].ok end, 9),
    })
    assert.same({ n = 1, 20 }, slots[1].values[1][2].values)
    assert.is_true(slots[2].values[1])
    assert.same({ n = 1, 3 }, inner[3].values)
    assert.equal(8, #knl.views.tree(up))
    assert.equal(0, open_below(up))
  end)

  it("runs the list as it was given, whatever is done to it meanwhile", function()
    local list
    list = jobs(3, function(i)
      list[2].fn, list[2].opts.budget.amount, list[3] = nil, nil, nil
      return i
    end)
    local slots = supervisor.parallel(open(), list, { width = 1 })
    assert.same({ 1, 2, 3 }, { slots[1].values[1], slots[2].values[1], slots[3].values[1] })
  end)

  it("looks the nursery up at each call and opens nothing without one", function()
    local up, real = open(), std.task
    stub(std, "task")
    for _, without in ipairs{ false, {}, { scope = 5 } } do
      std.task = without
      assert.errors_at_line(function() supervisor.parallel(up, jobs(1, print)) end, 0,
        "supervisor.parallel: std.task is not available in this VM (it is the host's nursery)")
    end
    std.task = { scope = real.scope }
    assert.errors_at_line(function() supervisor.parallel(up, {}, { timeout_ms = 1 }) end, 0,
      "std.task is not available")
    assert.same({ n = 1, 1 }, supervisor.parallel(up, jobs(1, function(i) return i end))[1].values)
    assert.equal(2, #knl.views.tree(up))
  end)

  it("works with a nursery that runs what it spawns at once", function()
    stub(std, "task")
    std.task = { scope = function(fn)
      return fn{ spawn = function(_, f) f() end, cancel = function() end }
    end }
    local slots = supervisor.parallel(open(), {
      job(function() return 1 end),
      job(function() error("no", 0) end),
      job(function() return 3 end),
    }, { joiner = "cancel_on_error" })
    assert.same({ true, false, false }, { slots[1].ok, slots[2].ok, slots[3].ok })
    assert.equal("no", slots[2].err)
    assert.is_true(slots[3].cancelled)
  end)

  it("says in the slot what a nursery raised", function()
    stub(std, "task")
    std.task = { scope = function() error("no room", 0) end }
    assert.same({ { ok = false, err = "no room", cancelled = true } },
      supervisor.parallel(open(), jobs(1, print)))
    std.task = { scope = function() end }
    assert.same({ { ok = false, err = "the scope ended before this child finished" } },
      supervisor.parallel(open(), jobs(1, print)))
  end)
end)
