-- policy.result_cap: no result larger than the model has room for.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

-- The characters of what the messages of a request hold.
local function characters(request)
  local n = 0
  for _, message in ipairs(request.messages) do
    for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
      n = n + #(block.text or block.source.data)
    end
    n = n + (type(message.content) == "string" and #message.content or 0)
  end
  return n
end

-- A port whose tokens are characters, 1000 of them in a window.
local function port()
  return {
    profile = function() return { context_window = 1000 } end,
    count = function(_, request) return characters(request) end,
  }
end

local function capped(result, opts)
  opts = opts or {}
  opts.port = opts.room == nil and port() or nil
  local tools = policy.result_cap(opts)({ t = { handler = function() return result end } })
  return tools.t.handler({}, {})
end

-- Runs one beat that calls tools and answers its results and the session.
local function beat(calls, tools)
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  local o = knl.beat(s, knl.device{ llm = ports.script{ { calls = calls } }:open(), tools = tools })
  assert.equal("ok", o.status)
  local out = {}
  for i, event in ipairs((s:scan{ kinds = { "tool_result" } })) do
    out[i] = event.data.result
  end
  return out, s, o
end

describe("policy.result_cap", function()
  it("lets a result pass untouched that takes no more than its share", function()
    assert.equal(("x"):rep(250), capped(("x"):rep(250)))
    assert.equal(251, capped(("x"):rep(251)).tokens)
    assert.equal(500, #capped(("x"):rep(500), { share = 0.5 }))
    assert.equal(1000, #capped(("x"):rep(1000), { share = 1 }))
    local refusal = { ok = false, reason = "no", message = "not today" }
    assert.equal(refusal, capped(refusal))
    assert.equal(true, capped(true))
    assert.equal(knl.null, capped(knl.null))
  end)

  it("answers in place of a larger one what the model can act on", function()
    local said = capped(("x"):rep(300))
    assert.same({ ok = false, reason = "result_too_large", tokens = 300, limit = 250,
      error = said.error }, said)
    assert.matches("takes 300 tokens and the limit is 250: ask for less", said.error)
  end)

  it("measures what the model would read: text as it is, else JSON", function()
    assert.equal(300, capped(("\n"):rep(300)).tokens)
    assert.equal(#'{"a":"' + 300 + #'"}', capped({ a = ("x"):rep(300) }).tokens)
    assert.equal(#'{"a":"' + 600 + #'"}', capped({ a = ("\n"):rep(300) }).tokens)
  end)

  it("measures a list of content blocks as the blocks it is", function()
    assert.equal(320, capped({
      { type = "text", text = ("x"):rep(300) },
      { type = "image", source = { data = ("x"):rep(20) } },
    }).tokens)
    local fits = { { type = "image", source = { data = ("x"):rep(250) } } }
    assert.equal(fits, capped(fits))
  end)

  it("says the empty text for nothing", function()
    assert.equal("", capped(nil))
    assert.equal("", beat({ { "t" } }, policy.result_cap{ port = port() }({
      t = { handler = function() end } }))[1])
  end)

  it("leaves what cannot be recorded to the kernel", function()
    local p = port()
    p.count = function() error("must not be asked") end
    local tools = policy.result_cap{ port = p }({ t = { handler = function() return print end } })
    assert.equal(print, tools.t.handler({}, {}))
    local s = knl.open{ store = "mem" }
    tools = policy.result_cap{ port = port() }({ t = { handler = function() return 0 / 0 end } })
    knl.beat(s, knl.device{ llm = ports.script{ { calls = { { "t" } } } }:open(), tools = tools })
    assert.matches("NaN", s:scan{ kinds = { "tool_result" } }[1].data.result)
  end)

  it("hands the handler its arguments and raises what it raises", function()
    local args, ctx
    local tools = policy.result_cap{ port = port() }({
      t = { handler = function(a, c) args, ctx = a, c; return "r" end },
      f = { handler = function() error("it broke", 0) end },
    })
    assert.equal("r", tools.t.handler("the args", "the ctx"))
    assert.same({ "the args", "the ctx" }, { args, ctx })
    assert.equal("it broke", assert.has_error(function() tools.f.handler({}) end))
  end)

  it("keeps every other field of an entry, and changes neither map nor entry", function()
    local handler = function() return ("x"):rep(999) end
    local entry = { handler = handler, effects = "read", idempotent = true, parallel = true,
      timeout = 5, strict = true, description = "d", input_schema = { type = "object" } }
    local mine = { t = entry }
    local made = policy.result_cap{ port = port() }(mine)
    assert.equal(entry, mine.t)
    assert.equal(handler, entry.handler)
    for key, value in pairs(entry) do
      assert.equal(key ~= "handler", made.t[key] == value, key)
    end
    knl.device{ tools = made }
  end)

  it("takes the tools of a device", function()
    local device = knl.device{ tools = { t = { handler = function() return ("x"):rep(999) end } } }
    local tools = policy.result_cap{ port = port() }(device.tools)
    assert.equal("result_too_large", tools.t.handler({}, {}).reason)
  end)

  it("reads the profile at every call", function()
    local window = 100
    local p = port()
    p.profile = function() return { context_window = window } end
    local tool = policy.result_cap{ port = p }({
      t = { handler = function() return ("x"):rep(50) end },
    }).t
    assert.equal(25, tool.handler({}, {}).limit)
    window = 1000
    assert.equal(50, #tool.handler({}, {}))
  end)

  it("takes reserve from the room, as a window does", function()
    local said = capped(("x"):rep(201), { reserve = 200 })
    assert.equal(200, said.limit)
  end)

  it("fits what a model reads in a real beat", function()
    local script = ports.script{ { calls = { { "big" }, { "small" } } } }
    local conf = { context_window = 2000, max_tokens = 400 }
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "go" } }
    local tools = policy.result_cap{ port = script, conf = conf }({
      big = { handler = function() return ("word "):rep(5000) end },
      small = { handler = function() return "fine" end },
    })
    local o = knl.beat(s, knl.device{ llm = script:open(), tools = tools })
    assert.same({ true, true }, { o.out.tools[1].ok, o.out.tools[2].ok })
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.equal("result_too_large", rows[1].data.result.reason)
    assert.equal(400, rows[1].data.result.limit)
    assert.equal("fine", rows[2].data.result)
    assert.is_true(script:count(knl.fold(s:events())) < 1600)
  end)
end)

describe("policy.result_cap{ keep }", function()
  local function kept(text, opts)
    local tools = policy.result_cap{ port = port(), keep = true }({
      t = { handler = function() return text end },
    })
    return beat({ { "t" } }, tools)
  end

  it("records the whole text in the beat and names where", function()
    local text = ("0123456789"):rep(1000)
    local results, s, o = kept(text)
    local seq = results[1].kept.seq
    assert.equal(10000, results[1].kept.bytes)
    assert.matches(("(seq %d)"):format(seq), results[1].error)
    local event = s:scan{ from = seq, to = seq }[1]
    assert.same({ "result_kept", o.out.beat }, { event.kind, event.beat })
    assert.same({ call_id = o.out.tools[1].call_id, text = text }, event.data)
  end)

  it("keeps another result as its JSON", function()
    local results, s = kept({ a = ("x"):rep(300) })
    local event = s:scan{ from = results[1].kept.seq, to = results[1].kept.seq }[1]
    assert.equal('{"a":"' .. ("x"):rep(300) .. '"}', event.data.text)
  end)

  it("keeps nothing that fits", function()
    local results, s = kept("short")
    assert.equal("short", results[1])
    assert.equal(0, #s:scan{ kinds = { "result_kept" } })
  end)

  it("lets a tool read what was kept, in parts that fit", function()
    local s = knl.open{ store = "mem" }
    local tools = policy.result_cap{ port = port(), keep = true }({
      big = { handler = function() return ("x"):rep(400) .. ("y"):rep(200) end },
      read_kept = { effects = "read", handler = function(args, ctx)
        local kept = { kinds = { "result_kept" }, from = args.seq, to = args.seq }
        return ctx.session:scan(kept)[1].data.text:sub(args.from, args.to)
      end },
    })
    local device = knl.device{ tools = tools, llm = ports.script(function(_, ctx)
      if ctx.call == 0 then
        return { calls = { { "big" } } }
      end
      local kept = s:scan{ kinds = { "tool_result" } }[1].data.result.kept
      return { calls = { { "read_kept", { seq = kept.seq, from = 399, to = 402 } } } }
    end):open() }
    knl.beat(s, device)
    knl.beat(s, device)
    assert.equal("xxyy", s:scan{ kinds = { "tool_result" } }[2].data.result)
  end)

  it("leaves the conversation closed, and can be read after a resume", function()
    local results, s = kept(("x"):rep(5000))
    assert.equal(3, #knl.fold(s:events()).messages)
    local again = knl.resume{ session = s:id(), store = "mem" }
    local seq = results[1].kept.seq
    assert.equal(5000, #again:scan{ from = seq, to = seq }[1].data.text)
  end)

  it("needs the ctx of a beat", function()
    local tool = policy.result_cap{ port = port(), keep = true }({
      t = { handler = function() return ("x"):rep(999) end },
    }).t
    bad("policy.result_cap: keep needs the ctx that a beat hands to a handler, got none",
      function() tool.handler({}) end)
  end)
end)

describe("policy.result_cap under a room with beat_share", function()
  local function room(share)
    return policy.room{ port = port(), result_share = 0.3, beat_share = share }
  end

  local function run(calls, entry)
    entry.handler = function(args) return ("x"):rep(args.n) end
    return beat(calls, policy.result_cap{ room = room(0.5) }({ t = entry }))
  end

  it("gives each call what the results before it have left", function()
    local results = run({ { "t", { n = 300 } }, { "t", { n = 150 } }, { "t", { n = 51 } },
      { "t", { n = 10 } } }, { effects = "read" })
    assert.equal(300, #results[1])
    assert.equal(150, #results[2])
    assert.same({ 51, 50 }, { results[3].tokens, results[3].limit })
    assert.equal("result_too_large", results[4].reason)
  end)

  it("divides it between calls that run beside each other", function()
    local calls = {}
    for i, n in ipairs{ 125, 126, 125, 1 } do
      calls[i] = { "t", { n = n } }
    end
    local results = run(calls, { parallel = true })
    assert.equal(125, #results[1])
    assert.same({ 126, 125 }, { results[2].tokens, results[2].limit })
    assert.same({ 125, 1 }, { #results[3], #results[4] })
  end)

  it("begins anew with each beat", function()
    local s = knl.open{ store = "mem" }
    local replies = { { calls = { { "t", { n = 300 } } } }, { calls = { { "t", { n = 300 } } } } }
    local tools = policy.result_cap{ room = room(0.3) }({
      t = { handler = function(args) return ("x"):rep(args.n) end },
    })
    local device = knl.device{ llm = ports.script(replies):open(), tools = tools }
    knl.beat(s, device)
    knl.beat(s, device)
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.same({ 300, 300 }, { #rows[1].data.result, #rows[2].data.result })
  end)

  it("finds its beat behind others that a caller stamped", function()
    local s = knl.open{ store = "mem" }
    local tools = policy.result_cap{ room = room(0.3) }({
      t = { handler = function(args, ctx)
        for i = 1, 5 do
          ctx.session:append{ kind = "note", beat = "mine-" .. args.n .. i }
        end
        return ("x"):rep(args.n)
      end },
    })
    knl.beat(s, knl.device{ tools = tools,
      llm = ports.script{ { calls = { { "t", { n = 200 } }, { "t", { n = 101 } } } } }:open() })
    assert.equal(100, s:scan{ kinds = { "tool_result" } }[2].data.result.limit)
  end)
end)

describe("the tools of policy.result_cap", function()
  it("are a map of entries with handlers", function()
    local cap = policy.result_cap{ port = port() }
    bad("policy.result_cap: tools must be a map from name to entry, got nil", function() cap() end)
    bad("policy.result_cap: tools must be a map from name to entry, got userdata",
      function() cap(knl.device{}) end)
    bad("policy.result_cap: tools must be a map from name to entry, got the key 1",
      function() cap{ { handler = print } } end)
    bad('policy.result_cap: tool "read" must be a table with a handler, got function',
      function() cap{ read = print } end)
    bad('policy.result_cap: tool "read" has no handler, want a function, got nil',
      function() cap{ read = { effects = "read" } } end)
    bad('policy.result_cap: tool "read" has no handler, want a function, got string',
      function() cap{ read = { handler = "x" } } end)
    assert.same({}, cap{})
  end)
end)

describe("the options of policy.result_cap", function()
  it("are checked by name, type and bound", function()
    local p = port()
    for text, opts in pairs{
      ["unknown option 'shar' (did you mean 'share'?)"] = { port = p, shar = 0.5 },
      ["unknown option 'session' (the session is in the ctx of a handler)"] =
        { port = p, session = 5 },
      ["port must be a port, got boolean"] = { port = false },
      ["conf must be a table, got number"] = { port = p, conf = 5 },
      ["reserve must be a whole number >= 0, got -1"] = { port = p, reserve = -1 },
      ["share must be a number, got \"0.5\""] = { port = p, share = "0.5" },
      ["share must be a number, got false"] = { port = p, share = false },
      ["share must be a number above 0 and at most 1, got 0"] = { port = p, share = 0 },
      ["share must be a number above 0 and at most 1, got 1.01"] = { port = p, share = 1.01 },
      ["share must be a finite number, got nan"] = { port = p, share = 0 / 0 },
      ["keep must be true or false, got 1"] = { port = p, keep = 1 },
      ["room and share both given, want one: a room has its own result_share"] =
        { room = policy.room{ port = p }, share = 0.5 },
    } do
      bad("policy.result_cap: " .. text, function() policy.result_cap(opts) end)
    end
    bad("policy.result_cap: opts must be a table "
      .. "{ port, conf?, reserve?, share?, keep? } or { room, keep? }, got nil",
      function() policy.result_cap() end)
  end)
end)

describe("a port that answers nonsense", function()
  it("fails the call of the tool, and the beat goes on", function()
    local p = port()
    p.count = function() return -3 end
    local s = knl.open{ store = "mem" }
    local tools = policy.result_cap{ port = p }({ t = { handler = function() return "r" end } })
    local llm = ports.script{ { calls = { { "t" } } } }:open()
    local o = knl.beat(s, knl.device{ llm = llm, tools = tools })
    assert.equal("ok", o.status)
    assert.is_false(o.out.tools[1].ok)
    assert.matches("port:count() must answer a whole number >= 0, got -3",
      s:scan{ kinds = { "tool_result" } }[1].data.result)
  end)
end)
