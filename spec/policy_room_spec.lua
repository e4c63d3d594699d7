-- policy.room: how the window of a model is divided.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

-- A port with this profile that counts n tokens for anything.
local function port(profile, n)
  return {
    profile = function() return profile end,
    count = function() return n end,
  }
end

local function room(opts)
  opts.port = opts.port or port{ context_window = 1000, max_output = 200 }
  return policy.room(opts)
end

describe("policy.room", function()
  it("gives a request the window less the longest reply", function()
    assert.equal(800, room{}:request())
    assert.equal(1000, room{ port = port{ context_window = 1000 } }:request())
  end)

  it("takes away what reserve asks beyond the longest reply, and no more", function()
    assert.equal(800, room{ reserve = 0 }:request())
    assert.equal(800, room{ reserve = 200 }:request())
    assert.equal(750, room{ reserve = 250 }:request())
    assert.equal(1, room{ reserve = 999 }:request())
  end)

  it("gives one result a quarter, or result_share, rounded down", function()
    assert.equal(200, room{}:result())
    assert.equal(266, room{ result_share = 1 / 3 }:result())
    assert.equal(800, room{ result_share = 1 }:result())
  end)

  it("caps a beat's results only when told to", function()
    assert.is_nil(room{}:beat())
    assert.equal(400, room{ beat_share = 0.5 }:beat())
  end)

  it("gives the reply max_output, or reserve when the profile has none", function()
    assert.equal(200, room{ reserve = 300 }:reply())
    assert.equal(300, room{ port = port{ context_window = 1000 }, reserve = 300 }:reply())
    assert.equal(0, room{ port = port{ context_window = 1000 } }:reply())
  end)

  it("says all of it at once", function()
    local r = room{ reserve = 300, result_share = 0.5, beat_share = 1, call_reserve = 5 }
    assert.same({ window = 1000, max_output = 200, reserve = 300, request = 700, result = 350,
      beat = 700, reply = 200 }, r:limits())
  end)

  it("counts by its port", function()
    assert.equal(7, room{ port = port({ context_window = 10 }, 7) }:count{ messages = {} })
    local script = ports.script{}
    local request = { messages = { { role = "user", content = ("word "):rep(50) } } }
    assert.equal(script:count(request), room{ port = script }:count(request))
  end)

  it("asks the port with its conf, which later changes do not reach", function()
    local script, conf = ports.script{}, { context_window = 5000, max_tokens = 1000 }
    local r = room{ port = script, conf = conf }
    conf.context_window = 9
    assert.equal(4000, r:request())
    local seen
    local fake = { profile = function(_, c) seen = c; return { context_window = 10 } end,
      count = function(_, _, c) seen = c; return 1 end }
    r = room{ port = fake, conf = { model = "m" } }
    r:request()
    assert.same({ model = "m" }, seen)
    seen = nil
    r:count{ messages = {} }
    assert.same({ model = "m" }, seen)
  end)

  it("reads the profile at every use", function()
    local profile = { context_window = 100 }
    local r = room{ port = port(profile) }
    assert.equal(100, r:request())
    profile.context_window = 300
    assert.equal(300, r:request())
  end)

  it("cannot be changed", function()
    local r = room{}
    assert.has_error(function() r.reserve = 5 end, "a room cannot be changed")
    assert.equal("room", tostring(r))
  end)

  it("serves window, tokens, result_cap, settle and thinking_cap", function()
    local r = room{ port = port({ context_window = 100 }, 3), conf = { thinking = true },
      reserve = 50, call_reserve = 10 }
    assert.equal(3, policy.tokens{ room = r }({ messages = {} }))
    assert.equal(6, policy.settle{ room = r }({ messages = {} }, { content = {} }))
    local bound = policy.thinking_cap{ room = r }({ messages = {} })
    assert.equal(40, bound.params.thinking.budget_tokens)
    assert.equal("x", policy.result_cap{ room = r }({ t = { handler = function() return "x" end } })
      .t.handler({}))
    local fold = policy.window{ room = r }
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "hi" } }
    assert.equal(1, #fold(s:events(), knl.device{}).messages)
  end)
end)

describe("what policy.room cannot use", function()
  it("is named with what to declare", function()
    for text, profile in pairs{
      ["port:profile() must answer a table, got nil"] = false,
      ["context_window must be a whole number >= 1, got nil: declare context_window in conf"] = {},
      ["context_window must be a whole number >= 1, got 0"] = { context_window = 0 },
      ["context_window must be a whole number >= 1, got 1.5"] = { context_window = 1.5 },
      ['context_window must be a whole number >= 1, got "1000"'] = { context_window = "1000" },
      ["context_window must be a whole number >= 1, got nan"] = { context_window = 0 / 0 },
      ["context_window must be a whole number >= 1, got inf"] = { context_window = 1 / 0 },
      ["max_output must be a whole number >= 0, got -1: declare max_tokens in conf"] =
        { context_window = 10, max_output = -1 },
      ["max_output must be a whole number >= 0, got 2.5"] =
        { context_window = 10, max_output = 2.5 },
      ["max_output must be a whole number >= 0, got false"] =
        { context_window = 10, max_output = false },
      ["max_output 10 leaves no room in a context_window of 10"] =
        { context_window = 10, max_output = 10 },
    } do
      local r = room{ port = port(profile or nil) }
      bad("policy.room: ", function() r:request() end)
      bad(text, function() r:limits() end)
    end
  end)

  it("is a reserve as large as the window", function()
    local r = room{ reserve = 1000 }
    bad("policy.room: reserve 1000 leaves no room in a context_window of 1000: reserve less",
      function() r:result() end)
  end)

  it("is a count that is none", function()
    for shown, n in pairs{ ["-1"] = -1, ["1.5"] = 1.5, ["nan"] = 0 / 0, inf = 1 / 0,
      ['"7"'] = "7", ["true"] = true } do
      local r = room{ port = port({ context_window = 10 }, n) }
      bad("policy.room: port:count() must answer a whole number >= 0, got " .. shown,
        function() r:count{ messages = {} } end)
    end
    local r = room{ port = port({ context_window = 10 }) }
    bad("port:count() must answer a whole number >= 0, got nil",
      function() r:count{ messages = {} } end)
  end)

  it("raises what the port raises", function()
    local r = room{ port = { profile = function() error("no network", 0) end,
      count = function() error("no words", 0) end } }
    assert.equal("no network", assert.has_error(function() r:request() end))
    assert.equal("no words", assert.has_error(function() r:count{} end))
  end)
end)

describe("the options of policy.room", function()
  it("need a port", function()
    local form = "{ port, conf?, reserve?, result_share?, beat_share?, call_reserve? }"
    bad(("policy.room: opts must be a table %s, got nil"):format(form),
      function() policy.room() end)
    bad(("policy.room: opts must be a table %s, got number"):format(form),
      function() policy.room(5) end)
    bad("policy.room: port is required", function() policy.room{} end)
    bad("policy.room: port must be a port, got boolean", function() policy.room{ port = false } end)
    bad("policy.room: port must be a port, got string", function() policy.room{ port = "x" } end)
    bad("policy.room: port must be a port, got a table without count",
      function() policy.room{ port = { profile = function() end } } end)
    bad("policy.room: port must be a port, got a table without profile",
      function() policy.room{ port = { count = function() end, profile = 5 } } end)
    bad("policy.room: port must be a port, got a userdata without count",
      function() policy.room{ port = knl.open{ store = "mem" } } end)
  end)

  it("are checked by name, type and bound", function()
    local p = port{ context_window = 10 }
    for text, opts in pairs{
      ["unknown option 'resrve' (did you mean 'reserve'?)"] = { port = p, resrve = 1 },
      ["unknown option 'room'"] = { port = p, room = {} },
      ["unknown option 'session' (a room serves any session)"] = { port = p, session = 1 },
      ["conf must be a table, got string"] = { port = p, conf = "m" },
      ["conf must be a table, got false"] = { port = p, conf = false },
      ["reserve must be a whole number >= 0, got -1"] = { port = p, reserve = -1 },
      ["reserve must be a whole number >= 0, got 1.5"] = { port = p, reserve = 1.5 },
      ["reserve must be a whole number >= 0, got false"] = { port = p, reserve = false },
      ["result_share must be a number, got \"1\""] = { port = p, result_share = "1" },
      ["result_share must be a number above 0 and at most 1, got 0"] =
        { port = p, result_share = 0 },
      ["result_share must be a number above 0 and at most 1, got 1.5"] =
        { port = p, result_share = 1.5 },
      ["beat_share must be a number above 0 and at most 1, got -1"] = { port = p, beat_share = -1 },
      ["beat_share must be a number, got false"] = { port = p, beat_share = false },
      ["call_reserve must be a whole number >= 0, got -2"] = { port = p, call_reserve = -2 },
    } do
      bad("policy.room: " .. text, function() policy.room(opts) end)
    end
  end)
end)

describe("a policy that takes a room", function()
  it("takes no port beside it, nor what the room has its own of", function()
    local r = room{}
    for text, opts in pairs{
      ["room and port both given, want one"] = { room = r, port = port{ context_window = 1 } },
      ["room and conf both given, want one: a room has its own conf"] = { room = r, conf = {} },
    } do
      bad("policy.tokens: " .. text, function() policy.tokens(opts) end)
      bad("policy.settle: " .. text, function() policy.settle(opts) end)
      bad("policy.result_cap: " .. text, function() policy.result_cap(opts) end)
      bad("policy.thinking_cap: " .. text, function() policy.thinking_cap(opts) end)
    end
  end)

  it("takes only what policy.room made", function()
    local twin = { request = function() return 5 end, count = function() return 1 end }
    bad("policy.tokens: room must be a value of policy.room, got table",
      function() policy.tokens{ room = twin } end)
    bad("policy.tokens: room must be a value of policy.room, got boolean",
      function() policy.tokens{ room = false } end)
    bad("policy.tokens: room must be a value of policy.room, got table",
      function() policy.tokens{ room = setmetatable({}, { __index = room{} }) } end)
  end)

  it("needs one of the two", function()
    bad("policy.tokens: port or room is required, got neither", function() policy.tokens{} end)
    bad("policy.result_cap: port or room is required", function() policy.result_cap{} end)
    bad("policy.thinking_cap: port or room is required", function() policy.thinking_cap{} end)
    bad("policy.settle: port or room is required", function() policy.settle{ conf = {} } end)
  end)
end)
