-- policy.carry: a note on what failed in the beat before.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local HEAD = "The previous beat did not complete. "

local function user(text) return { kind = "msg_user", data = { content = text } } end

-- A session that holds these events after its opening.
local function session_of(...)
  local s = knl.open{ store = "mem" }
  for _, event in ipairs{ ... } do
    s:append(event)
  end
  return s
end

local function result(beat, id, value, ok)
  return { kind = "tool_result", beat = beat, data = { call_id = id, result = value, ok = ok } }
end

local function call(beat, id, name, args)
  return { kind = "tool_call", beat = beat,
    data = { call_id = id, name = name, args = args or {} } }
end

local function failed_call(beat, text)
  return { kind = "llm_call_failed", beat = beat, data = { kind = "server", error = text } }
end

local request = { messages = { { role = "user", content = "go" } }, system = "s" }

-- The note that a filter puts into the request, nil when it leaves it alone.
local function note(s, opts)
  local out = policy.carry(opts)(s)(request)
  return out ~= request and out.messages[1].content or nil
end

describe("policy.carry", function()
  it("leaves the request alone, the very same table, when nothing failed", function()
    local filter = policy.carry()(session_of(user("x")))
    assert.is_true(filter(request) == request)
    filter = policy.carry{}(session_of(call("a", "1", "look"), result("a", "1", "seen", true)))
    assert.is_true(filter(request) == request)
  end)

  it("tells of a model call that failed, with its kind", function()
    assert.equal(HEAD .. "the model call failed (server): it broke",
      note(session_of(failed_call("a", "it broke"))))
  end)

  it("tells of a tool that failed, by its name", function()
    local s = session_of(call("a", "1", "look"), result("a", "1", "no such file", false))
    assert.equal(HEAD .. "tool look failed: no such file", note(s))
  end)

  it("names no tool when the log has no call", function()
    assert.equal(HEAD .. "a tool call failed: lost",
      note(session_of(result("a", "1", "lost", false))))
    assert.equal(HEAD .. "a tool call failed: nil",
      note(session_of({ kind = "tool_result", beat = "a", data = { ok = false } })))
  end)

  it("joins reasons by a semicolon, in log order", function()
    local s = session_of(call("a", "1", "x"), call("a", "2", "y"), result("a", "1", "one", false),
      result("a", "2", "two", false), failed_call("a", "three"))
    local want = "the model call failed (server): three; tool x failed: one; tool y failed: two"
    assert.equal(HEAD .. want, note(s))
  end)

  it("tells of the last beat only", function()
    local s = session_of(result("a", "1", "old", false), result("b", "2", "fine", true))
    assert.is_nil(note(s))
    s:append(result("c", "3", "new", false))
    assert.equal(HEAD .. "a tool call failed: new", note(s))
  end)

  it("renders what is no text the same each time", function()
    local s = session_of(result("a", "1", { b = { 1, "1", true }, a = { x = knl.null } }, false))
    assert.equal(HEAD .. 'a tool call failed: {"a":{"x":null},"b":[1,"1",true]}', note(s))
  end)

  it("takes a cut and a refused reply for a reply", function()
    for _, reply in ipairs{ { text = "cut", truncated = true }, { refuse = "no" } } do
      local s = session_of(user("go"))
      knl.beat(s, knl.device{ llm = ports.script{ reply }:open() })
      assert.is_nil(note(s))
    end
  end)

  it("does not see a call that has no result yet", function()
    local s = session_of(call("a", "1", "look"))
    assert.is_nil(note(s))
    assert.is_nil(note(s, { failed = function() return true end }))
  end)

  it("takes the first result of a call, or that of the run after an interruption", function()
    assert.is_nil(note(session_of(call("a", "1", "look"), result("a", "1", "x", true),
      result("a", "1", "late", false))))
    local cut = result("a", "1", "interrupted", false)
    cut.data.interrupted = true
    local s = session_of(call("a", "1", "look"), cut)
    assert.equal(HEAD .. "tool look failed: interrupted", note(s))
    s:append(result("a", "1", "done", true))
    assert.is_nil(note(s))
  end)

  it("goes into the next request of a device, and into no log", function()
    local s = session_of(user("go"))
    local device = knl.device{
      llm = ports.script{ { calls = { { "look" } } }, { text = "ok" } }:open(),
      tools = { look = { handler = function() error("cannot look", 0) end } },
      filters = { policy.carry()(s) },
    }
    knl.beat(s, device)
    local o = knl.beat(s, device)
    local sent = s:request(o.out.beat)
    assert.equal(HEAD .. 'tool look failed: tool "look" raised: cannot look',
      sent.messages[1].content)
    assert.equal("go", sent.messages[2].content)
    assert.equal("go", knl.fold((s:events())).messages[1].content)
  end)

  it("reads the log at each call, so that a resumed session is told too", function()
    local s = session_of(failed_call("a", "x"))
    s = knl.resume{ session = s:id(), store = "mem" }
    assert.equal(HEAD .. "the model call failed (server): x", note(s))
  end)
end)

describe("failed", function()
  local s = session_of(call("a", "1", "look", { n = 1 }), result("a", "1", "bad", true),
    call("a", "2", "x"), result("a", "2", "flagged", false))

  it("decides for every pair, flagged ones included", function()
    assert.equal(HEAD .. "tool look failed: bad",
      note(s, { failed = function(p) return p.result == "bad" end }))
    assert.is_nil(note(s, { failed = function() return false end }))
    assert.is_nil(note(s, { failed = function() end }))
  end)

  it("is handed the call with its result", function()
    local seen = {}
    note(s, { failed = function(p) seen[#seen + 1] = p end })
    assert.same({
      { beat = "a", call_id = "1", name = "look", input = { n = 1 }, result = "bad", ok = true },
      { beat = "a", call_id = "2", name = "x", input = {}, result = "flagged", ok = false },
    }, seen)
  end)

  it("does not decide over the model's call", function()
    local lost = session_of(failed_call("a", "x"))
    assert.equal(HEAD .. "the model call failed (server): x",
      note(lost, { failed = function() return false end }))
  end)

  it("is a function or what can be called", function()
    local callable = setmetatable({}, { __call = function(_, p) return p.name == "look" end })
    assert.equal(HEAD .. "tool look failed: bad", note(s, { failed = callable }))
  end)

  it("raises what it raises, and an answer that is none", function()
    assert.has_error(function() note(s, { failed = function() error("broken judge") end }) end,
      "broken judge")
    assert.has_error(function() note(s, { failed = function() return "yes" end }) end,
      "policy%.carry: failed must answer true or false, got string")
  end)
end)

describe("the note", function()
  local long = session_of(failed_call("a", ("€"):rep(300)))

  it("takes at most 512 bytes, or max_bytes, the marker of a cut included", function()
    assert.equal("...", note(long):sub(-3))
    assert.is_true(#note(long) <= 512 and #note(long) > 505)
    for max = 3, 120 do
      local text = note(long, { max_bytes = max })
      assert.is_true(#text <= max, max)
      assert.equal("...", text:sub(-3))
      assert.is_true(std.json.decode(std.json.encode{ text })[1] == text, "no character is split")
    end
    assert.equal("Th", note(long, { max_bytes = 2 }))
    assert.equal("T", note(long, { max_bytes = 1 }))
  end)

  it("is not cut when it fits exactly", function()
    local s = session_of(failed_call("a", "x"))
    local whole = note(s)
    assert.equal(whole, note(s, { max_bytes = #whole }))
    assert.equal("...", note(s, { max_bytes = #whole - 1 }):sub(-3))
  end)

  local pair = {
    { role = "user", content = "go" },
    { role = "assistant", content = { { type = "tool_use", id = "1", name = "t", input = {} } } },
    { role = "user", content = { { type = "tool_result", tool_use_id = "1", content = "seen" } } },
    { role = "user", content = "and now?" },
  }

  local function place(messages, at)
    local out = policy.carry{ at = at }(long)({ messages = messages })
    for i, m in ipairs(out.messages) do
      if type(m.content) == "string" and m.content:sub(1, 4) == "The " then
        return i
      end
    end
  end

  it("stands in front, or behind the last complete pair", function()
    assert.equal(1, place(pair))
    assert.equal(1, place(pair, "head"))
    assert.equal(4, place(pair, "tail"))
  end)

  it("stands at the end when there is no pair, and alone when there is nothing", function()
    assert.equal(2, place({ pair[1] }, "tail"))
    assert.equal(1, place({}, "tail"))
    assert.equal(1, place({}, "head"))
  end)

  it("is put into a request of its own: what is given stays as it is", function()
    local before = std.json.encode(request)
    local out = policy.carry()(long)(request)
    assert.equal(before, std.json.encode(request))
    assert.equal("s", out.system)
    assert.is_false(out.messages == request.messages)
  end)
end)

describe("the options of policy.carry", function()
  local function refuses(opts, text)
    assert.errors_at_line(function() policy.carry(opts) end, 0, "policy.carry: " .. text)
  end

  it("are a table, or nothing", function()
    for _, opts in ipairs{ 5, "x", true, false } do
      refuses(opts, "opts must be a table { max_bytes?, failed?, at? }, got " .. type(opts))
    end
    assert.equal("function", type(policy.carry()))
  end)

  it("are known by name and hold no session", function()
    refuses({ max_byte = 5 }, "unknown option 'max_byte' (did you mean 'max_bytes'?)")
    refuses({ session = knl.open{ store = "mem" } },
      "unknown option 'session' (the session is an argument: policy.carry{ … }(session))")
    refuses({ budget = {} },
      "unknown option 'budget' (a policy holds no state: it belongs to knl.open)")
  end)

  it("have a whole max_bytes, a callable failed, a known at", function()
    refuses({ max_bytes = 0 }, "max_bytes must be a whole number >= 1, got 0")
    refuses({ max_bytes = 1.5 }, "max_bytes must be a whole number >= 1, got 1.5")
    refuses({ max_bytes = "5" }, 'max_bytes must be a whole number >= 1, got "5"')
    refuses({ max_bytes = false }, "max_bytes must be a whole number >= 1, got false")
    refuses({ failed = 5 }, "failed must be a function, got number")
    refuses({ failed = false }, "failed must be a function, got false")
    refuses({ failed = { 1 } }, "failed must be a function, got table")
    refuses({ at = "middle" }, 'at must be one of "head", "tail", got "middle"')
    refuses({ at = false }, 'at must be one of "head", "tail", got false')
  end)

  it("are followed by a session", function()
    for name, v in pairs{ ["nil"] = false, table = {}, string = "x" } do
      assert.errors_at_line(function() policy.carry()(v or nil) end, 0,
        "policy.carry: session must be a session, got " .. name)
    end
  end)
end)
