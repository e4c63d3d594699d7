-- Tools of a device: how a beat runs what the model asks for.

local knl, ports = require("knl"), require("ports")

local function seeded()
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  return s
end

-- Runs one beat in which the model makes the calls.
local function call(calls, tools, more)
  local s = seeded()
  local config = { llm = ports.script{ { calls = calls } }:open(), tools = tools }
  for k, v in pairs(more or {}) do
    config[k] = v
  end
  return knl.beat(s, knl.device(config)), s
end

local function results(s)
  local out = {}
  for i, ev in ipairs((s:scan{ kinds = { "tool_result" } })) do
    out[i] = ev.data
  end
  return out
end

-- The result of the one call of a tool with that handler.
local function result_of(handler, args, entry)
  local t = { handler = handler }
  for k, v in pairs(entry or {}) do
    t[k] = v
  end
  local o, s = call({ { "t", args } }, { t = t })
  return results(s)[1], o, s
end

describe("a tool", function()
  it("gets the arguments and where it stands", function()
    local args, ctx
    local _, o, s = result_of(function(a, c)
      args, ctx = a, c
      return "done"
    end, { n = 1, list = { "a" }, empty = knl.array() })
    assert.same({ n = 1, list = { "a" }, empty = {} }, args)
    assert.equal("[]", std.json.encode(args.empty))
    assert.equal(s:id(), ctx.session:id())
    assert.equal(o.out.beat, ctx.beat)
    assert.equal(o.out.tools[1].call_id, ctx.call_id)
    assert.equal("string", type(ctx.idempotency_key))
  end)

  it("without arguments gets an empty table", function()
    local seen
    result_of(function(args) seen = args; return "" end)
    assert.same({}, seen)
  end)

  it("answers any JSON value", function()
    for _, value in ipairs{ "text", 5, 1.5, true, { a = 1 }, { 1, 2 }, knl.null, knl.int("9007199254740993") } do
      local r = result_of(function() return value end)
      assert.is_true(r.ok)
      assert.same(value, r.result)
    end
  end)

  it("that answers nothing says the empty text", function()
    local r = result_of(function() end)
    assert.same({ true, "" }, { r.ok, r.result })
    assert.equal("", result_of(function() return nil, "second" end).result)
  end)

  it("that returns a failure is ok: only raising is not", function()
    assert.is_true(result_of(function() return { ok = false, reason = "no" } end).ok)
  end)

  it("that raises closes its call and not the beat", function()
    local r, o = result_of(function() error("it broke") end)
    assert.equal("ok", o.status)
    assert.is_false(o.out.tools[1].ok)
    assert.is_false(r.ok)
    assert.matches('tool "t" raised: .*tools_spec.lua:%d+: it broke', r.result)
    assert.is_false(r.result:find("traceback") ~= nil)
  end)

  it("that raises a table says its words", function()
    assert.matches("raised: .*my message",
      result_of(function() error({ message = "my message" }) end).result)
    assert.matches("raised: .*spoken", result_of(function()
      error(setmetatable({}, { __tostring = function() return "spoken" end }))
    end).result)
  end)

  it("that answers what cannot be recorded is a failed call", function()
    local cyclic = {}
    cyclic.c = cyclic
    for text, value in pairs{ ["got NaN"] = 0 / 0, ["got a function"] = print, ["contains itself"] = cyclic, ["got a userdata"] = { knl.device{} } } do
      local r, o = result_of(function() return value end)
      assert.equal("ok", o.status, text)
      assert.is_false(r.ok, text)
      assert.matches(text, r.result)
    end
  end)

  it("has its text mended when it is not UTF-8", function()
    local r, _, s = result_of(function() return "a\255" end)
    assert.equal("a\239\191\189", r.result)
    assert.equal(1, s:view("tail", { n = 1 })[1].meta.mended)
  end)

  it("that answers too much is a failed call that says so", function()
    local r, o = result_of(function() return ("x"):rep(17 * 1024 * 1024) end)
    assert.equal("ok", o.status)
    assert.is_true(r.too_large)
    assert.matches("the limit is", r.result)
  end)

  it("that is unknown is answered with the names there are", function()
    local o, s = call({ { "tt" } }, { b = { handler = print }, a = { handler = print } })
    assert.is_false(o.out.tools[1].ok)
    assert.matches('tool "tt" not found: the tools are a, b', results(s)[1].result)
  end)

  it("with a timeout is ended by it", function()
    local r, o = result_of(function() std.time.sleep(600) end, nil, { timeout = 0.01 })
    assert.equal("ok", o.status)
    assert.is_true(r.timed_out)
    assert.matches("timed out", r.result)
  end)

  it("with a timeout knows its deadline", function()
    local deadline
    result_of(function(_, ctx) deadline = ctx.deadline end, nil, { timeout = 60 })
    assert.near(std.time.now() + 60, deadline, 30)
  end)

  it("that is strict runs only with arguments that match", function()
    local schema = { type = "object", properties = { path = { type = "string" } },
      required = { "path" }, additionalProperties = false }
    local ran = 0
    local function handler() ran = ran + 1 end
    for _, args in ipairs{ { path = 5 }, { pth = "x" }, { path = "x", more = 1 } } do
      local r = result_of(handler, args, { strict = true, input_schema = schema })
      assert.is_false(r.ok)
      assert.is_true(r.bad_args)
      assert.matches("do not match", r.result)
    end
    assert.equal(0, ran)
    assert.is_true(result_of(handler, { path = "x" }, { strict = true, input_schema = schema }).ok)
    result_of(handler, { path = 5 }, { input_schema = schema })
    assert.equal(2, ran)
  end)

  it("is not run with arguments that are no JSON object", function()
    local o, s = call({ { name = "t", args = '{"a":' } },
      { t = { handler = function() error("must not run") end } })
    assert.equal("ok", o.status)
    local r = results(s)[1]
    assert.is_false(r.ok)
    assert.is_true(r.malformed)
  end)

  it("may sleep, spawn tasks and catch errors", function()
    local r = result_of(function()
      local ok, err = pcall(function()
        std.time.sleep(0.001)
        error("inner", 0)
      end)
      local task = std.task.spawn(function() return err end)
      return { ok = ok, err = task:join() }
    end)
    assert.same({ ok = false, err = "inner" }, r.result)
  end)

  it("marked parallel runs beside its neighbours, and records keep the order", function()
    local order = {}
    local function handler(args)
      while args.n == 1 and #order == 0 do
        std.task.sleep(1)
      end
      order[#order + 1] = args.n
      return args.n
    end
    local o, s = call({ { "t", { n = 1 } }, { "t", { n = 2 } } },
      { t = { handler = handler, parallel = true } })
    assert.same({ 2, 1 }, order)
    assert.same({ 1, 2 }, { results(s)[1].result, results(s)[2].result })
    assert.equal(2, #o.out.tools)
  end)

  it("not marked runs after the one before", function()
    local running, most = 0, 0
    local function handler()
      running = running + 1
      most = math.max(most, running)
      std.task.sleep(1)
      running = running - 1
    end
    call({ { "t" }, { "t" }, { "t" } }, { t = { handler = handler } })
    assert.equal(1, most)
  end)

  it("has an id used once, made by the kernel when the model gives none", function()
    local o = call({ { name = "t", id = "x" }, { name = "t", id = "x" }, { name = "t", id = "" } },
      { t = { handler = function() end } })
    local ids = o.out.tools
    assert.equal("x", ids[1].call_id)
    assert.matches("^" .. o.out.beat .. "/", ids[2].call_id)
    assert.matches("^" .. o.out.beat .. "/", ids[3].call_id)
    assert.is_false(ids[2].call_id == ids[3].call_id)
  end)
end)

describe("a tool policy", function()
  local function under(policy, calls)
    local ran = {}
    local function handler(args) ran[#ran + 1] = args.n end
    local o, s = call(calls or { { "t", { n = 1 } } }, { t = { handler = handler } },
      { tool_policy = policy })
    return o, s, ran
  end

  it("lets a call run by nothing and by run", function()
    local _, _, ran = under(function() end)
    assert.same({ 1 }, ran)
    _, _, ran = under(function() return "run" end)
    assert.same({ 1 }, ran)
  end)

  it("sees the call and the answer, all calls before any runs", function()
    local asked = {}
    local _, _, ran = under(function(block, answer)
      asked[#asked + 1] = block.name .. block.input.n .. #answer.content
    end, { { "t", { n = 1 } }, { "t", { n = 2 } } })
    assert.same({ "t12", "t22" }, asked)
    assert.same({ 1, 2 }, ran)
  end)

  it("denies with a reason that the model reads", function()
    local o, s, ran = under(function(block) return block.input.n == 1 and "deny" or nil,
      "not today" end, { { "t", { n = 1 } }, { "t", { n = 2 } } })
    assert.equal("ok", o.status)
    assert.same({ 2 }, ran)
    assert.equal("denied by policy: not today", results(s)[1].result)
    assert.is_true(results(s)[1].denied)
    _, s = under(function() return "deny" end)
    assert.equal("denied by policy", results(s)[1].result)
  end)

  it("that raises denies", function()
    local o, s, ran = under(function() error("cannot tell") end)
    assert.equal("ok", o.status)
    assert.same({}, ran)
    assert.matches("the policy raised: .*cannot tell", results(s)[1].result)
  end)

  it("that says anything else is error/conf and nothing runs", function()
    for _, said in ipairs{ "skip", "allow", true, false, 1, "", {} } do
      local o, _, ran = under(function() return said end)
      assert.equal("conf", o.kind, tostring(said))
      assert.matches("tool_policy", o.detail.message)
      assert.same({}, ran)
    end
  end)
end)
