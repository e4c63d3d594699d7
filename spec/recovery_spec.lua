-- Recovery: a beat that its driver did not live to end. Here a tool takes its
-- own session over, as another process would.

local knl, ports = require("knl"), require("ports")

local function refused(kind, text, o)
  assert.equal("error", o.status)
  assert.equal("state", o.kind)
  assert.equal(kind, o.detail.kind)
  assert.matches(text, o.detail.message)
end

-- A session whose beat was cut while the first of two calls ran; the tool is
-- declared as entry says.
local function cut(entry)
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  local ran, again = {}, nil
  local t = { handler = function(args)
    ran[#ran + 1] = args.n
    if not again then
      again = knl.resume{ session = s:id() }
    end
    return "did " .. args.n
  end }
  for k, v in pairs(entry or {}) do
    t[k] = v
  end
  local device = knl.device{
    llm = ports.script{ { calls = { { "t", { n = 1 } }, { "t", { n = 2 } } } },
      { text = "done" } }:open(),
    tools = { t = t },
  }
  local o = knl.beat(s, device)
  refused("fenced", "", o)
  return again, device, ran, o
end

describe("session:interrupted", function()
  it("is nil when nothing was", function()
    local s = knl.open{ store = "mem" }
    assert.is_nil(s:interrupted())
    knl.beat(s, knl.device{ llm = ports.script{ { text = "x" } }:open() })
    assert.is_nil(s:interrupted())
    assert.is_nil(knl.resume{ session = s:id() }:interrupted())
  end)

  it("names the beat, how far it came and the calls that are open", function()
    local s = cut()
    local i = s:interrupted()
    assert.equal("tools", i.stage)
    assert.equal(s:beats{ last = 1 }[1].id, i.beat)
    assert.same({ { "t", true }, { "t", false } },
      { { i.open_calls[1].name, i.open_calls[1].started }, { i.open_calls[2].name, i.open_calls[2].started } })
  end)

  it("has a record in the log, and every open call a result", function()
    local s = cut()
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.equal(2, #rows)
    for _, ev in ipairs(rows) do
      assert.is_false(ev.data.ok)
      assert.is_true(ev.data.interrupted)
    end
    assert.equal("tools", s:scan{ kinds = { "beat_interrupted" } }[1].data.stage)
    assert.same({}, (knl.views.open_calls(s)))
  end)

  it("keeps the answer of a beat that could not record its result", function()
    local _, _, _, o = cut()
    assert.equal("tool_use", o.detail.answer.content[1].type)
  end)

  it("says call when the answer never came", function()
    local s = knl.open{ store = "mem" }
    local again
    local o = knl.beat(s, knl.device{ llm = function()
      again = knl.resume{ session = s:id() }
      return { status = "ok", content = {}, usage = {} }
    end })
    refused("fenced", "", o)
    local i = again:interrupted()
    assert.equal("call", i.stage)
    assert.same({}, i.open_calls)
  end)

  it("is over with the next beat, which reads a closed conversation", function()
    local s, device, ran = cut()
    local o = knl.beat(s, device)
    assert.equal("ok", o.status)
    assert.is_nil(s:interrupted())
    assert.same({ 1 }, ran, "nothing is run again by itself")
    local blocks = s:request(o.out.beat).messages[3].content
    assert.matches("interrupted", blocks[1].content)
    assert.matches("did not take effect", blocks[2].content)
  end)
end)

describe("knl.rerun", function()
  it("runs a call again whose tool is idempotent, and its result stands", function()
    local s, device, ran = cut{ idempotent = true }
    for _, open in ipairs(s:interrupted().open_calls) do
      local o = knl.rerun(s, device, open.call_id)
      assert.equal("ok", o.status)
      assert.same({ { call_id = open.call_id, name = "t", ok = true } }, o.out.tools)
    end
    assert.same({ 1, 1, 2 }, ran)
    assert.same({}, s:interrupted().open_calls)
    local o = knl.beat(s, device)
    local blocks = s:request(o.out.beat).messages[3].content
    assert.same({ "did 1", "did 2" }, { blocks[1].content, blocks[2].content })
  end)

  it("refuses a call that may have taken effect, and runs one that was never started", function()
    local s, device, ran = cut()
    local open = s:interrupted().open_calls
    refused("refused", "not declared idempotent", knl.rerun(s, device, open[1].call_id))
    assert.equal("ok", knl.rerun(s, device, open[2].call_id).status)
    assert.same({ 1, 2 }, ran)
  end)

  it("refuses what is not open, and a tool that is gone", function()
    local s, device = cut{ idempotent = true }
    local id = s:interrupted().open_calls[1].call_id
    refused("validation", '"no-such"', knl.rerun(s, device, "no-such"))
    refused("validation", "does not have", knl.rerun(s, knl.device{ tools = {} }, id))
    assert.equal("ok", knl.rerun(s, device, id).status)
    refused("validation", "open call", knl.rerun(s, device, id))
    local whole = knl.open{ store = "mem" }
    refused("validation", "was not interrupted", knl.rerun(whole, device, "x"))
  end)

  it("answers mistakes in its arguments as error/conf, and wants an id", function()
    local s, device = cut()
    assert.equal("conf", knl.rerun(nil, device, "x").kind)
    assert.matches("knl.rerun: argument 2 (device)", knl.rerun(s, {}, "x").detail.message)
    assert.errors_at_line(function() knl.rerun(s, device) end, 0,
      "knl.rerun: argument 3 (call_id): got nil, want a string")
  end)
end)
