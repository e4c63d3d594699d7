-- supervisor.parallel: joiners, timeouts, and what cancellation reaches.

local knl = require("knl")
local ports = require("ports")
local supervisor = require("supervisor")
local task = std.task

local function open(amount)
  return knl.open{ store = "mem", budget = { amount = amount or 100 } }
end

local function job(fn, amount)
  return { opts = { budget = { amount = amount or 1, refund = true } }, fn = fn }
end

local function seconds(fn)
  local from = std.time.monotonic()
  fn()
  return std.time.monotonic() - from
end

-- Every child of up has ended and given back what it did not spend.
local function settled(up, left)
  for _, row in ipairs(knl.views.tree(up)) do
    if row.session ~= up:id() then
      assert.truthy(row.closed_epoch_ms)
    end
  end
  assert.equal(left or 100, up:remaining())
end

local function slow_model()
  return knl.device{ llm = ports.script{ { text = "late", delay = 3600 } }:open() }
end

-- Bodies that wait for an hour, each in a way of its own.
local waits = {
  ["a model call"] = function(c)
    local o = knl.beat(c, slow_model())
    error(o.detail)
  end,
  ["a tool"] = function(c)
    local device = knl.device{
      llm = ports.script{ { calls = { { "wait", {} } } } }:open(),
      tools = { wait = { handler = function() std.time.sleep(3600) end } },
    }
    error(knl.beat(c, device).detail)
  end,
  ["a command"] = function() std.sh.run{ "sleep", "3600" } end,
  ["a sleep"] = function() std.time.sleep(3600) end,
  ["a sleep of tasks"] = function() task.sleep(3600000) end,
  ["a task of its own"] = function()
    task.scope(function(scope)
      scope:spawn(function() std.time.sleep(3600) end):join()
    end)
  end,
}

local function fail_soon()
  task.sleep(20)
  error("first", 0)
end

describe("supervisor.parallel with joiner isolate", function()
  it("lets the others go on when one fails", function()
    for _, opts in ipairs{ {}, { joiner = "isolate" } } do
      local up = open()
      local slots = supervisor.parallel(up, {
        job(function() error("first", 0) end),
        job(function() task.sleep(20) return "done" end),
      }, opts)
      assert.same({ ok = false, err = "first" }, slots[1])
      assert.same({ ok = true, values = { n = 1, "done" } }, slots[2])
      settled(up)
    end
  end)
end)

describe("supervisor.parallel with joiner cancel_on_error", function()
  for name, wait in pairs(waits) do
    it("ends at once a sibling that blocks in " .. name, function()
      local up, slots = open(), nil
      local took = seconds(function()
        slots = supervisor.parallel(up, { job(wait, 9), job(fail_soon), job(wait, 9) },
          { joiner = "cancel_on_error" })
      end)
      assert.is_true(took < 5)
      assert.same({ ok = false, err = "first" }, slots[2])
      for _, i in ipairs{ 1, 3 } do
        assert.is_false(slots[i].ok)
        assert.is_true(slots[i].cancelled)
        assert.matches("cancelled", tostring(slots[i].err))
      end
      for _, row in ipairs(knl.views.tree(up)) do
        assert.equal(row.session == up:id(), row.closed_epoch_ms == nil)
      end
    end)
  end

  it("takes no cut beat for an answer", function()
    local up = open()
    local slots = supervisor.parallel(up, {
      job(function(c) return knl.beat(c, slow_model()) end, 2),
      job(fail_soon),
    }, { joiner = "cancel_on_error" })
    local cut = slots[1]
    assert.same({ false, true, "cancelled" }, { cut.ok, cut.cancelled, cut.err.kind })
    settled(up, 99) -- the call may have been charged
  end)

  it("takes what a body makes of its cancellation for an answer", function()
    local slots = supervisor.parallel(open(), {
      job(function() return pcall(std.time.sleep, 3600) and "all" or "half" end),
      job(fail_soon),
    }, { joiner = "cancel_on_error" })
    assert.same({ ok = true, values = { n = 1, "half" } }, slots[1])
  end)

  it("counts a refusal as a failure", function()
    local up = open(5)
    local slots = supervisor.parallel(up, {
      job(function() std.time.sleep(3600) end, 2),
      job(print, 50),
    }, { joiner = "cancel_on_error" })
    assert.equal("refused", slots[2].err.kind)
    assert.is_nil(slots[2].cancelled)
    assert.is_true(slots[1].cancelled)
    settled(up, 5)
  end)

  it("opens nothing of what was not started", function()
    local up = open()
    local list = { job(fail_soon) }
    for i = 2, 9 do
      list[i] = job(function() error("ran") end)
    end
    local slots = supervisor.parallel(up, list, { joiner = "cancel_on_error", width = 1 })
    for i = 2, 9 do
      assert.same({ ok = false, cancelled = true,
        err = "task cancelled before the child was opened" }, slots[i])
    end
    assert.equal(2, #knl.views.tree(up))
  end)

  it("aborts a sibling that goes on regardless, and fences it", function()
    local up, stubborn = open(), nil
    local slots
    local took = seconds(function()
      slots = supervisor.parallel(up, {
        job(function(c)
          stubborn = c
          while true do
            pcall(std.time.sleep, 3600)
          end
        end),
        job(fail_soon),
      }, { joiner = "cancel_on_error" })
    end)
    assert.is_true(took < 5)
    assert.same({ ok = false, cancelled = true,
      err = "the scope ended before this child finished" }, slots[1])
    assert.same({ ok = false, err = "first" }, slots[2])
    local last = stubborn:view("tail", { n = 1 })[1].data
    assert.same({ "error", "aborted" }, { last.reason, last.detail })
    local late = assert.has_error(function() stubborn:append{ kind = "late" } end)
    assert.equal("fenced", knl.error(late).kind)
    settled(up)
  end)

  it("cancels nobody when all is well", function()
    local slots = supervisor.parallel(open(), {
      job(function() return 1 end), job(function() task.sleep(5) return 2 end),
    }, { joiner = "cancel_on_error" })
    assert.same({ 1, 2 }, { slots[1].values[1], slots[2].values[1] })
  end)
end)

describe("supervisor.parallel with timeout_ms", function()
  for name, wait in pairs(waits) do
    it("ends what blocks in " .. name .. " and keeps what was done", function()
      local up, slots = open(), nil
      local took = seconds(function()
        slots = supervisor.parallel(up, { job(function() return "done" end), job(wait, 9) },
          { timeout_ms = 200 })
      end)
      assert.is_true(took >= 0.2 and took < 5)
      assert.same({ ok = true, values = { n = 1, "done" } }, slots[1])
      assert.is_false(slots[2].ok)
      assert.is_true(slots[2].cancelled)
      assert.truthy(slots[2].err)
    end)
  end

  it("aborts a body that never waits, and says in its slot that the time was exceeded", function()
    local up, spinning = open(), nil
    local slots = supervisor.parallel(up, {
      job(function() return "done" end),
      job(function(c)
        spinning = c
        task.sleep(50) -- a body that spins keeps the others from running
        while true do end
      end),
    }, { timeout_ms = 200 })
    assert.equal("done", slots[1].values[1])
    assert.is_false(slots[2].ok)
    assert.is_true(slots[2].cancelled)
    assert.equal("timeout", slots[2].err.kind)
    assert.matches("exceeded 200 ms", tostring(slots[2].err))
    local last = spinning:view("tail", { n = 1 })[1].data
    assert.same({ "error", "aborted" }, { last.reason, last.detail })
    settled(up)
  end)

  it("opens nothing of what was not started in time", function()
    local up, list, ran = open(), {}, 0
    for i = 1, 9 do
      list[i] = job(function()
        ran = ran + 1
        std.time.sleep(3600)
      end)
    end
    local slots = supervisor.parallel(up, list, { timeout_ms = 100, width = 2 })
    assert.equal(2, ran)
    for i = 1, 9 do
      assert.is_false(slots[i].ok)
      assert.is_true(slots[i].cancelled)
    end
    assert.equal("cancelled", slots[9].err.kind)
    assert.equal(3, #knl.views.tree(up))
    settled(up)
  end)

  it("says nothing of a time that was kept", function()
    local slots = supervisor.parallel(open(), { job(function() return 1 end) },
      { timeout_ms = 60000 })
    assert.same({ { ok = true, values = { n = 1, 1 } } }, slots)
  end)
end)

describe("supervisor.parallel in a task that is cancelled", function()
  it("reaches children of children", function()
    local up, deepest = open(), nil
    local h = task.spawn(function()
      return supervisor.parallel(up, { job(function(c)
        return supervisor.parallel(c, { job(function(g)
          deepest = g
          std.time.sleep(3600)
        end, 3) })
      end, 9) })
    end)
    repeat task.sleep(1) until deepest
    h:cancel()
    local outer = h:join()
    local inner = outer[1].values[1]
    assert.is_true(inner[1].cancelled)
    settled(up)
  end)

  it("ends with the abort of its task, and every child with it", function()
    local up, n = open(), 0
    assert.has_error(function()
      task.with_timeout(150, function()
        local list = {}
        for i = 1, 5 do
          list[i] = job(function()
            n = n + 1
            while true do
              pcall(std.time.sleep, 3600)
            end
          end, 2)
        end
        supervisor.parallel(up, list)
      end, { grace_ms = 1 })
    end, "exceeded")
    assert.equal(5, n)
    settled(up)
  end)
end)
