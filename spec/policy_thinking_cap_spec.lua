-- policy.thinking_cap: thought that leaves room for the reply.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

-- A port whose replies take 1000 tokens at most.
local function port(profile)
  return {
    profile = function() return profile or { context_window = 5000, max_output = 1000 } end,
    count = function() return 1 end,
  }
end

local function cap(opts)
  opts.port, opts.conf = opts.port or port(), opts.conf or { thinking = true }
  opts.call_reserve = opts.call_reserve or 200
  return policy.thinking_cap(opts)
end

local function budget(filter, params)
  return filter({ messages = {}, params = params }).params.thinking.budget_tokens
end

describe("policy.thinking_cap", function()
  it("leaves call_reserve of the reply", function()
    assert.equal(800, budget(cap{}))
    assert.equal(1000, budget(cap{ call_reserve = 0 }))
    assert.equal(1, budget(cap{ call_reserve = 999 }))
  end)

  it("takes the least of the budgets that are asked", function()
    assert.equal(300, budget(cap{ budget = 300 }))
    assert.equal(800, budget(cap{ budget = 3000 }))
    assert.equal(250, budget(cap{ conf = { thinking = { budget_tokens = 250 } } }))
    assert.equal(90, budget(cap{ budget = 300 }, { thinking = { budget_tokens = 90 } }))
    assert.equal(300, budget(cap{ budget = 300 }, { thinking = { budget_tokens = 900 } }))
    assert.equal(300, budget(cap{ budget = 300 }, { thinking = true }))
  end)

  it("heeds a beat with a shorter reply", function()
    assert.equal(100, budget(cap{}, { max_tokens = 300 }))
    assert.equal(800, budget(cap{}, { max_tokens = 9000 }))
  end)

  it("leaves a beat alone that does not think", function()
    local request = { messages = {}, params = { thinking = false } }
    assert.equal(request, cap{}(request))
  end)

  it("rebuilds the request and keeps what else is in it", function()
    local request = { messages = { "m" }, tools = {}, system = "s",
      params = { temperature = 0.5, thinking = { effort = "low", budget_tokens = 900 } } }
    local bound = cap{}(request)
    assert.same({ messages = { "m" }, tools = {}, system = "s",
      params = { temperature = 0.5, thinking = { effort = "low", budget_tokens = 800 } } }, bound)
    assert.equal(900, request.params.thinking.budget_tokens)
  end)

  it("is what the model is asked", function()
    local asked
    local script = ports.script(function(request)
      asked = request.params
      return { text = "hi" }
    end)
    local conf = { thinking = { effort = "high" }, max_tokens = 3000 }
    local device = knl.device{ llm = script:open(conf),
      filters = { policy.thinking_cap{ port = script, conf = conf, call_reserve = 500 } } }
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "go" } }
    assert.equal("ok", knl.beat(s, device).status)
    assert.same({ thinking = { budget_tokens = 2500 } }, asked)
    knl.beat(s, device, { params = { max_tokens = 800, temperature = 0 } })
    assert.same({ thinking = { budget_tokens = 300 }, max_tokens = 800, temperature = 0 }, asked)
  end)

  it("takes the conf and the call_reserve of a room", function()
    local room = policy.room{ port = port(), conf = { thinking = true }, call_reserve = 600 }
    assert.equal(400, budget(policy.thinking_cap{ room = room }))
    assert.equal(50, budget(policy.thinking_cap{ room = room, budget = 50 }))
  end)

  it("raises when nothing is left to think with", function()
    local filter = cap{ call_reserve = 1000 }
    bad("policy.thinking_cap: a reply of 1000 tokens leaves nothing to think with behind "
      .. "call_reserve 1000: declare max_tokens in conf, or reserve less",
      function() filter{ messages = {} } end)
    filter = cap{ port = port{ context_window = 500 }, call_reserve = 0 }
    bad("a reply of 0 tokens leaves nothing", function() filter{ messages = {} } end)
    filter = cap{}
    bad("a reply of 200 tokens leaves nothing",
      function() filter{ messages = {}, params = { max_tokens = 200 } } end)
  end)

  it("raises on a budget or a reply of a beat below one token, by its name", function()
    for shown, n in pairs{ ["0"] = 0, ["-5"] = -5, ["1.5"] = 1.5, ['"9"'] = "9",
      ["false"] = false } do
      local filter = cap{}
      bad("policy.thinking_cap: params.thinking.budget_tokens must be a whole number >= 1, got "
        .. shown,
        function() filter{ messages = {}, params = { thinking = { budget_tokens = n } } } end)
      bad("policy.thinking_cap: params.max_tokens must be a whole number >= 1, got " .. shown,
        function() filter{ messages = {}, params = { max_tokens = n } } end)
    end
  end)

  it("raises on a profile that is none, which ends the beat in its filter", function()
    local s = knl.open{ store = "mem" }
    local device = knl.device{ llm = ports.script{ { text = "a" } }:open(),
      filters = { cap{ port = port{ context_window = 0 } } } }
    local o = knl.beat(s, device)
    assert.same({ "error", "filter" }, { o.status, o.kind })
    assert.matches("context_window must be a whole number >= 1, got 0", o.detail.message)
  end)
end)

describe("the options of policy.thinking_cap", function()
  it("are checked by name, type and bound", function()
    local p, conf = port(), { thinking = true }
    for text, opts in pairs{
      ["unknown option 'buget' (did you mean 'budget'?)"] = { port = p, buget = 5 },
      ["unknown option 'owner' (a policy holds no state: it belongs to knl.open)"] =
        { port = p, owner = "x" },
      ["port must be a port, got boolean"] = { port = false },
      ["conf must be a table, got string"] = { port = p, conf = "m" },
      ["the conf is required"] = { port = p, call_reserve = 5 },
      ["the conf.thinking must be true or { effort?, budget_tokens? }, got nil"] =
        { port = p, conf = {}, call_reserve = 5 },
      ["the conf.thinking must be true or { effort?, budget_tokens? }, got false"] =
        { port = p, conf = { thinking = false }, call_reserve = 5 },
      ["the call_reserve is required"] = { port = p, conf = conf },
      ["call_reserve must be a whole number >= 0, got -1"] =
        { port = p, conf = conf, call_reserve = -1 },
      ["call_reserve must be a whole number >= 0, got \"5\""] =
        { port = p, conf = conf, call_reserve = "5" },
      ["call_reserve must be a whole number >= 0, got false"] =
        { port = p, conf = conf, call_reserve = false },
      ["budget must be a whole number >= 1, got 0"] =
        { port = p, conf = conf, call_reserve = 5, budget = 0 },
      ["budget must be a whole number >= 1, got 2.5"] =
        { port = p, conf = conf, call_reserve = 5, budget = 2.5 },
    } do
      bad("policy.thinking_cap: " .. text, function() policy.thinking_cap(opts) end)
    end
    bad("policy.thinking_cap: opts must be a table "
      .. "{ port, conf, call_reserve, budget? } or { room, budget? }, got nil",
      function() policy.thinking_cap() end)
  end)

  it("have no budget below one token in conf", function()
    for shown, n in pairs{ ["0"] = 0, ["-5"] = -5, ["1.5"] = 1.5, ['"9"'] = "9",
      ["false"] = false, ["1000000000000000000"] = 1e18 } do
      local conf = { thinking = { budget_tokens = n } }
      bad("policy.thinking_cap: the conf.thinking.budget_tokens must be a whole number >= 1, got "
        .. shown, function() cap{ conf = conf } end)
      local room = policy.room{ port = port(), conf = conf, call_reserve = 5 }
      bad("policy.thinking_cap: the room's conf.thinking.budget_tokens must be",
        function() policy.thinking_cap{ room = room } end)
    end
  end)

  it("say when it is the room's that are missing", function()
    local room = policy.room{ port = port() }
    bad("policy.thinking_cap: the room's conf is required",
      function() policy.thinking_cap{ room = room } end)
    room = policy.room{ port = port(), conf = { thinking = true } }
    bad("policy.thinking_cap: the room's call_reserve is required",
      function() policy.thinking_cap{ room = room } end)
  end)
end)
