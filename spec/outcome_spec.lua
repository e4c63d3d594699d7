-- Outcomes: what a beat comes to, as plain tables.

local knl = require("knl")
local Outcome = knl.Outcome

local all = {
  ok = Outcome.ok({ beat = "b" }),
  refused = Outcome.refused("model", { x = 1 }),
  error = Outcome.err("call", { message = "m" }),
  stopped = Outcome.stopped("budget", "beats"),
}

-- Wants a predicate to be true of one status alone.
local function only(predicate, status)
  for name, o in pairs(all) do
    assert.equal(name == status, predicate(o), name)
  end
  for _, v in ipairs{ "ok", 5, true, {}, { status = true }, knl.null } do
    assert.is_false(predicate(v))
  end
  assert.is_false(predicate(nil))
end

describe("knl.Outcome.ok", function()
  it("is a plain table", function()
    assert.same({ status = "ok", out = { beat = "b" } }, all.ok)
    assert.is_nil(getmetatable(all.ok))
    assert.equal('{"out":{"beat":"b"},"status":"ok"}', std.json.encode(all.ok))
  end)

  it("wants a table", function()
    assert.errors_at_line(function() Outcome.ok() end, 0,
      "knl.Outcome.ok: argument 1 (out): got nil, want a table")
  end)
end)

describe("knl.Outcome.refused", function()
  it("has a reason and perhaps a detail", function()
    assert.same({ status = "refused", reason = "model", detail = { x = 1 } }, all.refused)
    assert.same({ status = "refused", reason = "model" }, Outcome.refused("model"))
    assert.errors_at_line(function() Outcome.refused(5) end, 0,
      "knl.Outcome.refused: argument 1 (reason): got 5, want a string")
  end)
end)

describe("knl.Outcome.err", function()
  it("has the stage and a detail", function()
    assert.same({ status = "error", kind = "call", detail = { message = "m" } }, all.error)
    assert.errors_at_line(function() Outcome.err({}) end, 0,
      "knl.Outcome.err: argument 1 (kind): got a table, want a string")
  end)
end)

describe("knl.Outcome.stopped", function()
  it("has a reason and perhaps a tag", function()
    assert.same({ status = "stopped", reason = "budget", tag = "beats" }, all.stopped)
    assert.same({ status = "stopped", reason = "budget" }, Outcome.stopped("budget"))
    assert.errors_at_line(function() Outcome.stopped("x", 5) end, 0,
      "knl.Outcome.stopped: argument 2 (tag): got 5, want a string")
  end)
end)

describe("knl.Outcome.is_ok", function()
  it("is true of ok alone, and never raises", function() only(Outcome.is_ok, "ok") end)
end)

describe("knl.Outcome.is_refused", function()
  it("is true of refused alone, and never raises",
    function() only(Outcome.is_refused, "refused") end)
end)

describe("knl.Outcome.is_error", function()
  it("is true of error alone, and never raises", function() only(Outcome.is_error, "error") end)
end)

describe("knl.Outcome.is_stopped", function()
  it("is true of stopped alone, and never raises",
    function() only(Outcome.is_stopped, "stopped") end)
end)

describe("knl.Outcome.match", function()
  local function arms()
    return {
      ok = function(o) return "ok " .. o.out.beat end,
      refused = function(o) return "refused " .. o.reason end,
      error = function(o) return "error " .. o.kind end,
      stopped = function(o) return "stopped " .. o.reason end,
    }
  end

  it("calls the arm of the status with the outcome", function()
    assert.equal("ok b", Outcome.match(all.ok, arms()))
    assert.equal("refused model", Outcome.match(all.refused, arms()))
    assert.equal("error call", Outcome.match(all.error, arms()))
    assert.equal("stopped budget", Outcome.match(all.stopped, arms()))
  end)

  it("wants all four arms", function()
    for _, name in ipairs{ "ok", "refused", "error", "stopped" } do
      local some = arms()
      some[name] = nil
      assert.errors_at_line(function() Outcome.match(all.ok, some) end, 0,
        ("knl.Outcome.match: arms.%s: got nil, want a function: every status has an arm"):format(name))
    end
    assert.errors_at_line(function() Outcome.match(all.ok) end, 0,
      "argument 2 (arms): got nil, want a table")
    assert.errors_at_line(function() Outcome.match(nil, arms()) end, 0,
      "argument 1 (o): got nil, want a table")
  end)

  it("refuses an unknown status", function()
    assert.errors_at_line(function() Outcome.match({ status = "done" }, arms()) end, 0,
      'status: got "done", want ok, refused, error or stopped')
    assert.errors_at_line(function() Outcome.match({}, arms()) end, 0, "status: got nil")
  end)

  it("raises what the arm raises", function()
    local t = {}
    local some = arms()
    some.ok = function() error(t) end
    assert.equal(t, assert.has_error(function() Outcome.match(all.ok, some) end))
  end)
end)
