-- policy.deadline: a named stop some time after a session began.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

-- Lets the clock show so many seconds after the first event of s.
local function later(s, seconds)
  local began = s:events()[1].epoch_ms / 1000
  stub(std.time, "now", function() return began + seconds end)
end

describe("policy.deadline", function()
  it("says deadline once the seconds have passed since the session began", function()
    local s, late = knl.open{ store = "mem" }, policy.deadline{ seconds = 60 }
    assert.is_nil(late(s))
    later(s, 59.9)
    assert.is_nil(late(s))
    later(s, 60)
    assert.equal("deadline", late(s))
    later(s, 1e6)
    assert.equal("deadline", late(s))
  end)

  it("goes by the real clock", function()
    local s, late = knl.open{ store = "mem" }, policy.deadline{ seconds = 0.02 }
    assert.is_nil(policy.deadline{ seconds = 3600 }(s))
    std.time.sleep(0.03)
    assert.equal("deadline", late(s))
  end)

  it("ends a loop", function()
    local s, late, n = knl.open{ store = "mem" }, policy.deadline{ seconds = 10 }, 0
    local device = knl.device{ llm = ports.script(function() return { text = "hi" } end):open() }
    while not late(s) do
      knl.beat(s, device)
      n = n + 1
      later(s, 4 * n)
    end
    assert.equal(3, n)
  end)

  it("gives a resumed session no more time", function()
    local s = knl.open{ store = "mem" }
    local again = knl.resume{ session = s:id(), store = "mem" }
    later(s, 60)
    assert.equal("deadline", policy.deadline{ seconds = 60 }(again))
    assert.equal("deadline",
      policy.deadline{ seconds = 60 }(knl.attach{ session = s:id(), store = "mem" }))
    assert.is_nil(policy.deadline{ seconds = 61 }(again))
  end)

  it("wants a session", function()
    local late = policy.deadline{ seconds = 5 }
    bad("policy.deadline: session must be a session, got nil", function() late() end)
    bad("policy.deadline: session must be a session, got string", function() late("s") end)
  end)
end)

describe("the options of policy.deadline", function()
  it("are checked by name, type and bound", function()
    for text, opts in pairs{
      ["unknown option 'second' (did you mean 'seconds'?)"] = { seconds = 1, second = 2 },
      ["unknown option 'session' (the session is the argument of the predicate)"] =
        { seconds = 1, session = 1 },
      ["seconds is required — seconds that the session may take"] = {},
      ["seconds must be a number above 0, got 0"] = { seconds = 0 },
      ["seconds must be a number above 0, got -1"] = { seconds = -1 },
      ["seconds must be a number, got \"60\""] = { seconds = "60" },
      ["seconds must be a number, got false"] = { seconds = false },
      ["seconds must be a finite number, got inf"] = { seconds = 1 / 0 },
      ["seconds must be a finite number, got nan"] = { seconds = 0 / 0 },
    } do
      bad("policy.deadline: " .. text, function() policy.deadline(opts) end)
    end
    bad("policy.deadline: opts must be a table { seconds }, got nil",
      function() policy.deadline() end)
    bad("policy.deadline: opts must be a table { seconds }, got number",
      function() policy.deadline(60) end)
  end)
end)
