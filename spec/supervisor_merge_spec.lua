-- supervisor.merge: a fold over several sessions.

local knl = require("knl")
local ports = require("ports")
local supervisor = require("supervisor")

local function open()
  return knl.open{ store = "mem", budget = { amount = 100 } }
end

local function said(text)
  local s = open()
  s:append{ kind = "msg_user", data = { content = text } }
  return s
end

local function texts(request)
  local out = {}
  for i, message in ipairs(request.messages) do
    local content = message.content
    out[i] = type(content) == "string" and content or content[1].text or content[1].type
  end
  return out
end

-- A session whose model called a tool; without its result when cut.
local function called(id, result)
  local s = open()
  s:append{ kind = "msg_user", data = { content = "look " .. id } }
  s:append{ kind = "llm_response", beat = "b1", data = { content = {
    { type = "tool_use", id = id, name = "look", input = {} },
  } } }
  if result then
    s:append{ kind = "tool_result", beat = "b1",
      data = { call_id = id, ok = true, result = result } }
  end
  return s
end

local function fold(parent, sessions, opts)
  return supervisor.merge(parent, sessions, opts)(parent:events())
end

describe("supervisor.merge", function()
  it("folds the sessions in the order given and the parent last", function()
    local up, a, b = said("up"), said("a"), said("b")
    assert.same({ "b", "a", "up" }, texts(fold(up, { b, a:id() })))
  end)

  it("emits an id that is listed twice twice, and nothing for one that is unknown", function()
    local up, a = said("up"), said("a")
    assert.same({ "a", "a", "up" }, texts(fold(up, { a, "01UNKNOWN", a:id() })))
  end)

  it("reads sessions that have ended, at every fold anew", function()
    local up, a = said("up"), said("a")
    local merged = supervisor.merge(up, { a })
    a:append{ kind = "msg_user", data = { content = "more" } }
    a:close()
    assert.same({ "a", "more", "up" }, texts(merged(up:events())))
  end)

  it("folds each session by itself: no result answers a call of another", function()
    local request = fold(said("up"), { called("c1"), called("c1", "found") })
    local results = {}
    for _, message in ipairs(request.messages) do
      local block = type(message.content) == "table" and message.content[1] or {}
      if block.type == "tool_result" then
        results[#results + 1] = { block.tool_use_id, block.content }
      end
    end
    assert.equal(2, #results)
    assert.equal("c1", results[1][1])
    assert.matches("interrupted", std.json.encode(results[1][2]))
    assert.same({ "c1_2", "found" }, results[2])
  end)

  it("renames a call id that is taken on both halves", function()
    local a = called("c1", "found")
    local request = fold(called("c1", "mine"), { a, a, called("c1_2", "other") })
    local pairs_of = {}
    for i, message in ipairs(request.messages) do
      local block = type(message.content) == "table" and message.content[1] or {}
      if block.type == "tool_use" then
        assert.equal(block.id, request.messages[i + 1].content[1].tool_use_id)
        pairs_of[#pairs_of + 1] = block.id
      end
    end
    assert.same({ "c1", "c1_2", "c1_2_2", "c1_3" }, pairs_of)
  end)

  it("gives no call a name that its own conversation uses", function()
    local two = called("c1", "one")
    two:append{ kind = "llm_response", beat = "b2", data = { content = {
      { type = "tool_use", id = "c1_2", name = "look", input = {} },
    } } }
    local ids = {}
    for _, message in ipairs(fold(said("up"), { called("c1", "x"), two }).messages) do
      local block = type(message.content) == "table" and message.content[1] or {}
      ids[#ids + 1] = block.id
    end
    assert.same({ "c1", "c1_3", "c1_2" }, ids)
  end)

  it("takes logs that hold anything", function()
    local odd = open()
    for _, content in ipairs{ {}, { knl.null, 7, "x", {} }, { { type = "tool_use" } },
      { { type = 7, id = {} } }, { { type = "tool_use", id = { "a" }, name = "x" } } } do
      odd:append{ kind = "llm_response", beat = "b1", data = { content = content } }
      odd:append{ kind = "msg_user", data = { content = content } }
    end
    assert.equal("table", type(fold(said("up"), { odd, odd }).messages))
  end)

  it("takes system and tools from the device, once", function()
    local device = knl.device{ system = "be brief", tools = { look = { handler = print } } }
    local up = said("up")
    local request = supervisor.merge(up, { said("a") })(up:events(), device)
    assert.equal("be brief", request.system)
    assert.same({ "look" }, { request.tools[1].name })
    assert.equal(1, #request.tools)
    assert.is_nil(fold(up, { said("a") }).system)
  end)

  it("tags the messages as an array, empty ones too", function()
    local up = open()
    assert.equal("[]", std.json.encode(fold(up, { open() }).messages))
    assert.equal("array", getmetatable(fold(up, { said("a") }).messages).__jsontype)
  end)

  it("makes the request of a beat, which the parent records as its own", function()
    local port = ports.script{ { text = "read" } }
    local up, a = said("up"), called("c1", "found")
    local device = knl.device{ llm = port:open(), fold = supervisor.merge(up, { a, a }) }
    local before = a:len()
    local o = knl.beat(up, device)
    assert.equal("ok", o.status)
    assert.equal(7, #up:request(o.out.beat).messages)
    assert.equal(before, a:len())
  end)

  it("refuses a session of more rows than limit, each by itself", function()
    local up, a, b = said("up"), said("a"), said("b")
    assert.same({ "a", "b", "up" }, texts(fold(up, { a, b }, { limit = 3 })))
    local raised = assert.has_error(function() fold(up, { a, b }, { limit = 2 }) end)
    assert.equal("supervisor.merge: the read hit the row limit — session " .. a:id()
      .. " has more than 2 events: raise limit, or merge what it came to", raised)
    local o = knl.beat(up, knl.device{
      llm = ports.script{ { text = "x" } }:open(),
      fold = supervisor.merge(up, { a }, { limit = 1 }),
    })
    assert.equal("error", o.status)
    assert.matches("hit the row limit", o.detail.message)
  end)

  it("ends a read that takes longer than timeout_ms", function()
    local up = said("up")
    local slow = setmetatable({ scan = function() std.time.sleep(3600) end },
      { __index = function(_, name) return up[name] end })
    local raised = assert.has_error(function()
      fold(up, { "x" }, { timeout_ms = 60000 })
      supervisor.merge(slow, { "x" }, { timeout_ms = 20 })({})
    end, "exceeded 20 ms")
    assert.equal("timeout", knl.error(raised).kind)
  end)

  it("raises what a read raises, and runs without the nursery when it needs none", function()
    local up = said("up")
    stub(std, "task")
    std.task = false
    assert.same({ "up" }, texts(fold(up, { "x" })))
    assert.errors_at_line(function() supervisor.merge(up, { "x" }, { timeout_ms = 5 }) end, 0,
      "supervisor.merge: std.task is not available in this VM (it is the host's nursery)")
    local broken = setmetatable({ scan = function() error("no disk", 0) end },
      { __index = function(_, name) return up[name] end })
    local merged = supervisor.merge(broken, { "x" })
    assert.equal("no disk", assert.has_error(function() merged({}) end))
  end)

  it("keeps the ids it was given, whatever is done to the list", function()
    local up, list = said("up"), { said("a") }
    local merged = supervisor.merge(up, list)
    list[1] = nil
    assert.same({ "a", "up" }, texts(merged(up:events())))
  end)
end)
