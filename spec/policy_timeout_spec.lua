-- policy.verdict{ timeout }: how long a check may take.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local device = knl.device{ llm = ports.script(function() return { text = "done" } end):open() }

local function fresh()
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  return s
end

-- Judges as many beats as there are answers, each { seconds, timed_out? }: how
-- long the check says it took. Answers the seconds that run was handed.
local function handed(s, answers, timeout)
  local given, i = {}, 0
  timeout.measure = function(result) return result.took end
  timeout.floor = timeout.floor or math.min(1, timeout.ceiling or 1)
  local verify = policy.verdict{ timeout = timeout, run = function(seconds)
    i = i + 1
    given[i] = seconds
    return { ok = true, took = answers[i][1], timed_out = answers[i].timed_out }
  end }
  for _ = 1, #answers do
    verify(s, knl.beat(s, device))
  end
  return given
end

describe("policy.verdict{ timeout }", function()
  it("hands run a number as it is, and nothing without one", function()
    local given = {}
    local function run(...)
      given[#given + 1] = select("#", ...) > 0 and (...) or "none"
      return { ok = true }
    end
    local s = fresh()
    policy.verdict{ run = run, timeout = 30 }(s)
    policy.verdict{ run = run, timeout = 0.5 }(s)
    policy.verdict{ run = run }(s)
    assert.same({ 30, 0.5, "none" }, given)
    assert.is_nil(s:scan{ kinds = { "verify" } }[1].data.seconds)
  end)

  it("derives it from the longest of the checks before", function()
    local answers = { { 10 }, { 25 }, { 3 }, { 1 } }
    assert.same({ 60, 20, 50, 50 }, handed(fresh(), answers, { first = 60 }))
    assert.same({ 60, 15 }, handed(fresh(), { { 10 }, { 1 } }, { first = 60, factor = 1.5 }))
  end)

  it("gives at least floor seconds", function()
    assert.same({ 60, 1 }, handed(fresh(), { { 0 }, { 1 } }, { first = 60 }))
    for first, want in pairs{ [300] = 60, [60] = 60, [5] = 5 } do
      local given = {}
      local verify = policy.verdict{
        timeout = { first = first, measure = function() return 0.5 end },
        run = function(seconds) given[#given + 1] = seconds return { ok = false } end,
      }
      local s = fresh()
      verify(s, knl.beat(s, device))
      verify(s, knl.beat(s, device))
      assert.same({ first, want }, given)
    end
    assert.same({ 60, 15 }, handed(fresh(), { { 2 }, { 1 } }, { first = 60, floor = 15 }))
  end)

  it("counts a check that was cut as the time it was given", function()
    local cut = { 0.1, timed_out = true }
    assert.same({ 5, 10, 20, 40 }, handed(fresh(), { cut, cut, cut, { 1 } }, { first = 5 }))
  end)

  it("gives at most ceiling seconds, an hour by itself", function()
    local cut = { 0.1, timed_out = true }
    assert.same({ 5, 10, 12, 12 }, handed(fresh(), { cut, cut, cut, cut },
      { first = 5, ceiling = 12 }))
    assert.same({ 2000, 3600, 3600 }, handed(fresh(), { cut, cut, cut }, { first = 2000 }))
    assert.same({ 9000, 9000 }, handed(fresh(), { cut, cut }, { first = 9000 }))
    assert.same({ 0.5, 0.5 }, handed(fresh(), { cut, cut }, { first = 0.5, ceiling = 0.5 }))
  end)

  it("reads the checks of beats that failed, and those that stand in no beat", function()
    local s, given = fresh(), {}
    local verify = policy.verdict{ timeout = { first = 5 }, run = function(seconds)
      given[#given + 1] = seconds
      return { ok = false, timed_out = true }
    end }
    local down = knl.device{ llm = ports.script(function()
      return { fail = { kind = "auth" } }
    end):open() }
    verify(s)
    verify(s, knl.beat(s, down))
    verify(s, knl.beat(s, down))
    verify(s)
    assert.same({ 5, 10, 20, 40 }, given)
  end)

  it("goes by the newest check when all are older than the last beats", function()
    local s = fresh()
    handed(s, { { 10 }, { 3 } }, { first = 60 })
    for _ = 1, 10 do knl.beat(s, device) end
    assert.same({ 6 }, handed(s, { { 1 } }, { first = 60 }))
  end)

  it("forgets checks that lie eight beats back", function()
    local answers = { { 100 } }
    for i = 2, 10 do
      answers[i] = { 1 }
    end
    local given = handed(fresh(), answers, { first = 60 })
    assert.same({ 60, 200, 200, 2 }, { given[1], given[2], given[8], given[9] })
  end)

  it("records the seconds, measured by the clock unless told how", function()
    local s = fresh()
    policy.verdict{ timeout = { first = 60 }, run = function()
      std.time.sleep(0.02)
      return { ok = true }
    end }(s, knl.beat(s, device))
    local seconds = s:scan{ kinds = { "verify" } }[1].data.seconds
    assert.is_true(seconds >= 0.02 and seconds < 5)
  end)

  it("goes on from the log after a resume, and looks at its own kind alone", function()
    local s = fresh()
    handed(s, { { 10 } }, { first = 60 })
    local again = knl.resume{ session = s:id(), store = "mem" }
    assert.same({ 20 }, handed(again, { { 1 } }, { first = 60 }))
    local given
    policy.verdict{ kind = "lint", timeout = { first = 7 }, run = function(seconds)
      given = seconds
      return { ok = true }
    end }(again)
    assert.equal(7, given)
  end)

  it("reads records that others wrote by hand", function()
    local s = fresh()
    for _, seconds in ipairs{ "long", -5, true } do
      s:append{ kind = "verify", beat = "b", data = { seconds = seconds } }
    end
    assert.same({ 60 }, handed(s, { { 1 } }, { first = 60 }))
  end)

  it("raises on a measure that measures nothing, and raises what it raises", function()
    local function verdict(measure)
      return policy.verdict{ timeout = { first = 5, measure = measure },
        run = function() return { ok = true } end }
    end
    local s = fresh()
    for shown, n in pairs{ ["-1"] = -1, nan = 0 / 0, inf = 1 / 0, ["5"] = "5", ["true"] = true } do
      local verify = verdict(function() return n end)
      bad("policy.verdict: measure must answer seconds, a number >= 0, got " .. shown,
        function() verify(s) end)
    end
    local verify = verdict(function() end)
    bad("policy.verdict: measure must answer seconds, a number >= 0, got nil",
      function() verify(s) end)
    verify = verdict(function() error("no clock", 0) end)
    assert.equal("no clock", assert.has_error(function() verify(s) end))
  end)

  it("is checked by name, type and bound", function()
    local function run() return { ok = true } end
    for text, timeout in pairs{
      [": timeout must be a number or a table, got false"] = false,
      [": timeout must be a number or a table, got string"] = "60",
      [": timeout must be a number above 0, got 0"] = 0,
      [": timeout must be a number above 0, got -1"] = -1,
      [": timeout must be a finite number, got inf"] = 1 / 0,
      [" timeout: unknown option 'frist' (did you mean 'first'?)"] = { frist = 5 },
      [": timeout.first is required"] = {},
      [": timeout.first must be a number, got \"5\""] = { first = "5" },
      [": timeout.first must be a number above 0, got 0"] = { first = 0 },
      [": timeout.factor must be a number above 0, got -2"] = { first = 5, factor = -2 },
      [": timeout.factor must be a number, got false"] = { first = 5, factor = false },
      [": timeout.floor must be a number above 0, got 0"] = { first = 5, floor = 0 },
      [": timeout.ceiling must be a number above 0, got 0"] = { first = 5, ceiling = 0 },
      [": timeout.ceiling must be a number, got false"] = { first = 5, ceiling = false },
      [": timeout.ceiling must be at least first and floor, 5, got 4"] =
        { first = 5, ceiling = 4 },
      [": timeout.ceiling must be at least first and floor, 9, got 7"] =
        { first = 5, floor = 9, ceiling = 7 },
      [": timeout.first must be at most 2^53, got 1e+18"] = { first = 1e18 },
      [": timeout.measure must be a function, got number"] = { first = 5, measure = 5 },
      [": timeout.measure must be a function, got false"] = { first = 5, measure = false },
    } do
      bad("policy.verdict" .. text, function() policy.verdict{ run = run, timeout = timeout } end)
    end
  end)

  it("is frozen when the judge is made", function()
    local timeout, given = { first = 5 }, nil
    local verify = policy.verdict{ timeout = timeout, run = function(seconds)
      given = seconds
      return { ok = true }
    end }
    timeout.first = 99
    verify(fresh())
    assert.equal(5, given)
  end)
end)
