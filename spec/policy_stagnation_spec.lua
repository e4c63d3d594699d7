-- policy.stagnation: whether the beats of a session go in circles.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function call(beat, id, name, args)
  return { kind = "tool_call", beat = beat,
    data = { call_id = id, name = name, args = args or {} } }
end

local function result(beat, id, value)
  return { kind = "tool_result", beat = beat, data = { call_id = id, ok = true, result = value } }
end

local function said(beat, ...)
  return { kind = "llm_response", beat = beat, data = { content = { ... } } }
end

local function text(t) return { type = "text", text = t } end

-- A session whose i-th beat makes the i-th of some calls.
local function calling(...)
  local s = knl.open{ store = "mem" }
  for i, args in ipairs{ ... } do
    s:append(call("b" .. i, "c" .. i, "look", args))
    s:append(result("b" .. i, "c" .. i, "seen " .. i))
  end
  return s
end

-- A session whose i-th beat says the i-th list of blocks.
local function saying(...)
  local s = knl.open{ store = "mem" }
  for i, blocks in ipairs{ ... } do
    s:append(said("b" .. i, unpack(blocks)))
  end
  return s
end

local a, b, c = { n = 1 }, { n = 2 }, { n = 3 }

describe("policy.stagnation", function()
  it("says repeated when the last 3 beats ask for the same", function()
    local stuck = policy.stagnation()
    assert.equal("repeated", stuck(calling(b, a, a, a)))
    assert.is_nil(stuck(calling(a, a)))
    assert.is_nil(stuck(calling(a, a, b)))
    assert.is_nil(stuck(calling(a, a, a, b)))
  end)

  it("looks at as many as same says", function()
    assert.equal("repeated", policy.stagnation{ same = 2 }(calling(b, a, a)))
    assert.is_nil(policy.stagnation{ same = 4 }(calling(b, a, a, a)))
  end)

  it("tells arguments apart by value and type, not by the order of keys", function()
    local stuck = policy.stagnation{ same = 2 }
    assert.is_nil(stuck(calling({ n = 1 }, { n = "1" })))
    assert.is_nil(stuck(calling({ n = {} }, { n = knl.array() })))
    assert.is_nil(stuck(calling({ n = knl.null }, {})))
    assert.is_nil(stuck(calling({ n = true }, { n = "true" })))
    assert.equal("repeated",
      stuck(calling({ x = 1, y = { z = 1, a = 2 } }, { y = { a = 2, z = 1 }, x = 1 })))
  end)

  it("counts levels below depth as equal", function()
    local function nested(n, v)
      for _ = 1, n do v = { v = v } end
      return v
    end
    assert.is_nil(policy.stagnation{ same = 2 }(calling(nested(8, 1), nested(8, 2))))
    assert.equal("repeated", policy.stagnation{ same = 2 }(calling(nested(9, 1), nested(9, 2))))
    assert.equal("repeated",
      policy.stagnation{ same = 2, depth = 1 }(calling(nested(2, 1), nested(2, 2))))
    assert.is_nil(policy.stagnation{ same = 2, depth = 1 }(calling(nested(1, 1), nested(1, 2))))
  end)

  it("takes the names and the order of several calls into account", function()
    local function two(first, second)
      local s = knl.open{ store = "mem" }
      for i = 1, 2 do
        s:append(call("b" .. i, "x" .. i, i == 1 and first or second))
        s:append(call("b" .. i, "y" .. i, i == 1 and second or first))
      end
      return s
    end
    local stuck = policy.stagnation{ same = 2 }
    assert.is_nil(stuck(two("look", "find")))
    assert.equal("repeated", stuck(two("look", "look")))
  end)

  it("finds no repetition in beats without a call", function()
    assert.is_nil(policy.stagnation{ same = 2 }(saying({ text("again") }, { text("again") },
      { text("again") })))
  end)

  it("lets results count when it is told to", function()
    assert.equal("repeated", policy.stagnation()(calling(a, a, a)))
    assert.is_nil(policy.stagnation{ results = true }(calling(a, a, a)))
    local s = knl.open{ store = "mem" }
    for i = 1, 3 do
      s:append(call("b" .. i, "c", "look", a))
      s:append(result("b" .. i, "c", "pending"))
    end
    assert.equal("repeated", policy.stagnation{ results = true }(s))
  end)

  it("finds cycles of up to period beats, gone through same times", function()
    local cycle = calling(c, a, b, a, b)
    assert.is_nil(policy.stagnation{ same = 2 }(cycle))
    assert.equal("repeated", policy.stagnation{ same = 2, period = 2 }(cycle))
    assert.is_nil(policy.stagnation{ same = 3, period = 2 }(cycle))
    assert.equal("repeated", policy.stagnation{ same = 3, period = 2 }(calling(a, b, a, b, a, b)))
    assert.equal("repeated",
      policy.stagnation{ same = 2, period = 4 }(calling(a, b, a, c, a, b, a, c)))
    assert.equal("repeated", policy.stagnation{ same = 2, period = 4 }(calling(b, a, a)))
    assert.is_nil(policy.stagnation{ same = 2, period = 3 }(calling(a, b, a, c, a, b, a, c)))
  end)

  it("says no_progress when the last 2 beats wrote nothing that can be seen", function()
    local stuck = policy.stagnation()
    assert.equal("no_progress", stuck(saying({ text("hi") }, {}, { text(" \n\t") })))
    assert.equal("no_progress", stuck(saying({ { type = "thinking", thinking = "hm" } }, {})))
    assert.is_nil(stuck(saying({}, { text("x") })))
    assert.is_nil(stuck(saying({ text("x") }, {})))
    assert.is_nil(stuck(saying({})))
    assert.is_nil(stuck(saying({}, { { type = "tool_use", id = "1", name = "t", input = {} } })))
    assert.equal("no_progress", policy.stagnation{ no_progress = 1 }(saying({ text("x") }, {})))
    assert.is_nil(policy.stagnation{ no_progress = 3 }(saying({}, {})))
  end)

  it("takes a call that failed for no progress", function()
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "go" } }
    local device = knl.device{ llm = ports.script{ { fail = { kind = "server" } },
      { fail = { kind = "server" } } }:open() }
    knl.beat(s, device)
    assert.is_nil(policy.stagnation()(s))
    knl.beat(s, device)
    assert.equal("no_progress", policy.stagnation()(s))
  end)

  it("asks for repetition first", function()
    local s = calling(a, a)
    assert.equal("repeated",
      policy.stagnation{ same = 2, no_progress = 1, signature = function() return "x" end }(s))
  end)

  it("answers nil for a log that is empty, damaged or cut short", function()
    local stuck = policy.stagnation{ same = 2, no_progress = 2 }
    assert.is_nil(stuck(knl.open{ store = "mem" }))
    local s = knl.open{ store = "mem" }
    s:append{ kind = "tool_call", beat = "a" }
    s:append{ kind = "tool_call", beat = "b", data = { name = 5 } }
    assert.is_nil(stuck(s))
    s:append{ kind = "llm_response", beat = "c", data = { content = 5 } }
    s:append{ kind = "llm_response", beat = "d",
      data = { content = { 5, { type = "text" }, "x" } } }
    assert.equal("no_progress", stuck(s))
  end)

  it("groups the events of two drivers by their beats", function()
    local s = knl.open{ store = "mem" }
    for _, id in ipairs{ "a", "b", "a", "b" } do
      s:append(call(id, "1", "look", { n = id }))
    end
    assert.is_nil(policy.stagnation{ same = 2 }(s))
    s = knl.open{ store = "mem" }
    for _, id in ipairs{ "a", "b", "a", "b" } do
      s:append(call(id, "1", "look"))
    end
    assert.equal("repeated", policy.stagnation{ same = 2 }(s))
  end)

  it("counts on after a resume, and for every reader alike", function()
    local s, stuck = calling(a, a), policy.stagnation()
    assert.is_nil(stuck(s))
    s = knl.resume{ session = s:id(), store = "mem" }
    s:append(call("b3", "c3", "look", a))
    assert.equal("repeated", stuck(s))
    assert.equal("repeated", stuck(knl.attach{ session = s:id(), store = "mem" }))
    assert.equal("repeated", stuck(s), "asking changes nothing")
  end)

  it("does not take a call that was run again for another one", function()
    local s = knl.open{ store = "mem" }
    local seen = {
      id = "b", events = {
        call("b", "1", "look", a), result("b", "1", "x"),
        { kind = "tool_call", beat = "b",
          data = { call_id = "1", name = "look", args = a, rerun = true } },
      },
    }
    local fake = { beats = function() return { seen,
      { id = "c", events = { call("c", "2", "look", a) } } } end }
    assert.equal("repeated", policy.stagnation{ same = 2 }(fake))
    assert.equal(1, s:len())
  end)
end)

describe("a signature", function()
  it("stands for a beat", function()
    local s = calling(a, b)
    assert.equal("repeated",
      policy.stagnation{ same = 2, signature = function() return "same" end }(s))
    assert.is_nil(policy.stagnation{ same = 2, signature = function(beat) return beat.id end }(s))
    assert.is_nil(policy.stagnation{ same = 2, signature = function() end }(s))
  end)

  it("is handed the beat record", function()
    local seen
    policy.stagnation{ same = 2, signature = function(beat) seen = beat end }(calling(a, b))
    assert.equal("b2", seen.id)
    assert.equal(2, #seen.events)
  end)

  it("raises what it raises, and an answer that is none", function()
    local s = calling(a, b, c)
    local function asked(signature)
      return policy.stagnation{ signature = signature }(s)
    end
    assert.has_error(function() asked(function() error("broken") end) end, "broken")
    for _, answer in ipairs{ 5, true, {} } do
      assert.has_error(function() asked(function() return answer end) end,
        "policy%.stagnation: signature must answer a string or nil, got " .. type(answer))
    end
  end)
end)

describe("the options of policy.stagnation", function()
  local function refuses(opts, why)
    assert.errors_at_line(function() policy.stagnation(opts) end, 0, "policy.stagnation: " .. why)
  end

  it("are a table, or nothing", function()
    for _, opts in ipairs{ 5, "x", true, false } do
      refuses(opts, "opts must be a table { same?, no_progress?, signature?, results?, period?, "
        .. "depth? }, got " .. type(opts))
    end
  end)

  it("are known by name and hold no session", function()
    refuses({ sam = 2 }, "unknown option 'sam' (did you mean 'same'?)")
    refuses({ session = calling() },
      "unknown option 'session' (the session is the argument of the predicate)")
    refuses({ store = "mem" },
      "unknown option 'store' (a policy holds no state: it belongs to knl.open)")
  end)

  it("are whole and above their floors", function()
    for name, least in pairs{ same = 2, no_progress = 1, depth = 1 } do
      for shown, v in pairs{ [tostring(least - 1)] = least - 1, ["2.5"] = 2.5, ['"3"'] = "3",
        ["false"] = false, nan = 0 / 0 } do
        refuses({ [name] = v },
          ("%s must be a whole number >= %d, got %s"):format(name, least, shown))
      end
    end
    for shown, v in pairs{ ["0"] = 0, ["5"] = 5, ["1.5"] = 1.5, ["false"] = false } do
      refuses({ period = v }, "period must be a whole number from 1 to 4, got " .. shown)
    end
  end)

  it("have a callable signature and results that is true or false", function()
    for _, v in ipairs{ 5, "x", { 1 } } do
      refuses({ signature = v }, "signature must be a function, got " .. type(v))
    end
    refuses({ signature = false }, "signature must be a function, got false")
    refuses({ results = 1 }, "results must be true or false, got 1")
  end)

  it("are followed by a session", function()
    local stuck = policy.stagnation()
    for name, v in pairs{ ["nil"] = false, table = {}, string = "x" } do
      assert.errors_at_line(function() stuck(v or nil) end, 0,
        "policy.stagnation: session must be a session, got " .. name)
    end
  end)
end)
