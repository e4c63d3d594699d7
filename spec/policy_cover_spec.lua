-- policy.compact: what a summary covers, and that nothing else is lost.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local PROMPT = "sum up"

local function user(s, text) s:append{ kind = "msg_user", data = { content = text } } end

-- The texts of a request, one a message: what was said, or what a tool answered.
local function texts(request)
  local out = {}
  for i, m in ipairs(request.messages) do
    local block = type(m.content) == "table" and m.content[1] or {}
    out[i] = type(m.content) == "string" and m.content or block.text or block.content
  end
  return table.concat(out, " | ")
end

-- A session of n beats, the i-th of which says "step i" and gets "seen i".
local function driven(n, s, fold, size)
  if not s then
    s = knl.open{ store = "mem" }
    user(s, "the task")
  end
  local i = #s:scan{ kinds = { "tool_result" } }
  local device = knl.device{
    fold = fold,
    llm = ports.script(function()
      i = i + 1
      return { text = "step " .. i, calls = { { "look", {} } } }
    end):open(),
    tools = { look = { effects = "read", handler = function()
      return "seen " .. i .. ("."):rep(size or 0)
    end } },
  }
  for _ = 1, n do
    assert.equal("ok", knl.beat(s, device).status)
  end
  return s, device
end

local function last_seq(s, beat)
  local events = s:beats()[beat].events
  return events[#events].seq
end

local window = policy.window{ from_summary = true }
local _, summary, record = policy.compact{ fold = window, prompt = PROMPT }

-- A beat that writes a summary; while it does, meanwhile() runs.
local function compacted(s, text, meanwhile, with)
  local llm = ports.script(function()
    if meanwhile then meanwhile() end
    return { text = text }
  end):open()
  local o = knl.beat(s, knl.device{ llm = llm, fold = with or summary })
  assert.equal("ok", o.status, o.detail and o.detail.message)
  return record(s, o), o
end

describe("a summary", function()
  it("covers all beats but the newest, which goes on as it is", function()
    local s, device = driven(3)
    user(s, "and quickly")
    local request, report = summary(s, device)
    assert.equal("the task | step 1 | seen 1 | step 2 | seen 2 | sum up", texts(request))
    assert.same({ through = last_seq(s, 2), left = 0 }, report.compact)
    compacted(s, "S")
    assert.equal("Summary of the conversation so far:\n\nS | step 3 | seen 3 | and quickly",
      texts((window(s, device))))
  end)

  it("covers the only beat, and what was said before it", function()
    local s, device = driven(1)
    user(s, "next")
    assert.equal("the task | step 1 | seen 1 | sum up", texts((summary(s, device))))
    compacted(s, "S")
    assert.equal("Summary of the conversation so far:\n\nS | next", texts((window(s, device))))
  end)

  it("takes the place of the one before it, which it is made of", function()
    local s, device = driven(3)
    compacted(s, "first")
    driven(2, s, window)
    local request, report = summary(s, device)
    assert.equal("Summary of the conversation so far:\n\nfirst | step 3 | seen 3 | step 4 | "
      .. "seen 4 | sum up", texts(request))
    assert.equal(last_seq(s, 5), report.compact.through)
    compacted(s, "second")
    assert.equal("Summary of the conversation so far:\n\nsecond | step 5 | seen 5",
      texts((window(s, device))))
  end)

  it("leaves what is said while it is written", function()
    local s, device = driven(2)
    local other = knl.attach{ session = s:id(), store = "mem" }
    compacted(s, "S", function() user(other, "wait, also this") end)
    assert.matches("step 2 | seen 2 | wait, also this", texts((window(s, device))))
  end)

  it("leaves no half of itself in the conversation when it was cut or not recorded", function()
    local s, device = driven(2)
    for _, reply in ipairs{ { text = "half of", truncated = true }, { text = "never recorded" } } do
      local llm = ports.script(function() return reply end):open()
      assert.equal("ok", knl.beat(s, knl.device{ llm = llm, fold = summary }).status)
    end
    assert.equal("the task | step 1 | seen 1 | step 2 | seen 2", texts((window(s, device))))
    assert.equal("the task | step 1 | seen 1 | sum up", texts((summary(s, device))))
    local _, report = policy.window{ tail = 1, from_summary = true }(s, device)
    assert.same({ 1, { s:beats()[1].id } }, { report.kept, report.dropped })
  end)

  it("leaves what a tool did that its beat called all the same", function()
    local s, device = driven(2)
    local calls = ports.script(function() return { text = "no", calls = { { "look", {} } } } end)
    local o = knl.beat(s, device:with{ llm = calls:open(), fold = summary })
    assert.is_nil(record(s, o))
    assert.matches("| no | seen 2$", texts((window(s, device))))
  end)

  it("ends where no beat goes on behind it", function()
    local events = {}
    for i, id in ipairs{ "a", "b", "a", "c", "b", "d" } do
      events[i] = { kind = "llm_response", beat = id,
        data = { content = { { type = "text", text = id .. i } } } }
    end
    local request, report = summary(events)
    assert.equal("a1 | b2 | a3 | c4 | b5 | sum up", texts(request))
    assert.same({ through = 5, left = 0 }, report.compact)
  end)

  it("needs a beat", function()
    local s = knl.open{ store = "mem" }
    user(s, "hi")
    local text = "policy%.compact: there is no beat that no summary covers: ask due before"
    assert.has_error(function() summary(s) end, text)
    assert.has_error(function() summary{} end, text)
  end)

  it("is made of the events that its fold is handed", function()
    local s = driven(2)
    local _, own = policy.compact{ fold = function() return window(s) end }
    assert.has_error(function() own(s) end, "policy%.compact: fold must make its request of the "
      .. "events that it is handed: the prompt, the last of them, is not the last message")
  end)
end)

describe("a summary of more than there is room for", function()
  local conf = { context_window = 1000, max_tokens = 100 }
  local room = policy.room{ port = ports.script{}, conf = conf }
  local fit = policy.window{ room = room, from_summary = true }
  local due, fitted = policy.compact{ fold = fit, prompt = PROMPT, min_beats = 2 }

  it("covers the oldest beats that fit with the prompt, then the next ones", function()
    local s, device = driven(12, nil, nil, 400)
    local seen, upto = {}, 0
    repeat
      local request, report = fitted(s, device)
      assert.is_true(room:count(request) <= room:request())
      local n = upto + report.kept
      assert.equal(last_seq(s, n), report.compact.through)
      assert.equal(11 - n, report.compact.left)
      for i = upto + 1, n do
        assert.matches("step " .. i .. " ", texts(request))
        seen[#seen + 1] = i
      end
      assert.matches(upto == 0 and "^the task" or "^Summary of .*:  all up to " .. upto,
        texts(request):gsub("\n", " "))
      s:append{ kind = "summary",
        data = { text = "all up to " .. n, through = report.compact.through } }
      upto = n
    until report.compact.left == 0
    assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, seen)
  end)

  it("is due again at once when beats were left, after a beat of the loop", function()
    local s = driven(20, nil, nil, 400)
    driven(1, s, fit, 400)
    local asked = 0
    while due(s) == "dropped" do
      assert.equal("number", type(compacted(s, "S", nil, fitted)))
      asked = asked + 1
      assert.is_nil(due(s))
      driven(1, s, fit, 400)
    end
    assert.is_true(asked > 1, asked)
    local _, report = fit(s)
    assert.same({}, report.dropped)
  end)

  it("is not due at once when it was not recorded", function()
    local s = driven(20, nil, nil, 400)
    driven(1, s, fit, 400)
    local llm = ports.script(function() return { text = " " } end):open()
    assert.is_nil(record(s, knl.beat(s, knl.device{ llm = llm, fold = fitted })))
    driven(1, s, fit, 400)
    assert.is_nil(due(s))
    driven(1, s, fit, 400)
    assert.equal("dropped", due(s))
  end)

  it("raises when not even the oldest beat fits", function()
    local s, device = driven(2, nil, nil, 4000)
    assert.has_error(function() fitted(s, device) end,
      "policy%.compact: the oldest beat that no summary covers cannot be asked about: "
        .. "policy%.window: .*has room for 900")
    local long = knl.open{ store = "mem" }
    user(long, ("long "):rep(700))
    driven(2, long)
    assert.has_error(function() fitted(long, device) end, "cannot be asked about: the fold left a "
      .. "part of it and the prompt out: cap results with policy%.result_cap")
  end)

  it("loses no word of a run that goes over its room again and again", function()
    local s = knl.open{ store = "mem" }
    user(s, "the task")
    local covered, steps = 0, 0
    local function count(request) -- the steps that it shows come right behind those covered
      local n = covered
      for step in texts(request):gmatch("seen (%d+)") do
        n = n + 1
        assert.equal(n, tonumber(step))
      end
      return n
    end
    repeat
      if due(s) then
        local seq, o = compacted(s, "S", nil, fitted)
        local request = s:request(o.out.beat)
        assert.matches(covered == 0 and "^the task" or "^Summary of", texts(request))
        covered = count(request)
        assert.equal("number", type(seq))
      end
      steps = steps + 1
      driven(1, s, fit, steps % 3 == 0 and 1100 or 300)
      local request, report = fit(s)
      local whole = #report.dropped == 0
      if whole then
        assert.equal(steps, count(request))
      end
    until steps >= 40 and whole or steps == 60
    assert.is_true(covered > 30 and steps < 60)
    for _, row in ipairs((knl.views.beats(s))) do
      assert.is_true(row.window.after <= room:request())
    end
  end)
end)

describe("window{ from_summary } behind a summary", function()
  it("starts behind through, and behind the event when that says nothing", function()
    local s = driven(3)
    local at = last_seq(s, 2)
    s:append{ kind = "summary", data = { text = "S", through = at } }
    assert.matches("S | step 3 | seen 3$", texts((window(s))))
    for _, through in ipairs{ -1, 1.5, "x", 1e15, false, {} } do
      s:append{ kind = "summary", data = { text = "T", through = through } }
      assert.equal("Summary of the conversation so far:\n\nT", texts((window(s))))
    end
    s:append{ kind = "summary", data = { text = "U", through = 0 } }
    assert.matches("U | the task | step 1", texts((window(s))))
  end)

  it("goes by the newest that says something", function()
    local s = driven(2)
    s:append{ kind = "summary", data = { text = "good", through = last_seq(s, 1) } }
    for _, data in ipairs{ {}, { text = " \n" }, { text = 5 }, { content = {} } } do
      s:append{ kind = "summary", data = data }
      assert.matches("good | step 2 | seen 2$", texts((window(s))))
      assert.matches("good | step 2 | seen 2$", texts((window((s:events())))))
    end
  end)
end)
