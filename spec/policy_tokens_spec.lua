-- policy.tokens: what a beat reserves.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local function port(n)
  return {
    profile = function() return { context_window = 1000 } end,
    count = function() return n end,
  }
end

describe("policy.tokens", function()
  it("reserves what the request counts", function()
    local script = ports.script{ { text = "a" }, { text = "b" } }
    local s = knl.open{ store = "mem", budget = { amount = 100000, tag = "tokens" } }
    s:append{ kind = "msg_user", data = { content = ("word "):rep(200) } }
    local device = knl.device{ llm = script:open(), cost = policy.tokens{ port = script } }
    local o = knl.beat(s, device)
    assert.equal("ok", o.status)
    local reserved = s:scan{ kinds = { "budget_reserved" } }[1].data.amount
    assert.equal(script:count(s:request(o.out.beat)), reserved)
    assert.equal(100000 - reserved, s:remaining())
    assert.is_true(reserved > 100)
  end)

  it("stops the beat that the balance does not cover", function()
    local script = ports.script{ { text = "a" } }
    local s = knl.open{ store = "mem", budget = { amount = 5, tag = "tokens" } }
    s:append{ kind = "msg_user", data = { content = ("word "):rep(200) } }
    local o = knl.beat(s, knl.device{ llm = script:open(), cost = policy.tokens{ port = script } })
    assert.same({ "stopped", "budget", "tokens" }, { o.status, o.reason, o.tag })
  end)

  it("costs at least 1", function()
    assert.equal(1, policy.tokens{ port = port(0) }({ messages = {} }))
    assert.equal(1, policy.tokens{ port = port(1) }({ messages = {} }))
    assert.equal(2, policy.tokens{ port = port(2) }({ messages = {} }))
  end)

  it("asks with its conf", function()
    local seen
    local p = port(1)
    p.count = function(_, request, conf)
      seen = { request, conf.model }
      return 1
    end
    policy.tokens{ port = p, conf = { model = "m" } }("the request")
    assert.same({ "the request", "m" }, seen)
  end)

  it("raises on a count that is none, which ends the beat before the call", function()
    for shown, n in pairs{ ["-1"] = -1, ["0.5"] = 0.5, nan = 0 / 0, ['"3"'] = "3",
      ["true"] = true } do
      local cost = policy.tokens{ port = port(n) }
      bad("policy.tokens: port:count() must answer a whole number >= 0, got " .. shown,
        function() cost{ messages = {} } end)
    end
    local s = knl.open{ store = "mem", budget = { amount = 9, tag = "tokens" } }
    local device = knl.device{ llm = ports.script{ { text = "a" } }:open(),
      cost = policy.tokens{ port = port(0.5) } }
    local o = knl.beat(s, device)
    assert.same({ "error", "conf" }, { o.status, o.kind })
    assert.matches("got 0.5", o.detail.message)
    assert.equal(9, s:remaining())
  end)

  it("raises what the port raises", function()
    local p = port(1)
    p.count = function() error("no tokenizer", 0) end
    local cost = policy.tokens{ port = p }
    assert.equal("no tokenizer", assert.has_error(function() cost{ messages = {} } end))
  end)
end)

describe("the options of policy.tokens", function()
  it("are checked by name and type", function()
    local p = port(1)
    for text, opts in pairs{
      ["unknown option 'prot' (did you mean 'port'?)"] = { port = p, prot = p },
      ["unknown option 'reserve' (known: conf, port, room)"] = { port = p, reserve = 5 },
      ["unknown option 'session' (tokens looks at a request, not at a session)"] =
        { port = p, session = knl.open{ store = "mem" } },
      ["unknown option 'budget' (a policy holds no state: it belongs to knl.open)"] =
        { port = p, budget = 5 },
      ["unknown option [1]"] = { p },
      ["port must be a port, got boolean"] = { port = false },
      ["port must be a port, got number"] = { port = 5 },
      ["conf must be a table, got number"] = { port = p, conf = 5 },
      ["conf must be a table, got false"] = { port = p, conf = false },
    } do
      bad("policy.tokens: " .. text, function() policy.tokens(opts) end)
    end
    bad("policy.tokens: opts must be a table { port, conf? } or { room }, got nil",
      function() policy.tokens() end)
    bad("policy.tokens: opts must be a table { port, conf? } or { room }, got userdata",
      function() policy.tokens(knl.open{ store = "mem" }) end)
  end)
end)
