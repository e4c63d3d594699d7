-- policy.beat_cap: a named stop after a number of beats.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local device = knl.device{ llm = ports.script(function() return { text = "hi" } end):open() }

describe("policy.beat_cap", function()
  it("stops a loop after max beats", function()
    local s, full, n = knl.open{ store = "mem" }, policy.beat_cap{ max = 3 }, 0
    while not full(s) and n < 10 do
      knl.beat(s, device)
      n = n + 1
    end
    assert.equal(3, n)
    assert.equal("beat_cap", full(s))
  end)

  it("says nothing below, and the same each time it is asked", function()
    local s, full = knl.open{ store = "mem" }, policy.beat_cap{ max = 1 }
    assert.is_nil(full(s))
    assert.is_nil(full(s))
    knl.beat(s, device)
    knl.beat(s, device)
    assert.equal("beat_cap", full(s))
    assert.equal("beat_cap", policy.beat_cap{ max = 2 }(s))
    assert.is_nil(policy.beat_cap{ max = 3 }(s))
  end)

  it("counts beats that failed", function()
    local s = knl.open{ store = "mem" }
    knl.beat(s, knl.device{ llm = ports.script{ { fail = { kind = "server" } } }:open() })
    assert.equal("beat_cap", policy.beat_cap{ max = 1 }(s))
  end)

  it("does not count what a budget stopped before its call", function()
    local s = knl.open{ store = "mem", budget = { amount = 0 } }
    assert.equal("stopped", knl.beat(s, device).status)
    assert.is_nil(policy.beat_cap{ max = 1 }(s))
  end)

  it("goes on counting after a resume, and beside another process", function()
    local s, full = knl.open{ store = "mem" }, policy.beat_cap{ max = 2 }
    knl.beat(s, device)
    local again = knl.resume{ session = s:id(), store = "mem" }
    assert.is_nil(full(again))
    knl.beat(again, device)
    assert.equal("beat_cap", full(again))
    assert.equal("beat_cap", full(knl.attach{ session = s:id(), store = "mem" }))
  end)

  it("wants a session", function()
    bad("policy.beat_cap: session must be a session, got string", function() policy.beat_cap{ max = 1 }("x") end)
    local full = policy.beat_cap{ max = 2 }
    bad("policy.beat_cap: session must be a session, got nil", function() full() end)
    bad("policy.beat_cap: session must be a session, got table", function() full{} end)
    bad("policy.beat_cap: session must be a session, got userdata", function() full(device) end)
  end)
end)

describe("the options of policy.beat_cap", function()
  it("are checked by name, type and bound", function()
    for text, opts in pairs{
      ["unknown option 'mac' (did you mean 'max'?)"] = { max = 1, mac = 2 },
      ["unknown option 'session' (the session is the argument of the predicate)"] =
        { max = 1, session = 1 },
      ["max is required — beats that the session may have"] = {},
      ["max must be a whole number >= 1, got 0"] = { max = 0 },
      ["max must be a whole number >= 1, got 2.5"] = { max = 2.5 },
      ["max must be a whole number >= 1, got \"3\""] = { max = "3" },
      ["max must be a whole number >= 1, got false"] = { max = false },
      ["max must be a whole number >= 1, got inf"] = { max = 1 / 0 },
    } do
      bad("policy.beat_cap: " .. text, function() policy.beat_cap(opts) end)
    end
    bad("policy.beat_cap: opts must be a table { max }, got nil", function() policy.beat_cap() end)
    bad("policy.beat_cap: opts must be a table { max }, got number",
      function() policy.beat_cap(5) end)
  end)
end)
