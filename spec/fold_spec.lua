-- The fold: the conversation that events make, pair-closed whatever they are.

local knl, ports = require("knl"), require("ports")

local function user(text) return { kind = "msg_user", data = { content = text } } end

local function call(id, name) return { type = "tool_use", id = id, name = name or "t",
  input = {} } end

local function reply(beat, ...) return { kind = "llm_response", beat = beat,
  data = { content = { ... }, usage = {} } } end

local function result(beat, id, value, ok)
  return { kind = "tool_result", beat = beat,
    data = { call_id = id, ok = ok ~= false, result = value } }
end

local function roles(request)
  local out = {}
  for i, m in ipairs(request.messages) do
    out[i] = m.role
  end
  return table.concat(out, " ")
end

-- Every call of a request has exactly one result, right behind it.
local function pair_closed(request)
  local open = {}
  for _, m in ipairs(request.messages) do
    local blocks = type(m.content) == "table" and m.content or {}
    local answered = {}
    for _, b in ipairs(blocks) do
      if b.type == "tool_result" then
        assert.truthy(open[b.tool_use_id], b.tool_use_id)
        assert.is_nil(answered[b.tool_use_id], b.tool_use_id)
        answered[b.tool_use_id] = true
      end
    end
    for id in pairs(open) do
      assert.is_true(answered[id], id)
    end
    open = {}
    for _, b in ipairs(blocks) do
      if b.type == "tool_use" then
        open[b.id] = true
      end
    end
  end
  assert.is_nil(next(open))
end

describe("knl.fold", function()
  it("makes messages of what was said and skips the rest", function()
    local request = knl.fold{
      { kind = "session_opened", data = { owner = "x" } },
      user("go"),
      { kind = "note", data = { content = "not said" } },
      reply("b1", { type = "text", text = "hello" }),
      { kind = "llm_call_failed", data = { error = "x" } },
    }
    assert.same({
      { role = "user", content = "go" },
      { role = "assistant", content = { { type = "text", text = "hello" } } },
    }, request.messages)
    assert.is_nil(request.system)
    assert.is_nil(request.tools)
  end)

  it("puts results behind their calls, in the order of the calls", function()
    local request = knl.fold{
      user("go"), reply("b", call("1"), call("2")), result("b", "2", { n = 1 }), result("b", "1",
        "text", false), reply("c"),
    }
    assert.equal("user assistant user assistant", roles(request))
    assert.same({
      { type = "tool_result", tool_use_id = "1", content = "text", is_error = true },
      { type = "tool_result", tool_use_id = "2", content = '{"n":1}' },
    }, request.messages[3].content)
    assert.same({}, request.messages[4].content)
  end)

  it("closes a call without a result as interrupted, after the real ones", function()
    local request = knl.fold{ user("go"), reply("b", call("1"), call("2")), result("b", "1", "ok") }
    local blocks = request.messages[3].content
    assert.equal("ok", blocks[1].content)
    assert.is_true(blocks[2].is_error)
    assert.matches("interrupted", blocks[2].content)
  end)

  it("defers what the user said between a call and its result", function()
    local request = knl.fold{ user("go"), reply("b", call("1")), user("hurry"),
      result("b", "1", "ok") }
    assert.equal("ok", request.messages[3].content[1].content)
    assert.equal("hurry", request.messages[4].content)
  end)

  it("places a result only with the call of its own beat, and once", function()
    local request = knl.fold{
      result("z", "9", "orphan"), user("go"), reply("b", call("1")), result("c", "1",
        "of another beat"),
      result("b", "1", "first"), result("b", "1", "second"),
    }
    pair_closed(request)
    assert.equal("first", request.messages[3].content[1].content)
    assert.equal(3, #request.messages)
  end)

  it("gives a call id that occurs twice two names", function()
    local request = knl.fold{
      user("go"), reply("b", call("1")), result("b", "1", "one"), reply("c", call("1")), result("c",
        "1", "two"),
    }
    pair_closed(request)
    assert.is_false(request.messages[2].content[1].id == request.messages[4].content[1].id)
    assert.equal("two", request.messages[5].content[1].content)
  end)

  it("is pair-closed on every beginning of a log", function()
    local events = {
      user("go"), reply("b", call("1"), call("2")), user("x"), result("b", "2", "b"), result("b",
        "1", "a"),
      reply("c", call("1"), { type = "text", text = "t" }), result("c", "1",
        "c"), user("y"), reply("d"),
    }
    for n = 0, #events do
      local part = {}
      for i = 1, n do
        part[i] = events[i]
      end
      pair_closed(knl.fold(part))
    end
  end)

  it("takes system and tools from a device, the tools sorted and without handlers", function()
    local device = knl.device{
      system = "be brief",
      tools = {
        b = { handler = print, description = "B" },
        a = { handler = print, input_schema = { type = "object", properties = {}, required = {} } },
      },
    }
    local request = knl.fold({ user("go") }, device)
    assert.equal("be brief", request.system)
    assert.same({ "a", "b" }, { request.tools[1].name, request.tools[2].name })
    assert.equal("B", request.tools[2].description)
    assert.is_nil(request.tools[1].handler)
    assert.equal('{"properties":{},"required":[],"type":"object"}',
      std.json.encode(request.tools[1].input_schema))
    assert.equal("[]", std.json.encode(knl.fold({}, knl.device{ tools = {} }).tools))
  end)

  it("is empty for nothing", function()
    assert.equal('{"messages":[]}', std.json.encode(knl.fold()))
    assert.equal('{"messages":[]}', std.json.encode(knl.fold({})))
    assert.same({}, knl.fold(nil, nil).messages)
  end)

  it("tolerates events that are none", function()
    assert.same({ messages = {} }, knl.fold{ 5, "x", {}, { kind = 5 }, { kind = "msg_user" }, { kind = "llm_response", data = 5 },
      { kind = "tool_result", data = {} }, { kind = "msg_user", data = { 1, 2 } } })
  end)

  it("refuses what is no list, and what JSON cannot say", function()
    assert.errors_at_line(function() knl.fold("x") end, 0, 'knl.fold: events: got "x", want a list')
    assert.errors_at_line(function() knl.fold{ user(0 / 0) } end, 0,
      "events[1].data.content: got NaN")
  end)

  it("makes the same bytes of the same events", function()
    local events = { user("go"), reply("b", call("1"), call("2")),
      result("b", "1", { z = 1, a = 2 }) }
    assert.equal(std.json.encode(knl.fold(events)), std.json.encode(knl.fold(events)))
  end)

  it("takes the events of a session as they are", function()
    local s = knl.open{ store = "mem" }
    s:append(user("go"))
    local o = knl.beat(s, knl.device{ llm = ports.script{ { text = "x" } }:open() })
    local request = knl.fold((s:events()))
    assert.equal("user assistant", roles(request))
    assert.same(s:request(o.out.beat).messages[1], request.messages[1])
  end)
end)

describe("a device's fold", function()
  local function beat(fold)
    local s = knl.open{ store = "mem" }
    s:append(user("one"))
    s:append(user("two"))
    local o = knl.beat(s,
      knl.device{ llm = ports.script{ { text = "x" } }:open(), fold = fold, system = "sys" })
    return o, s
  end

  it("gets the log and the device, and its request is sent", function()
    local o, s = beat(function(events, device)
      local last = events[#events]
      return { messages = { { role = "user", content = last.data.content } },
        system = device.system .. "!" }
    end)
    assert.same({ messages = { { role = "user", content = "two" } }, system = "sys!" },
      s:request(o.out.beat))
  end)

  it("may hand on a part of the log", function()
    local o, s = beat(function(events, device) return knl.fold({ events[3] }, device) end)
    assert.same({ { role = "user", content = "two" } }, s:request(o.out.beat).messages)
  end)

  it("may hand on all of it untouched", function()
    local o, s = beat(function(events, device) return knl.fold(events, device) end)
    assert.equal(2, #s:request(o.out.beat).messages)
  end)

  it("that raises or answers no request is error/conf, and nothing is recorded", function()
    for name, fold in pairs{
      raises = function() error("cannot fold") end,
      ["nothing"] = function() end,
      text = function() return "x" end,
      ["no messages"] = function() return { messages = 5 } end,
    } do
      local o, s = beat(fold)
      assert.same({ "error", "conf" }, { o.status, o.kind }, name)
      assert.matches("fold", o.detail.message)
      assert.equal(3, s:len(), name)
    end
  end)
end)
