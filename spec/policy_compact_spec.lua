-- policy.compact and window{ from_summary }: long runs.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local PROMPT = "takes its place"

-- A model that calls a tool `steps` times and then says "done"; asked for
-- a summary it answers summary(call).
local function model(steps, summary)
  return ports.script(function(request, ctx)
    local last = request.messages[#request.messages]
    if type(last.content) == "string" and last.content:find(PROMPT, 1, true) then
      return { text = summary(ctx.call) }
    end
    if ctx.call >= steps then
      return { text = "done" }
    end
    return { text = "step " .. ctx.call, calls = { { "look", { i = ctx.call } } } }
  end)
end

local tools = { look = { effects = "read", handler = function() return ("seen "):rep(40) end } }

local function user(s, text) s:append{ kind = "msg_user", data = { content = text } } end

local function opened()
  local s = knl.open{ store = "mem" }
  user(s, "go")
  return s
end

-- A session with n beats under a fold.
local function driven(n, fold, s)
  s = s or opened()
  local device = knl.device{ llm = model(1e9, function() return "S" end):open(), tools = tools,
    fold = fold }
  for _ = 1, n do
    local o = knl.beat(s, device)
    assert.equal("ok", o.status, o.detail and o.detail.message)
  end
  return s, device
end

local function request_of_last(s)
  local rows = knl.views.beats(s)
  return s:request(rows[#rows].beat), rows[#rows].window
end

describe("a long run", function()
  -- The loop as a user writes it.
  local function run(s, port)
    local room = policy.room{ port = port, conf = { context_window = 2000, max_tokens = 200 } }
    local window = policy.window{ room = room, from_summary = true }
    local due, summary, record = policy.compact{ fold = window }
    local mark = policy.checkpoint{ every = 10 }
    local device = knl.device{ llm = port:open(), tools = tools, fold = window }
    local points, o = {}, nil
    repeat
      if due(s) then
        record(s, knl.beat(s, device:with{ fold = summary }))
      end
      o = knl.beat(s, device)
      points[#points + 1] = mark(s)
    until o.status ~= "ok" or #o.out.tools == 0
    return o, points
  end

  it("goes on past what a window holds, from summary to summary", function()
    local s = opened()
    local o, points = run(s, model(40, function(n) return "summary at " .. n end))
    assert.equal("done", o.out.content[1].text)
    assert.equal(4, #points)
    local summaries = s:scan{ kinds = { "summary" } }
    assert.equal(2, #summaries)
    local request, report = request_of_last(s)
    assert.equal("Summary of the conversation so far:\n\n" .. summaries[2].data.text,
      request.messages[1].content)
    assert.equal(summaries[2].seq, report.summary)
    for _, row in ipairs((knl.views.beats(s))) do
      assert.is_true(row.window.after <= 1800)
      assert.same({}, row.window.dropped)
    end
  end)

  it("goes on after a resume", function()
    local s = driven(12, policy.window{ tail = 100 })
    s = knl.resume{ session = s:id(), store = "mem" }
    local o = run(s, model(30, function() return "S" end))
    assert.equal("done", o.out.content[1].text)
  end)
end)

describe("due", function()
  local function share_window(tokens)
    return policy.window{ fit = { port = ports.script{},
      conf = { context_window = tokens, max_tokens = 1 } }, from_summary = true }
  end

  it("says dropped when the last request left beats out", function()
    local fold = policy.window{ tail = 3 }
    local due = policy.compact{ fold = fold, min_beats = 2 }
    local s = driven(4, fold)
    assert.is_nil(due(s))
    driven(1, fold, s)
    assert.equal("dropped", due(s))
  end)

  it("says share from 0.8 of the room on, or from at", function()
    local fold = share_window(1000)
    local s = driven(8, fold)
    local _, report = request_of_last(s)
    local share = report.after / report.limit
    assert.equal(999, report.limit)
    assert.is_true(share > 0.7 and share < 0.8, share)
    assert.is_nil(policy.compact{ fold = fold }(s))
    assert.equal("share", policy.compact{ fold = fold, at = share }(s))
    assert.is_nil(policy.compact{ fold = fold, at = share + 0.01 }(s))
    driven(1, fold, s)
    assert.equal("share", policy.compact{ fold = fold }(s))
  end)

  it("is silent for min_beats beats after the opening and after a summary", function()
    local fold = share_window(100000)
    local due, summary, record = policy.compact{ fold = fold, at = 0.0001 }
    local s, device = driven(3, fold)
    assert.is_nil(due(s))
    driven(1, fold, s)
    assert.equal("share", due(s))
    assert.equal("number", type(record(s, knl.beat(s, device:with{ fold = summary }))))
    assert.same({ through = s:len() - 7, left = 0 }, select(2, request_of_last(s)).compact)
    for _ = 1, 3 do
      driven(1, fold, s)
      assert.is_nil(due(s))
    end
    driven(1, fold, s)
    assert.equal("share", due(s))
  end)

  it("is silent after a summary that a script appended by hand", function()
    local fold = policy.window{ tail = 1 }
    local due = policy.compact{ fold = fold, min_beats = 2 }
    local s = driven(4, fold)
    assert.equal("dropped", due(s))
    s:append{ kind = "summary", data = { text = "by hand" } }
    assert.is_nil(due(s))
    driven(2, fold, s)
    assert.equal("dropped", due(s))
  end)

  it("is silent after a summary that says nothing, and marks the beat", function()
    local fold = policy.window{ tail = 1, from_summary = true }
    local due, summary, record = policy.compact{ fold = fold, min_beats = 2 }
    local s = driven(4, fold)
    assert.equal("dropped", due(s))
    local device = knl.device{ llm = ports.script(function() return { text = " \n" } end):open(),
      fold = summary }
    assert.is_nil(record(s, knl.beat(s, device)))
    assert.equal(0, #s:scan{ kinds = { "summary" } })
    local _, report = request_of_last(s)
    assert.same({ through = 6, left = 2 }, report.compact)
    assert.is_nil(due(s))
    driven(1, fold, s)
    assert.is_nil(due(s))
    driven(1, fold, s)
    assert.equal("dropped", due(s))
  end)

  it("is nil for an empty log, for a fold that says nothing and for a report of nonsense",
    function()
    local due = policy.compact{ fold = knl.fold, min_beats = 1 }
    assert.is_nil(due(knl.open{ store = "mem" }))
    assert.is_nil(due((driven(3))))
    for _, window in ipairs{ 5, "x", { dropped = 5 }, { after = "x", limit = 1 }, { after = 5 },
      { limit = 5 } } do
      local s = opened()
      s:append{ kind = "llm_request", beat = "b", data = { window = window } }
      assert.is_nil(due(s))
    end
    local s = opened()
    s:append{ kind = "llm_request", beat = "b", data = { window = { dropped = { "a" } } } }
    assert.equal("dropped", due(s))
  end)

  it("refuses what is no session", function()
    local due, _, record = policy.compact{ fold = knl.fold }
    assert.errors_at_line(function() due() end, 0,
      "policy.compact: session must be a session, got nil")
    assert.errors_at_line(function() due({}) end, 0,
      "policy.compact: session must be a session, got table")
    assert.errors_at_line(function() record(5) end, 0,
      "policy.compact record: session must be a session, got number")
    assert.errors_at_line(function() record(opened(), 5) end, 0,
      "policy.compact record: outcome must be an Outcome, got number")
  end)
end)

describe("the fold of a summary", function()
  it("puts the prompt behind the conversation and lets no tool be called", function()
    local _, summary = policy.compact{ fold = policy.window{ tail = 4 }, prompt = "sum up" }
    local s, device = driven(3)
    local request, report = summary(s, device)
    assert.same({ role = "user", content = "sum up" }, request.messages[#request.messages])
    assert.equal("go", request.messages[1].content)
    assert.equal("none", request.tool_choice)
    assert.equal("look", request.tools[1].name)
    assert.equal(2, report.kept)
  end)

  it("leaves what the fold made as it is, and chooses no tool where there is none", function()
    local made
    local _, summary = policy.compact{ prompt = "sum up", fold = function(events)
      made = knl.fold(events)
      made.tools = { { name = "look" } }
      return made
    end }
    local request = summary((driven(1)))
    assert.same({ "none", "nil" }, { request.tool_choice, type(made.tool_choice) })
    local _, bare = policy.compact{ prompt = "sum up", fold = knl.fold }
    assert.is_nil(bare((driven(1))).tool_choice)
  end)

  it("raises what the fold raises", function()
    local _, summary = policy.compact{ fold = function() error("cannot fold") end }
    assert.has_error(function() summary((driven(1))) end,
      "policy%.compact: the oldest beat that no summary covers cannot be asked about: "
        .. ".*cannot fold")
  end)
end)

describe("record", function()
  local _, summary, record = policy.compact{ fold = knl.fold }

  local function asked(s, reply)
    return knl.beat(s, knl.device{ llm = ports.script(function() return reply end):open(),
      tools = tools, fold = summary })
  end

  it("appends the text of a reply and what it covers, stamped with its beat", function()
    local s = driven(3)
    local second = s:beats()[2].events
    local o = asked(s, { text = "all of it" })
    local event = s:events(record(s, o))[1]
    assert.same({ "summary", o.out.beat, { text = "all of it", through = second[#second].seq } },
      { event.kind, event.beat, event.data })
  end)

  it("refuses a reply that was not asked for by the fold of a summary", function()
    local s = opened()
    local o = knl.beat(s, knl.device{ llm = ports.script{ { text = "hi" } }:open() })
    assert.errors_at_line(function() record(s, o) end, 0, "policy.compact record: beat "
      .. o.out.beat .. " was not made with the fold of compact: what it covers is not known")
    o = { status = "ok", out = { content = "text", beat = "zz" } }
    assert.errors_at_line(function() record(s, o) end, 0, "policy.compact record: beat zz was not")
    o.out.beat = nil
    assert.errors_at_line(function() record(s, o) end, 0, "policy.compact record: beat nil was not")
  end)

  it("appends nothing for what is no whole summary", function()
    local s = driven(2)
    for _, reply in ipairs{ { refuse = "no" }, { fail = { kind = "server" } }, { text = " \n" },
      { text = "half of the", truncated = true }, { text = "s", calls = { { "look", {} } } } } do
      local before = s:len()
      local o = asked(s, reply)
      local after = s:len()
      assert.is_nil(record(s, o))
      assert.equal(after, s:len())
      assert.is_true(after > before)
    end
  end)
end)

describe("window{ from_summary }", function()
  local fold = policy.window{ from_summary = true }

  local function texts(request)
    local out = {}
    for i, m in ipairs(request.messages) do
      out[i] = type(m.content) == "string" and m.content or m.content[1].text
        or m.content[1].content
    end
    return out
  end

  it("starts from the newest summary", function()
    local s = driven(3)
    s:append{ kind = "summary", data = { text = "old" } }
    s:append{ kind = "summary", data = { text = "new" } }
    user(s, "and now")
    assert.same({ "Summary of the conversation so far:\n\nnew", "and now" }, texts((fold(s))))
    driven(1, fold, s)
    assert.equal(4, #(fold(s)).messages)
  end)

  it("hands the log on as it is while there is none", function()
    local s = driven(3)
    assert.same(knl.fold((s:events())), (fold(s)))
    assert.same(knl.fold{}, (fold{}))
  end)

  it("takes the text of a message's content, too", function()
    local s = opened()
    s:append{ kind = "summary",
      data = { content = { { type = "text", text = "a" }, { type = "image" },
        { type = "text", text = "b" } } } }
    assert.same({ "Summary of the conversation so far:\n\na\nb" }, texts((fold(s))))
  end)

  it("passes over a summary that says nothing", function()
    for _, data in ipairs{ {}, { text = "" }, { text = " \n" }, { text = 5 }, { content = 5 },
      { content = {} } } do
      local s = opened()
      s:append{ kind = "summary", data = data }
      assert.same({ "go" }, texts((fold(s))))
    end
  end)

  it("keeps tail beats behind the summary, and names those it drops of them", function()
    local bounded = policy.window{ tail = 2, from_summary = true }
    local s = driven(3)
    s:append{ kind = "summary", data = { text = "S" } }
    driven(4, bounded, s)
    local request, report = bounded(s)
    assert.equal("Summary of the conversation so far:\n\nS", request.messages[1].content)
    assert.equal(5, #request.messages)
    local rows = knl.views.beats(s)
    assert.same({ 2, false, { rows[4].beat, rows[5].beat } },
      { report.kept, report.seed_kept, report.dropped })
  end)

  it("keeps the seed in front of the summary with keep_seed, and once", function()
    local seeded = policy.window{ from_summary = true, keep_seed = true }
    local s = driven(2)
    s:append{ kind = "summary", data = { text = "S" } }
    user(s, "next")
    assert.same({ "go", "Summary of the conversation so far:\n\nS", "next" }, texts((seeded(s))))
    local handed = opened()
    handed:append{ kind = "summary", data = { text = "S" } }
    user(handed, "next")
    assert.same({ "go", "Summary of the conversation so far:\n\nS", "next" },
      texts((seeded(handed))))
  end)
end)

describe("the options of policy.compact", function()
  local function refuses(opts, text)
    assert.errors_at_line(function() policy.compact(opts) end, 0, "policy.compact: " .. text)
  end

  it("are a table with a fold, known by name", function()
    refuses(nil, "opts must be a table { fold, at?, min_beats?, prompt? }, got nil")
    refuses(false, "opts must be a table { fold, at?, min_beats?, prompt? }, got boolean")
    refuses({}, "fold is required — the fold of the device: a policy.window")
    refuses({ fold = print, promt = "x" }, "unknown option 'promt' (did you mean 'prompt'?)")
    refuses({ fold = print, session = 1 },
      "unknown option 'session' (the session is the argument of due and record)")
    refuses({ fold = print, store = "x" },
      "unknown option 'store' (a policy holds no state: it belongs to knl.open)")
  end)

  it("are of their types and in their bounds", function()
    refuses({ fold = 5 }, "fold must be a function, got number")
    refuses({ fold = false }, "fold must be a function, got false")
    for shown, v in pairs{ ["0"] = 0, ["1.5"] = 1.5, ["-1"] = -1 } do
      refuses({ fold = print, at = v }, "at must be a number above 0 and at most 1, got " .. shown)
    end
    refuses({ fold = print, at = "x" }, 'at must be a number, got "x"')
    refuses({ fold = print, at = false }, "at must be a number, got false")
    refuses({ fold = print, at = 0 / 0 }, "at must be a ")
    refuses({ fold = print, min_beats = 0 }, "min_beats must be a whole number >= 1, got 0")
    refuses({ fold = print, min_beats = false }, "min_beats must be a whole number >= 1, got false")
    refuses({ fold = print, prompt = "" }, 'prompt must be a non-empty string, got ""')
    refuses({ fold = print, prompt = 5 }, "prompt must be a non-empty string, got ")
    refuses({ fold = print, prompt = false }, "prompt must be a non-empty string, got false")
  end)
end)
