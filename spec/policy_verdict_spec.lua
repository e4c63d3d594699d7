-- policy.verdict: whether the work is done, by a check of the caller's.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local device = knl.device{ llm = ports.script(function() return { text = "done" } end):open() }

local function fresh()
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  return s
end

local function passes() return { ok = true } end

local function records(s, kind)
  return (s:scan{ kinds = { kind or "verify" } })
end

describe("policy.verdict", function()
  it("judges what run says", function()
    local s = fresh()
    local out = knl.beat(s, device)
    assert.same({ ok = true, checked = true, result = { ok = true } },
      policy.verdict{ run = passes }(s, out))
    local failing = { ok = false, stdout = "1 failed", exit_code = 2, more = "kept" }
    local verdict = policy.verdict{ run = function() return failing end }(s, out)
    assert.same({ ok = false, checked = true, result = failing }, verdict)
    assert.equal(failing, verdict.result)
  end)

  it("records the check in the beat that it judges, whatever it said", function()
    local s = fresh()
    local first, second = knl.beat(s, device), knl.beat(s, device)
    policy.verdict{ run = passes }(s, first)
    policy.verdict{ run = function()
      return { ok = false, stdout = "out", stderr = "err", exit_code = 1, secret = "not kept" }
    end }(s, second)
    local rows = records(s)
    assert.same({ ok = true, stdout = "", stderr = "" }, rows[1].data)
    assert.same({ ok = false, stdout = "out", stderr = "err", exit_code = 1 }, rows[2].data)
    assert.same({ first.out.beat, second.out.beat }, { rows[1].beat, rows[2].beat })
  end)

  it("finds the beat in an Outcome and in its out, else takes the newest", function()
    local s, verify = fresh(), policy.verdict{ run = passes }
    local ok = knl.beat(s, device)
    verify(s, ok)
    verify(s, ok.out)
    local refused = knl.beat(s, knl.device{ llm = ports.script(function()
      return { refuse = "no" }
    end):open() })
    verify(s, refused)
    local failed = knl.beat(s, knl.device{ llm = ports.script(function()
      return { text = "x", stop = "odd" }
    end):open() })
    verify(s, failed)
    verify(s, knl.Outcome.stopped("budget"))
    local down = knl.beat(s, knl.device{ llm = ports.script(function()
      return { fail = { kind = "auth" } }
    end):open() })
    verify(s, down)
    verify(s)
    local beats = {}
    for i, row in ipairs(records(s)) do
      beats[i] = row.beat or "none"
    end
    local rows = knl.views.beats(s)
    assert.same({ ok.out.beat, ok.out.beat, refused.detail.beat, failed.detail.answer.beat,
      rows[3].beat, rows[4].beat, rows[4].beat }, beats)
    local empty = fresh()
    verify(empty)
    assert.is_nil(records(empty)[1].beat)
  end)

  it("records under a kind of the caller's", function()
    local s = fresh()
    policy.verdict{ run = passes, kind = "lint" }(s)
    assert.same({ 1, 0 }, { #records(s, "lint"), #records(s) })
  end)

  it("asks whether something changed once the check passed", function()
    local s, asked = fresh(), {}
    local function changed(answer)
      return function(session)
        asked[#asked + 1] = session:id()
        return answer
      end
    end
    assert.same({ ok = true, checked = true, changed = true, result = { ok = true } },
      policy.verdict{ run = passes, changed = changed(true) }(s))
    assert.same({ ok = false, checked = true, changed = false, reason = "unchanged",
      result = { ok = true } }, policy.verdict{ run = passes, changed = changed(false) }(s))
    assert.same({ s:id(), s:id() }, asked)
    local verdict = policy.verdict{ run = function() return { ok = false } end,
      changed = changed(true) }(s)
    assert.same({ ok = false, checked = true, result = { ok = false } }, verdict)
    assert.equal(2, #asked)
    assert.equal(3, #records(s))
  end)

  it("without a run checks nothing and records nothing", function()
    local s = fresh()
    local before = s:len()
    assert.same({ ok = false, checked = false }, policy.verdict()(s, knl.beat(s, device).out))
    assert.same({ ok = false, checked = false }, policy.verdict{ changed = passes }(s))
    assert.same({}, records(s))
    assert.is_true(s:len() > before)
  end)

  it("takes whatever can be called", function()
    local callable = setmetatable({}, { __call = function() return { ok = true } end })
    assert.is_true(policy.verdict{ run = callable }(fresh()).ok)
  end)

  it("leaves the conversation as it was", function()
    local s = fresh()
    local out = knl.beat(s, device)
    local before = std.json.encode(knl.fold(s:events()))
    policy.verdict{ run = passes }(s, out)
    assert.equal(before, std.json.encode(knl.fold(s:events())))
  end)

  it("judges on a resumed and on an attached session", function()
    local s = fresh()
    local out = knl.beat(s, device)
    local again = knl.resume{ session = s:id(), store = "mem" }
    assert.is_true(policy.verdict{ run = passes }(again, out).ok)
    local attached = knl.attach{ session = s:id(), store = "mem" }
    assert.is_true(policy.verdict{ run = passes }(attached, out).ok)
    assert.equal(2, #records(again))
  end)
end)

describe("a check that is none", function()
  it("raises when it answers no verdict, and nothing is recorded", function()
    local s = fresh()
    for text, answer in pairs{ ["got nil"] = {}, ["got boolean"] = { true },
      ["got string"] = { "ok" }, ["got ok = nil"] = { { code = 0 } },
      ["got ok = 1"] = { { ok = 1 } } } do
      local verify = policy.verdict{ run = function() return answer[1] end }
      bad("policy.verdict: run must answer a table with ok = true or false, " .. text,
        function() verify(s) end)
    end
    local verify = policy.verdict{ run = function() return { ok = true, stdout = 5 } end }
    bad("policy.verdict: run must answer stdout as a string, got number", function() verify(s) end)
    assert.same({}, records(s))
  end)

  it("raises what run raises, and nothing is recorded", function()
    local s = fresh()
    local verify = policy.verdict{ run = function() error("no compiler", 0) end }
    assert.equal("no compiler", assert.has_error(function() verify(s) end))
    assert.same({}, records(s))
  end)

  it("raises what changed raises, and the check is recorded", function()
    local s = fresh()
    local verify = policy.verdict{ run = passes, changed = function() error("no git", 0) end }
    assert.equal("no git", assert.has_error(function() verify(s) end))
    assert.equal(1, #records(s))
    verify = policy.verdict{ run = passes, changed = function() return "yes" end }
    bad("policy.verdict: changed must answer true or false, got string", function() verify(s) end)
  end)

  it("raises what the log raises", function()
    local s = fresh()
    s:close()
    local raised = assert.has_error(function() policy.verdict{ run = passes }(s) end)
    assert.equal("closed", knl.error(raised).kind)
  end)

  it("wants a session and an Outcome", function()
    local verify = policy.verdict{ run = passes }
    bad("policy.verdict: session must be a session, got nil", function() verify() end)
    bad("policy.verdict: session must be a session, got table", function() verify{} end)
    bad("policy.verdict: out must be an Outcome or its out, got string",
      function() verify(fresh(), "beat") end)
    bad("policy.verdict: session must be a session, got nil", function() policy.verdict()() end)
  end)
end)

describe("the options of policy.verdict", function()
  it("are checked by name, type and bound", function()
    for text, opts in pairs{
      ["unknown option 'rnu' (did you mean 'run'?)"] = { rnu = passes },
      ["unknown option 'session' (the session is an argument: verdict(session, outcome))"] =
        { session = fresh() },
      ["run must be a function, got string"] = { run = "make test" },
      ["run must be a function, got an empty table"] = { run = {} },
      ["run must be a function, got false"] = { run = false },
      ["changed must be a function, got true"] = { run = passes, changed = true },
      ["changed must be a function, got false"] = { run = passes, changed = false },
      ['kind must be a non-empty string, got ""'] = { run = passes, kind = "" },
      ["kind must be a non-empty string, got number"] = { run = passes, kind = 5 },
      ["kind must be a non-empty string, got false"] = { run = passes, kind = false },
    } do
      bad("policy.verdict: " .. text, function() policy.verdict(opts) end)
    end
    for _, kind in ipairs{ "msg_user", "llm_response", "tool_result", "session_closed",
      "budget_granted", "beat_interrupted", "driver_changed", "tool_gate", "approval_asked",
      "contract_frozen", "generation_closed", "summary", "checkpoint", "result_kept" } do
      bad(("policy.verdict: kind must be one of your own, got %q, which is the kernel's or "
        .. "another policy's"):format(kind),
        function() policy.verdict{ run = passes, kind = kind } end)
    end
    bad("policy.verdict: opts must be a table { run?, changed?, kind?, timeout? }, got function",
      function() policy.verdict(passes) end)
    bad("policy.verdict: opts must be a table { run?, changed?, kind?, timeout? }, got boolean",
      function() policy.verdict(false) end)
  end)
end)
