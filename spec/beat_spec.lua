-- Beats: one model call and the tools it asks for.

local knl, ports = require("knl"), require("ports")

local dev = std.env.get("LSHAPE_CHECK") == "1"

local function seeded(opts)
  opts = opts or {}
  opts.store = "mem"
  local s = knl.open(opts)
  s:append{ kind = "msg_user", data = { content = "go" } }
  return s
end

local function script(...)
  return ports.script{ ... }:open()
end

local function kinds(s, from)
  local out = {}
  for i, ev in ipairs((s:events(from))) do
    out[i] = ev.kind
  end
  return table.concat(out, " ")
end

-- The Outcome and the session of a beat of a model that is fn.
local function answered(fn)
  local s = seeded()
  return knl.beat(s, knl.device{ llm = fn }), s
end

local usage = { input_tokens = 1, output_tokens = 2, thinking_tokens = 0 }

describe("knl.beat", function()
  it("answers what the model said", function()
    local s = seeded()
    local o = knl.beat(s,
      knl.device{ llm = script{ text = "hello", usage = { input_tokens = 7, output_tokens = 3 } } })
    assert.equal("ok", o.status)
    assert.same({ { type = "text", text = "hello" } }, o.out.content)
    assert.equal("end_turn", o.out.stop_reason)
    assert.equal(7, o.out.usage.input_tokens)
    assert.same({}, o.out.tools)
    assert.equal("string", type(o.out.beat))
    assert.is_nil(getmetatable(o))
  end)

  it("records in order, all of it under one id", function()
    local s = seeded{ budget = { amount = 5 } }
    local d = knl.device{
      llm = script{ calls = { { "a" }, { "b" } } },
      tools = { a = { handler = function() return "A" end },
        b = { handler = function() return "B" end, effects = "read" } },
    }
    local o = knl.beat(s, d)
    assert.equal("budget_reserved llm_request llm_response tool_call tool_result tool_call tool_result", kinds(s, 4))
    for _, ev in ipairs((s:events(4))) do
      assert.equal(o.out.beat, ev.beat)
    end
    assert.is_nil(s:events()[3].beat)
  end)

  it("gives every beat an id of its own", function()
    local s = seeded()
    local d = knl.device{ llm = script({ text = "a" }, { text = "b" }) }
    assert.is_false(knl.beat(s, d).out.beat == knl.beat(s, d).out.beat)
  end)

  it("drives many sessions with one device", function()
    local d = knl.device{ llm = script{ text = "a" } }
    for _ = 1, 3 do
      assert.equal("ok", knl.beat(seeded(), d).status)
    end
  end)

  it("answers a mistake in its arguments as error/conf, in both modes", function()
    local s, d = seeded(), knl.device{ llm = script{ text = "a" } }
    for text, o in pairs{
      ["knl.beat: argument 1 (session): got nil, want a session"] = knl.beat(),
      ["argument 1 (session): got a table, want a session"] = knl.beat({}, d),
      ["argument 2 (device): got nil, want a device"] = knl.beat(s),
      ["argument 2 (device): got a table, want a device"] = knl.beat(s, { llm = print }),
      ["no llm"] = knl.beat(s, knl.device{}),
      ['argument 3 (opts): got "x", want a table'] = knl.beat(s, d, "x"),
      ['unknown option "deadlin" (did you mean "deadline"?)'] = knl.beat(s, d, { deadlin = 1 }),
      ['option "deadline": got "soon", want seconds'] = knl.beat(s, d, { deadline = "soon" }),
      ['option "params": got 1, want a table'] = knl.beat(s, d, { params = 1 }),
      ["knl.beat: tool_choice: got a function"] = knl.beat(s, d, { tool_choice = print }),
      ['option "on_delta": got 1, want a function'] = knl.beat(s, d, { on_delta = 1 }),
      ["params.temperature: got NaN"] = knl.beat(s, d, { params = { temperature = 0 / 0 } }),
    } do
      assert.equal("error", o.status, text)
      assert.equal("conf", o.kind, text)
      assert.matches(text, o.detail.message)
      assert.is_false(o.detail.retryable)
      assert.equal(o.detail.message, tostring(o.detail))
    end
    assert.equal(2, s:len())
  end)

  it("sends tool_choice and params with the request", function()
    local s = seeded()
    local o = knl.beat(s, knl.device{ llm = script{ text = "a" } },
      { tool_choice = "none", params = { temperature = 0.5 } })
    local request = s:request(o.out.beat)
    assert.equal("none", request.tool_choice)
    assert.same({ temperature = 0.5 }, request.params)
  end)

  it("hands on what streams", function()
    local seen = {}
    knl.beat(seeded(), knl.device{ llm = script{ thinking = "hm", text = "hello" } }, {
      on_delta = function(delta) seen[#seen + 1] = delta.kind .. ":" .. delta.text end,
    })
    assert.same({ "thinking:hm", "text:hello" }, seen)
  end)

  it("runs no other beat of the session from on_delta", function()
    local s = seeded{ budget = { amount = 9 } }
    local d = knl.device{ llm = script({ text = "hello" }, { text = "again" }) }
    local beat, rerun, child, outer
    local o = knl.beat(s, d, { on_delta = function()
      beat = beat or knl.beat(s, d)
      rerun = rerun or knl.rerun(s, d, "c1")
      child = child or knl.session({ parent = s, budget = { from_parent = 1 } }, function(c)
        c:append{ kind = "msg_user", data = { content = "go" } }
        local own = knl.beat(c, d, { on_delta = function() outer = outer or knl.beat(s, d) end })
        return own.status
      end)
    end })
    assert.equal("ok", o.status)
    for name, inner in pairs{ beat = beat, rerun = rerun, outer = outer } do
      assert.same({ "error", "conf" }, { inner.status, inner.kind }, name)
      assert.matches("session " .. s:id() .. " is in a beat already, and this runs inside its "
        .. "on_delta: open a child session", inner.detail.message)
    end
    assert.equal("ok", child)
    assert.equal("ok", knl.beat(s, d).status)
  end)

  it("ends on_delta at its deadline", function()
    local woke
    local function listen()
      std.time.sleep(60)
      woke = true
    end
    local began = std.time.monotonic()
    knl.beat(seeded(), knl.device{ llm = script{ text = "hello" } },
      { deadline = 0.05, on_delta = listen })
    knl.beat(seeded(), knl.device{ llm = script{ text = "hello" } },
      { deadline = 0.05, on_delta = function() while true do end end })
    assert.is_nil(woke)
    assert.is_true(std.time.monotonic() - began < 30)
  end)

  it("lets a model of the script show what comes", function()
    local seen = {}
    local o = knl.beat(seeded(), knl.device{ llm = function(_, ctx)
      ctx.on_delta{ kind = "text", text = "he" }
      ctx.on_delta{ kind = "text", text = "llo" }
      local ok, err = pcall(ctx.on_delta, "hello")
      assert.is_false(ok)
      assert.matches('ctx.on_delta: argument 1 %(delta%): got "hello", want a table',
        tostring(err))
      return { status = "ok", content = { { type = "text", text = "hello" } }, usage = usage }
    end }, { on_delta = function(delta) seen[#seen + 1] = delta.text end })
    assert.equal("ok", o.status)
    assert.same({ "he", "llo" }, seen)
  end)

  it("stops at its deadline", function()
    local s = seeded()
    local o = knl.beat(s, knl.device{ llm = script{ text = "late", delay = 600 } },
      { deadline = 0.01 })
    assert.same({ status = "stopped", reason = "deadline" }, o)
    assert.equal("llm_request llm_call_failed", kinds(s, 3))
  end)

  it("gives the model the request and what to know of the call", function()
    local request, ctx
    local o, s = answered(function(r, c)
      request, ctx = r, c
      return { status = "ok", content = { { type = "text", text = "x" } }, usage = usage }
    end)
    assert.equal("go", request.messages[1].content)
    assert.equal(o.out.beat, ctx.beat)
    assert.equal(s:id(), ctx.session)
    assert.equal(0, ctx.call)
  end)

  it("records a refusal and stops, tools or not", function()
    local s = seeded()
    local o = knl.beat(s, knl.device{
      llm = script{ refuse = "I will not", calls = { { "a" } } },
      tools = { a = { handler = function() error("must not run") end } },
    })
    assert.equal("refused", o.status)
    assert.equal("model", o.reason)
    assert.equal("I will not", o.detail.refusal.detail)
    assert.equal("llm_request llm_response", kinds(s, 3))
  end)

  it("carries the port's reading of a failed call", function()
    local s = seeded()
    local o = knl.beat(s, knl.device{ llm = script{ fail = { kind = "rate_limited", retry_after = 3, status = 429, message = "slow down" } } })
    assert.equal("call", o.kind)
    assert.equal("rate_limited", o.detail.kind)
    assert.is_true(o.detail.retryable)
    assert.equal(3, o.detail.retry_after)
    assert.equal(429, o.detail.status)
    assert.equal("slow down", o.detail.message)
    local note = s:view("tail", { n = 1 })[1]
    assert.equal("llm_call_failed", note.kind)
    assert.same({ error = "slow down", kind = "rate_limited", retryable = true, retry_after = 3,
      status = 429 }, note.data)
  end)

  it("takes nil and a reason for a failed call", function()
    local o = answered(function() return nil, "the line is dead" end)
    assert.equal("unknown", o.detail.kind)
    assert.equal("the line is dead", o.detail.message)
    o = answered(function() return nil,
      { kind = "overloaded", message = "busy", retry_after = 2 } end)
    assert.same({ "overloaded", true, 2 },
      { o.detail.kind, o.detail.retryable, o.detail.retry_after })
    o = answered(function() return nil, { kind = "weird", message = "x" } end)
    assert.same(
      { "unknown", false, 'x (kind "weird" is no call_error_kind, it is read as unknown)' },
      { o.detail.kind, o.detail.retryable, o.detail.message })
    o = answered(function() error{ kind = "server" } end)
    assert.same({ "server", true }, { o.detail.kind, o.detail.retryable })
    assert.equal('the llm gave no answer: its error has the kind "server" and no message',
      o.detail.message)
    o = answered(function() return nil, {} end)
    assert.equal("the llm gave no answer: its error has neither a kind nor a message",
      o.detail.message)
    o = answered(function() return nil, { message = "no kind" } end)
    assert.same({ "unknown", "no kind" }, { o.detail.kind, o.detail.message })
    o = answered(function()
      return nil, setmetatable({ kind = "auth" }, { __tostring = function() return "who?" end })
    end)
    assert.same({ "auth", "who?" }, { o.detail.kind, o.detail.message })
    o = answered(function() return nil, { kind = "server", retryable = false, message = "x" } end)
    assert.is_false(o.detail.retryable)
  end)

  it("is a failed call, and never a response, when the answer cannot be read", function()
    local cases = {
      raises = function() error("my adapter broke") end,
      nothing = function() end,
      ["false"] = function() return false end,
      text = function() return "hello" end,
      number = function() return 5 end,
      ["no status"] = function() return { content = {}, usage = usage } end,
      ["status error"] = function() return { status = "error", content = {}, usage = usage } end,
      ["no usage"] = function() return { status = "ok", content = {} } end,
      ["usage of text"] = function() return { status = "ok", content = {},
        usage = { input_tokens = "1" } } end,
      ["usage below zero"] = function() return { status = "ok", content = {},
        usage = { input_tokens = -1 } } end,
      ["usage with a fraction"] = function() return { status = "ok", content = {},
        usage = { output_tokens = 1.5 } } end,
      ["refused without why"] = function() return { status = "refused", content = {},
        usage = usage } end,
      ["refusal without a kind"] = function() return { status = "refused", content = {},
        usage = usage, refusal = {} } end,
      ["content of text"] = function() return { status = "ok", content = "hello",
        usage = usage } end,
      ["a nameless call"] = function() return { status = "ok",
        content = { { type = "tool_use", id = "1" } }, usage = usage } end,
      ["a block of text"] = function() return { status = "ok", content = { "hello" },
        usage = usage } end,
    }
    for name, fn in pairs(cases) do
      local o, s = answered(fn)
      assert.equal("error", o.status, name)
      assert.equal("call", o.kind, name)
      assert.equal("unknown", o.detail.kind, name)
      assert.equal("llm_request llm_call_failed", kinds(s, 3), name)
      assert.equal(s:events()[4].data.error, o.detail.message, name)
    end
  end)

  it("has a traceback of what raised in dev mode, and the same words in both", function()
    local o = answered(function() error("my adapter broke") end)
    assert.matches("beat_spec.lua:%d+: my adapter broke", o.detail.message)
    assert.equal(dev, o.detail.traceback ~= nil)
  end)

  it("takes an unknown stop reason for an error and runs nothing", function()
    local s = seeded()
    local o = knl.beat(s, knl.device{
      llm = script{ calls = { { "a" } }, stop = "weird" },
      tools = { a = { handler = function() error("must not run") end } },
    })
    assert.equal("call", o.kind)
    assert.matches('"weird"', o.detail.message)
    assert.equal("llm_request llm_response tool_call tool_result", kinds(s, 3))
    assert.is_false(s:events()[6].data.ok)
  end)

  it("runs no tool of a reply that was cut", function()
    local s = seeded()
    local o = knl.beat(s, knl.device{
      llm = script{ truncated = true, text = "I will", calls = { { "a" } } },
      tools = { a = { handler = function() error("must not run") end } },
    })
    assert.equal("ok", o.status)
    assert.equal("max_tokens", o.out.stop_reason)
    assert.is_false(o.out.tools[1].ok)
    local result = s:view("tail", { n = 1 })[1].data
    assert.is_true(result.truncated)
    assert.matches("cut by the output limit", result.result)
  end)

  it("does not change what the model's table was", function()
    local t = { status = "ok", content = { { type = "tool_use", name = "a", id = "x" } },
      usage = usage, stop_reason = "tool_use" }
    local s, d = seeded(), knl.device{ llm = function() return t end,
      tools = { a = { handler = function() return "" end } } }
    knl.beat(s, d)
    local o = knl.beat(s, d)
    assert.equal("ok", o.status)
    assert.is_nil(t.beat)
    assert.is_nil(t.tools)
    assert.equal("x", t.content[1].id)
    assert.is_false(o.out.content[1].id == "x", "an id is used once in a session")
  end)

  it("is refused inside a tool of the same session, and works on a child", function()
    local inner, below
    local s = seeded{ budget = { amount = 5 } }
    local d
    d = knl.device{
      llm = script({ calls = { { "again" } } }, { text = "done" }),
      tools = { again = { handler = function(_, ctx)
        inner = knl.beat(ctx.session, d)
        local child = knl.open{ parent = ctx.session, budget = { from_parent = 2 } }
        below = knl.beat(child, knl.device{ llm = script{ text = "deep" } })
        return "x"
      end } },
    }
    assert.equal("ok", knl.beat(s, d).status)
    assert.same({ "error", "conf" }, { inner.status, inner.kind })
    assert.matches("inside it", inner.detail.message)
    assert.equal("ok", below.status)
  end)

  it("on a session that was closed is error/state", function()
    local s = seeded()
    s:close()
    local o = knl.beat(s, knl.device{ llm = script{ text = "x" } })
    assert.same({ "error", "state", "closed" }, { o.status, o.kind, o.detail.kind })
  end)

  it("on a session that another took over is error/state, kind fenced", function()
    local s = seeded()
    knl.resume{ session = s:id() }
    local o = knl.beat(s, knl.device{ llm = script{ text = "x" } })
    assert.same({ "error", "state", "fenced", false },
      { o.status, o.kind, o.detail.kind, o.detail.retryable })
  end)

  it("ends when its task is cancelled, with the call recorded as failed", function()
    local s = seeded()
    local o
    std.task.scope(function(scope)
      local task = scope:spawn(function()
        o = knl.beat(s, knl.device{ llm = script{ text = "x", delay = 600 } })
      end)
      while s:len() < 3 do
        std.task.sleep(1)
      end
      task:cancel()
      pcall(task.join, task)
    end)
    assert.equal("llm_request llm_call_failed", kinds(s, 3))
    assert.equal("cancelled", s:view("tail", { n = 1 })[1].data.kind)
    assert.is_true(o == nil or o.kind == "call")
  end)

  it("of two tasks on one session take turns", function()
    local s = seeded()
    local d = knl.device{ llm = script({ text = "a", delay = 0.002 },
      { text = "b", delay = 0.002 }) }
    std.task.scope(function(scope)
      scope:spawn(function() knl.beat(s, d) end)
      scope:spawn(function() knl.beat(s, d) end)
    end)
    assert.equal("llm_request llm_response llm_request llm_response", kinds(s, 3))
  end)
end)
