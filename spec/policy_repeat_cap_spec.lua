-- policy.repeat_cap: the same call does not run over and over.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

-- Plays beats whose calls are given, each { "tool", args }, on a session; answers
-- the results of all its calls in order.
local function play(s, opts, beats, more)
  local ran = {}
  local function tool(name, extra)
    local entry = { handler = function(args)
      ran[#ran + 1] = name
      if args.fail then
        error("it broke", 0)
      end
      return args.say or name
    end }
    for key, value in pairs(extra or {}) do
      entry[key] = value
    end
    return entry
  end
  local mine = { read = tool("read", more), write = tool("write"), sh = tool("sh") }
  local tools = policy.repeat_cap(opts)(s)(mine)
  local device = knl.device{ tools = tools, llm = ports.script(function(_, ctx)
    return beats[ctx.call + 1]
  end):open() }
  for _ = 1, #beats do
    knl.beat(s, device)
  end
  local results = {}
  for i, event in ipairs((s:scan{ kinds = { "tool_result" } })) do
    local r = event.data.result
    results[i] = type(r) == "table" and r.reason or r
  end
  return table.concat(results, " "), ran
end

local function fresh()
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  return s
end

local function calls(...)
  return { calls = { ... } }
end

local A, B = { "read", { path = "a" } }, { "read", { path = "b" } }

describe("policy.repeat_cap", function()
  it("runs the same call max times and answers the next without running it", function()
    local said, ran = play(fresh(), { max = 2 }, { calls(A), calls(A), calls(A), calls(A) })
    assert.equal("read read repeated repeated", said)
    assert.equal(2, #ran)
  end)

  it("runs it twice when nobody says how often", function()
    assert.equal("read read repeated", (play(fresh(), nil, { calls(A), calls(A), calls(A) })))
    assert.equal("read repeated", (play(fresh(), { max = 1 }, { calls(A), calls(A) })))
  end)

  it("says how often and what the limit is", function()
    local s = fresh()
    play(s, { max = 1 }, { calls(A), calls(A), calls(A) })
    local rows = s:scan{ kinds = { "tool_result" } }
    local said = rows[3].data.result
    assert.same({ ok = false, reason = "repeated", times = 3, max = 1, error = said.error }, said)
    assert.matches("this call of read was made 3 times with the same arguments, 1 is the limit",
      said.error)
  end)

  it("tells calls apart by tool and arguments, whatever their order", function()
    local one = { "read", { path = "a", n = 1, list = { 1, 2 } } }
    local same = { "read", { list = { 1, 2 }, n = 1, path = "a" } }
    local text = { "read", { path = "a", n = "1", list = { 1, 2 } } }
    assert.equal("read repeated", (play(fresh(), { max = 1 }, { calls(one), calls(same) })))
    assert.equal("read read", (play(fresh(), { max = 1 }, { calls(one), calls(text) })))
    local deep = { "read", { path = "a", n = 1, list = { 1, 3 } } }
    assert.equal("read read", (play(fresh(), { max = 1 }, { calls(one), calls(deep) })))
    local more = { "read", { path = "a", n = 1, list = { 1, 2 }, all = true } }
    assert.equal("read read read",
      (play(fresh(), { max = 1 }, { calls(more), calls(one), calls(deep) })))
    local sh = { "sh", { path = "a" } }
    assert.equal("read sh", (play(fresh(), { max = 1 }, { calls(A), calls(sh) })))
    assert.equal("read read repeated",
      (play(fresh(), { max = 1 }, { calls(A), calls(B), calls(A) })))
  end)

  it("counts within one reply", function()
    assert.equal("read read repeated", (play(fresh(), { max = 2 }, { calls(A, A, A) })))
  end)

  it("counts calls that run beside each other in their order", function()
    local said = play(fresh(), { max = 2 }, { calls(A, A, A, B) }, { parallel = true })
    assert.equal("read read repeated read", said)
  end)

  it("counts a call that failed, for it ran", function()
    local said = play(fresh(), { max = 1 }, { calls{ "read", { fail = true } },
      calls{ "read", { fail = true } } })
    assert.matches("it broke repeated$", said)
  end)

  it("begins anew with the success of a tool in resets", function()
    local beats = { calls(A), calls{ "write", {} }, calls(A), calls(A) }
    assert.equal("read write read repeated",
      (play(fresh(), { max = 1, resets = { "write" } }, beats)))
    assert.equal("read write repeated repeated", (play(fresh(), { max = 1 }, beats)))
    assert.equal("read write repeated repeated",
      (play(fresh(), { max = 1, resets = { "sh" } }, beats)))
  end)

  it("does not begin anew with a call of it that failed or refused", function()
    local raised = { calls(A), calls{ "write", { fail = true } }, calls(A) }
    assert.matches("repeated$", (play(fresh(), { max = 1, resets = { "write" } }, raised)))
    local no = { "write", { say = { ok = false, reason = "no" } } }
    local refused = { calls(A), calls(no), calls(A) }
    assert.equal("read no repeated", (play(fresh(), { max = 1, resets = { "write" } }, refused)))
  end)

  it("does not count what never ran", function()
    local cut = { truncated = true, calls = { A } }
    local said = play(fresh(), { max = 1 }, { cut, calls(A), calls(A) })
    assert.matches("cut by the output limit.* read repeated$", said)
  end)

  it("looks back over within beats", function()
    local beats = { calls(A), calls(B), calls(A) }
    assert.equal("read read repeated", (play(fresh(), { max = 1, within = 3 }, beats)))
    assert.equal("read read read", (play(fresh(), { max = 1, within = 2 }, beats)))
  end)

  it("goes on counting after a resume", function()
    local s = fresh()
    play(s, { max = 2 }, { calls(A), calls(A) })
    local again = knl.resume{ session = s:id(), store = "mem" }
    local beats = { calls(A), calls(A), calls(A) }
    local ran = 0
    local tools = policy.repeat_cap{ max = 2 }(again)({
      read = { handler = function() ran = ran + 1 end },
    })
    knl.beat(again, knl.device{ tools = tools, llm = ports.script(beats):open() })
    assert.equal(0, ran)
    assert.equal(3, again:scan{ kinds = { "tool_result" } }[3].data.result.times)
  end)

  it("stands two processes on one session to one answer", function()
    local s = fresh()
    play(s, { max = 1 }, { calls(A) })
    local other = knl.attach{ session = s:id(), store = "mem" }
    local args = { path = "a" }
    for _, session in ipairs{ s, other } do
      local tools = policy.repeat_cap{ max = 1 }(session)({ read = { handler = print } })
      assert.equal("repeated", tools.read.handler(args, { call_id = "new" }).reason)
    end
  end)

  it("does not count a call again that was run again", function()
    local s = fresh()
    s:append{ kind = "tool_call", beat = "b",
      data = { call_id = "c", name = "read", args = { path = "a" } } }
    s:append{ kind = "tool_result", beat = "b", data = { call_id = "c", ok = true, result = "r" } }
    local tools = policy.repeat_cap{ max = 1 }(s)({
      read = { handler = function() return "ran" end },
    })
    assert.equal("ran", tools.read.handler({ path = "a" }, { call_id = "c" }))
    assert.equal("repeated", tools.read.handler({ path = "a" }, { call_id = "d" }).reason)
  end)

  it("counts a call once that was interrupted and run again", function()
    local s = fresh()
    for _, mark in ipairs{ "interrupted", "rerun" } do
      s:append{ kind = "tool_call", beat = "b",
        data = { call_id = "c", name = "read", args = { path = "a" } } }
      s:append{ kind = "tool_result", beat = "b",
        data = { call_id = "c", ok = mark == "rerun", result = "r", [mark] = true } }
    end
    local tools = policy.repeat_cap{ max = 1 }(s)({ read = { handler = print } })
    assert.equal(2, tools.read.handler({ path = "a" }, { call_id = "d" }).times)
  end)

  it("reads logs that others wrote by hand", function()
    local s = fresh()
    s:append{ kind = "tool_result", beat = "b", data = { ok = true, result = "orphan" } }
    s:append{ kind = "tool_call", beat = "b", data = {} }
    s:append{ kind = "tool_call", beat = "b", data = { call_id = 5, name = 7, args = "text" } }
    local said = play(s, { max = 1 }, { calls(A), calls(A) })
    assert.equal("orphan read repeated", said)
  end)
end)

describe("what policy.repeat_cap is bound to", function()
  it("is a session and then tools", function()
    local cap = policy.repeat_cap{}
    bad("policy.repeat_cap: session must be a session, got nil", function() cap() end)
    bad("policy.repeat_cap: session must be a session, got table",
      function() cap{ read = { handler = print } } end)
    local bound = cap(fresh())
    bad("policy.repeat_cap: tools must be a map from name to entry, got nil",
      function() bound() end)
    bad('policy.repeat_cap: tool "read" has no handler, want a function, got nil',
      function() bound{ read = {} } end)
  end)
end)

describe("the options of policy.repeat_cap", function()
  it("are checked by name, type and bound", function()
    for text, opts in pairs{
      ["unknown option 'mx' (did you mean 'max'?)"] = { mx = 2 },
      ["unknown option 'session' (the session is an argument: "
        .. "policy.repeat_cap{ … }(session)(tools))"] = { session = fresh() },
      ["max must be a whole number >= 1, got 0"] = { max = 0 },
      ["max must be a whole number >= 1, got 1.5"] = { max = 1.5 },
      ["max must be a whole number >= 1, got \"2\""] = { max = "2" },
      ["max must be a whole number >= 1, got false"] = { max = false },
      ["max must be a whole number >= 1, got nan"] = { max = 0 / 0 },
      ["resets must be a list, got string"] = { resets = "write" },
      ["resets must be a list, got false"] = { resets = false },
      ['resets must be a list, got a table with the key "write"'] = { resets = { write = true } },
      ["resets[2] must be a non-empty string, got number"] = { resets = { "a", 5 } },
      ['resets[1] must be a non-empty string, got ""'] = { resets = { "" } },
      ["within must be a whole number >= 1, got 0"] = { within = 0 },
      ["within must be a whole number >= 1, got false"] = { within = false },
    } do
      bad("policy.repeat_cap: " .. text, function() policy.repeat_cap(opts) end)
    end
    bad("policy.repeat_cap: opts must be a table { max?, resets?, within? }, got boolean",
      function() policy.repeat_cap(false) end)
    bad("policy.repeat_cap: opts must be a table { max?, resets?, within? }, got userdata",
      function() policy.repeat_cap(fresh()) end)
  end)
end)
