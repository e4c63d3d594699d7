-- Ports: models, here the scripted one.

local knl, ports = require("knl"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

-- The outcomes of n beats of a port.
local function beats(port, n)
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  local device, out = knl.device{ llm = port:open(),
    tools = { t = { handler = function() return "r" end } } }, {}
  for i = 1, n do
    out[i] = knl.beat(s, device)
  end
  return out, s
end

describe("ports.script", function()
  it("answers the n-th call of a session with the n-th reply", function()
    local port = ports.script{ { text = "a" }, { text = "b" } }
    local first = beats(port, 2)
    assert.same({ "a", "b" }, { first[1].out.content[1].text, first[2].out.content[1].text })
    assert.equal("a", beats(port, 1)[1].out.content[1].text)
  end)

  it("fails past the last reply, naming the beat", function()
    local out, s = beats(ports.script{ { text = "a" } }, 2)
    assert.equal("call", out[2].kind)
    assert.matches(s:beats{ last = 1 }[1].id, out[2].detail.message)
    assert.matches("the script has no more replies", out[2].detail.message)
    assert.is_false(out[2].detail.retryable)
  end)

  it("goes on where it was when the session is resumed", function()
    local _, s = beats(ports.script{ { text = "a" } }, 1)
    local again = knl.resume{ session = s:id() }
    local o = knl.beat(again,
      knl.device{ llm = ports.script{ { text = "a" }, { text = "b" } }:open() })
    assert.equal("b", o.out.content[1].text)
  end)

  it("plays text, thinking, calls, refusals, failures and cuts", function()
    local out = beats(ports.script{
      { thinking = "hm", text = "t", calls = { { "t", { a = 1 } }, { name = "t", id = "x" } } },
      { refuse = "no" },
      { fail = { kind = "overloaded" } },
      { truncated = true, text = "cu" },
      { content = { { type = "text", text = "raw" } }, stop = "stop_sequence" },
    }, 5)
    assert.same({ "thinking", "text", "tool_use", "tool_use" }, {
      out[1].out.content[1].type, out[1].out.content[2].type, out[1].out.content[3].type, out[1].out.content[4].type,
    })
    assert.same({ a = 1 }, out[1].out.content[3].input)
    assert.equal("x", out[1].out.content[4].id)
    assert.equal("tool_use", out[1].out.stop_reason)
    assert.equal("refused", out[2].status)
    assert.equal("overloaded", out[3].detail.kind)
    assert.equal("max_tokens", out[4].out.stop_reason)
    assert.equal("stop_sequence", out[5].out.stop_reason)
  end)

  it("asks a function, with the request and where it stands", function()
    local out, s = beats(ports.script(function(request, ctx)
      return { text = #request.messages .. " " .. ctx.call .. " " .. ctx.session }
    end), 2)
    assert.equal("1 0 " .. s:id(), out[1].out.content[1].text)
    assert.equal("2 1 " .. s:id(), out[2].out.content[1].text)
  end)

  it("that is a function and raises, or answers no reply, is a failed call", function()
    for text, fn in pairs{
      ["no idea"] = function() error("no idea") end,
      ["got nil from its function, want a reply"] = function() end,
      ['unknown key "txt"'] = function() return { txt = "x" } end,
      ["says nothing"] = function() return {} end,
    } do
      local o = beats(ports.script(fn), 1)[1]
      assert.equal("call", o.kind, text)
      assert.matches(text, o.detail.message)
    end
  end)

  it("checks its replies where they stand", function()
    bad("ports.script: argument 1 (replies): got nil, want", function() ports.script() end)
    bad('replies[2]: unknown key "txt"',
      function() ports.script{ { text = "a" }, { txt = "b" } } end)
    bad("replies[1]: says nothing", function() ports.script{ {} } end)
    bad("replies[1].text", function() ports.script{ { text = 5 } } end)
    bad("replies[1].calls[1]", function() ports.script{ { calls = { "t" } } } end)
    bad("replies[1].fail.kind", function() ports.script{ { fail = { kind = "odd" } } } end)
    bad("replies[1].text: stands beside fail",
      function() ports.script{ { fail = { kind = "server" }, text = "x" } } end)
    bad("replies[1].delay", function() ports.script{ { text = "x", delay = -1 } } end)
    bad("replies[1].usage.input_tokens",
      function() ports.script{ { text = "x", usage = { input_tokens = 1.5 } } } end)
    bad("replies[1].text: got a function", function() ports.script{ { text = print } } end)
    bad("replies", function() ports.script{ text = "x" } end)
  end)
end)

describe("ports.from", function()
  it("names what is wrong with a model's name", function()
    bad('model "gpt": got no model name, want "provider:model"', function() ports.from("gpt") end)
    bad('unknown provider "nobody"', function() ports.from("nobody:x") end)
    bad("ports.from: argument 1 (model): got nil, want a string", function() ports.from() end)
    bad("ports.from: argument 2 (conf): got 5, want a table",
      function() ports.from("script:x", 5) end)
    bad('"modl"', function() ports.from("script:x", { modl = "y" }) end)
  end)
end)

describe("ports.default", function()
  it("is the script's own without --model", function()
    local own = ports.script{ { text = "x" } }
    assert.equal(own, ports.default(own))
    assert.is_nil(ports.default())
  end)

  it("takes a port", function()
    bad("ports.default: argument 1 (own): got 5, want a", function() ports.default(5) end)
    bad("ports.default: argument 1 (own)", function() ports.default(knl.device{}) end)
  end)
end)

describe("port:open", function()
  it("answers a model that can be called", function()
    local llm = ports.script{ { text = "hi" } }:open{ model = "m" }
    local answer = llm({ messages = { { role = "user", content = "x" } } })
    assert.equal("ok", answer.status)
    assert.same({ { type = "text", text = "hi" } }, answer.content)
    assert.equal("end_turn", answer.stop_reason)
  end)

  it("answers nil and the error of a failed call", function()
    local answer, err = ports.script{ { fail = { kind = "server", status = 503,
      retry_after = 2 } } }:open()({ messages = {} })
    assert.is_nil(answer)
    assert.same({ "server", true, 503, 2 },
      { err.kind, err.retryable, err.status, err.retry_after })
  end)

  it("may be wrapped by a function", function()
    local llm = ports.script{ { text = "hi" } }:open()
    local s = knl.open{ store = "mem" }
    local o = knl.beat(s, knl.device{ llm = function(request, ctx)
      local answer, err = llm(request, ctx)
      if answer then
        answer.content[1].text = answer.content[1].text .. "!"
      end
      return answer, err
    end })
    assert.equal("hi!", o.out.content[1].text)
  end)

  it("wants a request, and keys that a conf has", function()
    local port = ports.script{ { text = "hi" } }
    bad("llm", function() port:open()("x") end)
    bad("port:open: argument 1 (conf): got 5, want a table", function() port:open(5) end)
    bad('"modle"', function() port:open{ modle = "x" } end)
    bad("as receiver, want a port", function() port.open({}) end)
  end)
end)

describe("port:count", function()
  it("counts more for more", function()
    local port = ports.script{}
    local function count(text) return port:count{ messages = { { role = "user",
      content = text } } } end
    assert.is_true(count("x") >= 1)
    assert.is_true(count(("word "):rep(1000)) > count("word"))
    assert.equal(count("abc"),
      port:count(knl.fold{ { kind = "msg_user", data = { content = "abc" } } }))
  end)

  it("wants a request", function()
    local port = ports.script{}
    bad("port:count: argument 1 (request): got nil, want a request", function() port:count() end)
    bad("port:count: argument 1 (request): got a table, want a request",
      function() port:count{ messages = 5 } end)
    bad('"modle"', function() port:count({ messages = {} }, { modle = "x" }) end)
  end)
end)

describe("port:profile", function()
  it("says what the conf declares", function()
    local p = ports.script{}:profile()
    assert.same({ 200000, 8192 }, { p.context_window, p.max_output })
    p = ports.script{}:profile{ context_window = 1000, max_tokens = 100 }
    assert.same({ 1000, 100 }, { p.context_window, p.max_output })
    assert.equal("boolean", type(p.prefill))
  end)

  it("wants a conf", function()
    bad("port:profile: argument 1 (conf): got 1, want a table",
      function() ports.script{}:profile(1) end)
    bad("context_window", function() ports.script{}:profile{ context_window = -1 } end)
  end)
end)

describe("port:health", function()
  it("is true of a script", function()
    assert.equal(true, ports.script{}:health())
    bad("port:health: argument 1 (conf): got 1, want a table",
      function() ports.script{}:health(1) end)
  end)
end)
