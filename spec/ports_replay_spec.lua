-- ports.replay: a recorded session as a port.

local knl, ports = require("knl"), require("ports")
local policy, std = require("policy"), require("std")
local supervisor = require("supervisor")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local function device_of(port, system)
  return knl.device{ llm = port:open(), system = system,
    tools = { t = { effects = "read", handler = function() return "r" end } } }
end

-- A session of n beats of a port, and their outcomes.
local function beats(port, n, system)
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  local device, out = device_of(port, system), {}
  for i = 1, n do
    out[i] = knl.beat(s, device)
  end
  return s, out
end

local script = ports.script{
  { text = "first", calls = { { "t", {} } } },
  { fail = { kind = "rate_limited", retry_after = 2, status = 429 } },
  { refuse = "no" },
}

describe("ports.replay", function()
  it("answers what the recorded session was answered", function()
    local s = beats(script, 3)
    local _, out = beats(ports.replay{ session = s }, 3)
    assert.equal("first", out[1].out.content[1].text)
    assert.equal("call_1_1", out[1].out.tools[1].call_id)
    assert.same({ "rate_limited", true, 2, 429 }, { out[2].detail.kind, out[2].detail.retryable,
      out[2].detail.retry_after, out[2].detail.status })
    assert.same({ "refused", "no" }, { out[3].status, out[3].detail.refusal.detail })
  end)

  it("says what changed when a request differs", function()
    local s = beats(script, 1, "be brief")
    local _, out = beats(ports.replay{ session = s:id() }, 1, "be long")
    assert.equal("invalid_request", out[1].detail.kind)
    assert.is_false(out[1].detail.retryable)
    assert.matches('system: got "be long", want "be brief"', out[1].detail.message)
    assert.matches(s:beats()[1].id, out[1].detail.message)
  end)

  it("ends where the recorded session ends", function()
    local s = beats(script, 1)
    local _, out = beats(ports.replay{ session = s }, 2)
    assert.equal("unknown", out[2].detail.kind)
    assert.matches("call 2, and 1 are recorded", out[2].detail.message)
  end)

  it("plays the children of the session too", function()
    local calls = 0
    local own = ports.script(function()
      calls = calls + 1
      return { text = "said " .. calls }
    end)
    local function run(port, questions)
      local parent, said = knl.open{ store = "mem", budget = { amount = 10 } }, {}
      for i, question in ipairs(questions) do
        said[i] = supervisor.child(parent, { budget = { amount = 1 } }, function(child)
          child:append{ kind = "msg_user", data = { content = question } }
          return knl.beat(child, device_of(port)).out.content[1].text
        end)[1]
      end
      return parent, said
    end
    local parent, said = run(own, { "a", "b" })
    local _, again = run(ports.replay{ session = parent }, { "b", "a" })
    assert.same({ said[2], said[1] }, again)
    assert.equal(2, calls)
  end)

  it("estimates counts, and takes sizes from the conf", function()
    local port = ports.replay{ session = beats(script, 1) }
    assert.equal(ports.script{}:count{ messages = {} }, port:count{ messages = {} })
    assert.equal(1000, port:profile{ context_window = 1000 }.context_window)
    assert.is_true(port:health())
  end)

  it("does not answer outside of a session", function()
    local answer, err = ports.replay{ session = beats(script, 1) }:open()({ messages = {} })
    assert.is_nil(answer)
    assert.matches("outside of a session", err.message)
  end)

  it("wants a session of a store", function()
    bad('option "session": got nil, want', function() ports.replay{} end)
    bad('option "session": got 5, want a session or its id',
      function() ports.replay{ session = 5 } end)
    bad('session "nosuch" is not in this store',
      function() ports.replay{ session = "nosuch" } end)
    bad('(did you mean "session"?)', function() ports.replay{ sesion = "x" } end)
  end)

  it("cuts a window where the recorded run did, and ends its budget where it ended", function()
    local counts = {} -- a port whose model has a small window, and long tokens
    function counts:count(request)
      return math.floor(#std.json.encode(request.messages) / 2)
    end
    function counts:profile()
      return { context_window = 1300, max_output = 300 }
    end
    local function run(port, counter)
      local s = knl.open{ store = "mem", budget = { amount = 6000, tag = "tokens" } }
      local device = knl.device{ llm = port:open(), cost = policy.tokens{ port = counter },
        fold = (policy.window{ fit = { port = counter } }) }
      local said = {}
      for i = 1, 20 do
        s:append{ kind = "msg_user", data = { content = i .. (" more"):rep(40 + i * 7 % 30) } }
        local o = knl.beat(s, device)
        said[i] = o.status .. " " .. (o.reason or o.detail and o.detail.message or "")
        if o.status ~= "ok" then
          break
        end
      end
      return s, said
    end
    local recorded, said = run(ports.script(function()
      return { text = ("word "):rep(30) }
    end), counts)
    assert.is_true(#recorded:scan{ kinds = { "llm_response" } } > 6)
    assert.matches("^stopped budget", said[#said])
    local replay = ports.replay{ session = recorded }
    local _, again = run(replay, replay)
    assert.same(said, again)
  end)
end)
