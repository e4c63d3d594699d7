-- policy.window{ fit }: as many of the last beats as a model's window has room for.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function user(text) return { kind = "msg_user", data = { content = text } } end

local function said(beat, text)
  return { kind = "llm_response", beat = beat,
    data = { content = { { type = "text", text = text } } } }
end

-- A log of n beats whose i-th one says size(i) characters.
local function log_of(n, size)
  local events = { user("seed seed ") }
  for i = 1, n do
    events[i + 1] = said("b" .. i, ("x"):rep(size and size(i) or 10))
  end
  return events
end

-- A port to which a character of text is a token; it counts what it is asked.
local function port_of(window, max_output)
  local port = { asked = 0 }
  function port.count(self, request)
    self.asked = self.asked + 1
    local n = 0
    for _, m in ipairs(request.messages) do
      n = n + #(type(m.content) == "string" and m.content or m.content[1].text)
    end
    return n
  end
  function port.profile()
    return { context_window = window, max_output = max_output }
  end
  return port
end

local function kept(events, opts)
  local fold = policy.window(opts)
  local request, report = fold(events)
  return report.kept, report, request
end

describe("policy.window{ fit }", function()
  it("keeps as many of the last beats as there is room for", function()
    for window, want in pairs{ [10] = 1, [19] = 1, [20] = 2, [99] = 9, [100] = 10, [300] = 30 } do
      assert.equal(want, (kept(log_of(50), { fit = { port = port_of(window) } })), window)
    end
  end)

  it("finds what a walk from the newest beat finds, whatever the beats weigh", function()
    local sizes = { 7, 1, 40, 3, 3, 90, 2, 15, 1, 1, 60, 5 }
    local events = log_of(200, function(i) return sizes[i % #sizes + 1] end)
    for window = 90, 3000, 61 do
      local n, room = 0, window
      for i = 200, 1, -1 do
        room = room - sizes[i % #sizes + 1]
        if room < 0 then break end
        n = n + 1
      end
      assert.equal(n, (kept(events, { fit = { port = port_of(window) } })), window)
    end
  end)

  it("leaves room for the reply, and for more when reserve says so", function()
    local events = log_of(50)
    assert.equal(8, (kept(events, { fit = { port = port_of(100, 20) } })))
    assert.equal(8, (kept(events, { fit = { port = port_of(100, 20), reserve = 20 } })))
    assert.equal(8, (kept(events, { fit = { port = port_of(100, 20), reserve = 5 } })))
    assert.equal(7, (kept(events, { fit = { port = port_of(100, 20), reserve = 30 } })))
    assert.equal(10, (kept(events, { fit = { port = port_of(100), reserve = 0 } })))
  end)

  it("hands the log on whole when all of it fits", function()
    local _, report, request = kept(log_of(5), { fit = { port = port_of(60) } })
    assert.same({ kept = 5, seed_kept = true, dropped = {}, before = 60, after = 60, limit = 60,
      reserve = 0 }, report)
    assert.equal(6, #request.messages)
  end)

  it("keeps the beats that fit without the seed", function()
    local _, report = kept(log_of(5), { fit = { port = port_of(59) } })
    assert.same({ 5, false, 60, 50 },
      { report.kept, report.seed_kept, report.before, report.after })
  end)

  it("counts the seed that keep_seed keeps", function()
    local n, report, request = kept(log_of(5), { fit = { port = port_of(59) }, keep_seed = true })
    assert.same({ 4, true, 50 }, { n, report.seed_kept, report.after })
    assert.equal("seed seed ", request.messages[1].content)
  end)

  it("is bounded by tail", function()
    assert.equal(3, (kept(log_of(50), { tail = 3, fit = { port = port_of(500) } })))
    assert.equal(2, (kept(log_of(50), { tail = 3, fit = { port = port_of(20) } })))
    assert.equal(2, (kept(log_of(2), { tail = 3, fit = { port = port_of(500) } })))
  end)

  it("takes a room in place of fit", function()
    local room = policy.room{ port = port_of(100, 20), reserve = 30 }
    assert.equal(7, (kept(log_of(50), { room = room })))
  end)

  it("sends the seed alone while there is no beat", function()
    local n, report, request = kept({ user("hello") }, { fit = { port = port_of(10) } })
    assert.same({ 0, true }, { n, report.seed_kept })
    assert.equal("hello", request.messages[1].content)
  end)

  it("raises when not even the newest beat fits, saying how much and what to do", function()
    local function raises(events, opts, with, try)
      opts.fit = { port = port_of(9) }
      assert.has_error(function() kept(events, opts) end, "policy%.window: a request with " .. with
        .. " tokens, the model's window has room for 9: " .. try .. ", or ask fits, the second "
        .. "value of policy%.window, before a beat")
    end
    raises(log_of(3), {}, "no beat but the newest takes 10",
      "cap results with policy%.result_cap")
    raises(log_of(3, function() return 5 end), { keep_seed = true },
      "no beat but the newest and what came before the first takes 15",
      "cap results with policy%.result_cap, go without keep_seed")
    for _, keep_seed in ipairs{ false, true } do
      raises({ user("0123456789") }, { keep_seed = keep_seed }, "no beat yet takes 10",
        "shorten what was said")
    end
    local summed = log_of(3, function() return 5 end)
    table.insert(summed, 2, { kind = "summary", data = { text = "S" } })
    raises(summed, { from_summary = true }, "no beat but the newest and the summary takes 43",
      "cap results with policy%.result_cap")
  end)

  it("counts what the filters of the device make of the request", function()
    local note = ("n"):rep(25)
    local function filter(request)
      local own = { messages = { { role = "user", content = note } } }
      for _, m in ipairs(request.messages) do own.messages[#own.messages + 1] = m end
      return own
    end
    local device = knl.device{ filters = { filter } }
    local fold, fits = policy.window{ fit = { port = port_of(100) } }
    local _, report = fold(log_of(50), device)
    assert.same({ 7, 95 }, { report.kept, report.after })
    local s = knl.open{ store = "mem" }
    for _, e in ipairs(log_of(2, function() return 80 end)) do s:append(e) end
    assert.is_nil(fits(s, knl.device{}))
    assert.equal("context", fits(s, device))
    assert.has_error(function() fold(s, device) end, "takes 105 tokens")
    for _, bad in ipairs{ function() error("x") end, function() end } do
      _, report = fold(log_of(50), knl.device{ filters = { bad } })
      assert.same({ 10, 100 }, { report.kept, report.after })
    end
  end)

  it("keeps to the room with a note of policy.carry in each request", function()
    local port = ports.script(function() return { text = "w", calls = { { "t", {} } } } end)
    local conf = { context_window = 1500, max_tokens = 300 }
    local room = policy.room{ port = port, conf = conf }
    local s, n = knl.open{ store = "mem" }, 0
    local device = knl.device{ llm = port:open(conf), fold = policy.window{ room = room },
      filters = { policy.carry{}(s) },
      tools = { t = { effects = "read", handler = function()
        n = n + 1
        return n % 9 == 0 and error(("e"):rep(400)) or "r"
      end } } }
    for _ = 1, 60 do
      local o = knl.beat(s, device)
      assert.equal("ok", o.status, o.detail and o.detail.message)
      assert.is_true(room:count(s:request(o.out.beat)) <= 1200)
    end
  end)

  it("reads the profile at each request", function()
    local port = port_of(100)
    local fold, window = policy.window{ fit = { port = port } }, 100
    port.profile = function() return { context_window = window } end
    local _, report = fold(log_of(50))
    assert.equal(10, report.kept)
    window = 30
    _, report = fold(log_of(50))
    assert.equal(3, report.kept)
  end)

  it("hands its conf to the port, as it was when the policy was made", function()
    local conf, seen = { model = "m" }, nil
    local port = port_of(100)
    port.profile = function(_, got)
      seen = got.model
      return { context_window = 100 }
    end
    local fold = policy.window{ fit = { port = port, conf = conf } }
    conf.model = "other"
    fold(log_of(3))
    assert.equal("m", seen)
  end)

  it("asks at most 12 times over 1,000 beats, wherever the cut is", function()
    local events = log_of(1000)
    for _, beats in ipairs{ 1, 2, 31, 32, 33, 64, 100, 333, 512, 700, 998, 999, 1000, 1001 } do
      local port = port_of(10 * beats)
      kept(events, { fit = { port = port } })
      assert.is_true(port.asked <= 12, beats .. " beats: " .. port.asked)
    end
  end)

  it("starts at what the last request kept, and asks less", function()
    local events = log_of(1000)
    for last, most in pairs{ [332] = 7, [333] = 7, [320] = 7, [1] = 12, [998] = 12 } do
      events[#events] = { kind = "llm_request", beat = "b1000",
        data = { window = { kept = last } } }
      local port = port_of(3330)
      assert.equal(334, (kept(events, { fit = { port = port } })), last)
      assert.is_true(port.asked <= most, last .. ": " .. port.asked)
    end
  end)

  it("hands the log on whole, however little the last request kept", function()
    local events = log_of(1000)
    for _, last in ipairs{ 0, 1, 10, 500, 998 } do
      events[#events] = { kind = "llm_request", beat = "b1000",
        data = { window = { kept = last } } }
      local n, report = kept(events, { fit = { port = port_of(1e6) } })
      assert.same({ 1000, true }, { n, report.seed_kept }, last)
    end
  end)

  it("takes a last request that says nonsense", function()
    local events = log_of(50)
    for _, window in ipairs{ 5, "x", {}, { kept = "x" }, { kept = -1 }, { kept = 1.5 },
      { kept = 1e9 }, { kept = 0 } } do
      events[#events] = { kind = "llm_request", beat = "b50", data = { window = window } }
      assert.equal(6, (kept(events, { fit = { port = port_of(50) } })))
    end
  end)
end)

describe("a port that answers nonsense", function()
  local function raises(port, text)
    local fold, fits = policy.window{ fit = { port = port } }
    assert.has_error(function() fold(log_of(3)) end, text)
    assert.has_error(function() fits(knl.open{ store = "mem" }, knl.device{}) end, text)
  end

  it("is told what to declare", function()
    for shown, profile in pairs{ ["nil"] = {}, ["0"] = { context_window = 0 },
      ["1%.5"] = { context_window = 1.5 },
      ['"x"'] = { context_window = "x" }, ["false"] = { context_window = false } } do
      raises({ count = print, profile = function() return profile end },
        "context_window must be a whole number >= 1, got " .. shown
          .. ": declare context_window in conf")
    end
    raises({ count = print,
      profile = function() return { context_window = 9, max_output = 0.5 } end },
      "max_output must be a whole number >= 0, got 0%.5: declare max_tokens in conf")
    raises({ count = print,
      profile = function() return { context_window = 9, max_output = 9 } end },
      "max_output 9 leaves no room in a context_window of 9: declare a smaller max_tokens in conf")
    raises({ count = print, profile = function() end }, "profile%(%) must answer a table, got nil")
  end)

  it("is refused a count that is no number", function()
    for shown, n in pairs{ ["%-1"] = -1, ["1%.5"] = 1.5, ['"10"'] = "10", ["false"] = false,
      ["nan"] = 0 / 0, ["1e%+300, which is beyond 2^53"] = 1e300, ["inf, which"] = 1 / 0 } do
      raises({ count = function() return n end,
        profile = function() return { context_window = 9 } end },
        "count%(%) must answer a whole number >= 0, got " .. shown)
    end
  end)

  it("may raise itself", function()
    raises({ count = function() error("the tokenizer is missing") end,
      profile = port_of(9).profile },
      "the tokenizer is missing")
  end)
end)

describe("fits", function()
  local function session_with(text)
    local s = knl.open{ store = "mem" }
    s:append(user("go"))
    local device = knl.device{
      llm = ports.script{ { calls = { { "look" } } } }:open(),
      tools = { look = { handler = function() return text end } },
    }
    assert.equal("ok", knl.beat(s, device).status)
    return s, device
  end

  local function window_of(tokens)
    return policy.window{ fit = { port = ports.script{},
      conf = { context_window = tokens, max_tokens = 1 } } }
  end

  it("answers nil while the newest beat fits, and context when it does not", function()
    local _, fits = window_of(200)
    assert.is_nil(fits(session_with("short")))
    assert.equal("context", fits(session_with(("long "):rep(400))))
  end)

  it("answers what the fold does: a beat ends in an error exactly when it says context", function()
    local fold, fits = window_of(200)
    for _, text in ipairs{ "short", ("long "):rep(400) } do
      local s, device = session_with(text)
      device = device:with{ fold = fold }
      local o = knl.beat(s, device)
      local want = fits(s, device) and "conf" or "call" -- the script is past its last reply
      assert.equal(want, o.kind)
    end
  end)

  it("counts the tools of the device", function()
    local _, fits = window_of(60)
    local s = knl.open{ store = "mem" }
    s:append(user("go"))
    assert.is_nil(fits(s, knl.device{}))
    local device = knl.device{ tools = { t = { handler = print,
      description = ("long "):rep(100) } } }
    assert.equal("context", fits(s, device))
  end)

  it("refuses what is no device", function()
    local _, fits = window_of(60)
    for name, v in pairs{ ["nil"] = false, number = 3, table = {}, string = "x" } do
      assert.errors_at_line(function() fits(session_with("short"), v or nil) end, 0,
        "policy.window fits: device must be a device, got " .. name)
    end
  end)

  it("refuses what is no session", function()
    local _, fits = window_of(60)
    for name, v in pairs{ ["nil"] = false, table = {}, number = 5 } do
      assert.errors_at_line(function() fits(v or nil) end, 0,
        "policy.window fits: session must be a session, got " .. name)
    end
  end)
end)
