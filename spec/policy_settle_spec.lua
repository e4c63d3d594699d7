-- policy.settle: what a beat has cost.

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

local REQUEST = { messages = {} }

describe("policy.settle", function()
  it("sums the counters that do not overlap", function()
    local settle = policy.settle()
    local usage = { input_tokens = 1, output_tokens = 20, thinking_tokens = 15,
      cache_read_tokens = 300, cache_write_tokens = 4000 }
    assert.equal(1 + 20 + 300 + 4000, settle(REQUEST, { usage = usage }))
    assert.equal(7, settle(REQUEST, { usage = { output_tokens = 7 } }))
  end)

  it("moves the ledger to what the call has cost, either way", function()
    local script = ports.script{
      { text = "a", usage = { input_tokens = 2, output_tokens = 3 } },
      { text = "b", usage = { input_tokens = 500, output_tokens = 70, cache_read_tokens = 30 } },
    }
    local s = knl.open{ store = "mem", budget = { amount = 1000, tag = "tokens" } }
    s:append{ kind = "msg_user", data = { content = ("word "):rep(40) } }
    local device = knl.device{ llm = script:open(), cost = policy.tokens{ port = script },
      settle = policy.settle() }
    assert.equal("ok", knl.beat(s, device).status)
    assert.equal(995, s:remaining())
    assert.equal("ok", knl.beat(s, device).status)
    assert.equal(395, s:remaining())
    assert.equal(2, #s:scan{ kinds = { "budget_settled" } })
  end)

  it("counts request and reply when the response says nothing of usage", function()
    local seen = {}
    local p = port()
    p.count = function(_, request)
      seen[#seen + 1] = request.messages[1] or "none"
      return 10
    end
    local settle = policy.settle{ port = p }
    local content = { { type = "text", text = "hi" } }
    for _, usage in ipairs{ {}, { input_tokens = 0, output_tokens = 0 } } do
      seen = {}
      assert.equal(20, settle(REQUEST, { content = content, usage = usage }))
      assert.same({ "none", { role = "assistant", content = content } }, seen)
    end
    assert.equal(20, settle(REQUEST, { content = content }))
  end)

  it("asks the port nothing when there is a usage", function()
    local p = port()
    p.count = function() error("must not be asked") end
    assert.equal(5, policy.settle{ port = p }(REQUEST, { usage = { input_tokens = 5 } }))
  end)

  it("without usage and without a port raises, and says what to give it", function()
    local settle = policy.settle{}
    bad("policy.settle: the response has no usage: give settle a port, it counts then",
      function() settle(REQUEST, { content = {} }) end)
    local s = knl.open{ store = "mem", budget = { amount = 5 } }
    local script = ports.script{ { text = "a", usage = {} } }
    local o = knl.beat(s, knl.device{ llm = script:open(), settle = settle })
    assert.equal("conf", o.kind)
    assert.matches("has no usage", o.detail.message)
    assert.equal(1, #s:scan{ kinds = { "llm_response" } })
  end)

  it("refuses a counter that counts nothing", function()
    local settle = policy.settle()
    for shown, n in pairs{ ["-1"] = -1, ["1.5"] = 1.5, ["5"] = "5", ["true"] = true,
      nan = 0 / 0 } do
      bad("policy.settle: usage.output_tokens must be a whole number >= 0, got " .. shown,
        function() settle(REQUEST, { usage = { output_tokens = n } }) end)
    end
  end)

  it("refuses a count of the port that is none", function()
    local settle = policy.settle{ port = port(-5) }
    bad("policy.settle: port:count() must answer a whole number >= 0, got -5",
      function() settle(REQUEST, { content = {} }) end)
  end)
end)

describe("the options of policy.settle", function()
  it("are checked by name and type", function()
    for text, opts in pairs{
      ["unknown option 'prt' (did you mean 'port'?)"] = { prt = port(1) },
      ["unknown option 'store' (a policy holds no state: it belongs to knl.open)"] =
        { store = "mem" },
      ["port must be a port, got boolean"] = { port = false },
      ["port must be a port, got a table without profile"] = { port = { count = print } },
      ["conf must be a table, got string"] = { port = port(1), conf = "x" },
    } do
      bad("policy.settle: " .. text, function() policy.settle(opts) end)
    end
    bad("policy.settle: opts must be a table { port?, conf? } or { room }, got boolean",
      function() policy.settle(false) end)
    bad("policy.settle: opts must be a table { port?, conf? } or { room }, got string",
      function() policy.settle("x") end)
  end)
end)
