-- policy.retry and policy.escalate: what a loop does about an outcome.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function failed(kind, retryable, more)
  local detail = { kind = kind, retryable = retryable, message = "x" }
  for key, value in pairs(more or {}) do detail[key] = value end
  return { status = "error", kind = "call", detail = detail }
end

local never = {
  ok = { status = "ok", out = {} },
  refused = { status = "refused", reason = "model", detail = {} },
  stopped = { status = "stopped", reason = "budget" },
}

-- What a real beat comes to when the model answers so.
local function outcome_of(reply)
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  return knl.beat(s, knl.device{ llm = ports.script{ reply }:open() })
end

describe("policy.retry", function()
  it("tries a retryable error again, up to 3 attempts in all", function()
    local retry = policy.retry()
    assert.is_true(retry(failed("server", true), 1))
    assert.is_true(retry(failed("server", true), 2))
    assert.is_false(retry(failed("server", true), 3))
    assert.is_false(retry(failed("server", true), 4))
    assert.is_false(retry(failed("auth", false), 1))
  end)

  it("takes max attempts", function()
    assert.is_false(policy.retry{ max = 1 }(failed("server", true), 1))
    assert.is_true(policy.retry{ max = 5 }(failed("server", true), 4))
    assert.is_false(policy.retry{ max = 5 }(failed("server", true), 5))
  end)

  it("never retries what is no error", function()
    for name, outcome in pairs(never) do
      assert.is_false(policy.retry()(outcome, 1), name)
      assert.is_false(policy.retry{ kinds = { "server" } }(outcome, 1), name)
    end
  end)

  it("retries exactly the kinds it is given", function()
    local retry = policy.retry{ kinds = { "server", "fenced" } }
    assert.is_true(retry(failed("server", false), 1))
    assert.is_true(retry(failed("fenced", false), 1))
    assert.is_false(retry(failed("transport", true), 1))
    assert.is_false(retry(failed(nil, true), 1))
  end)

  it("does not retry a detail that is no table, nor one that says nothing", function()
    for _, detail in ipairs{ "text", 5, true } do
      assert.is_false(policy.retry()({ status = "error", kind = "conf", detail = detail }, 1))
    end
    assert.is_false(policy.retry()({ status = "error", kind = "conf" }, 1))
    assert.is_false(policy.retry()(failed("server", "yes"), 1))
    assert.is_false(policy.retry()(failed("server", nil), 1))
  end)

  it("hands the seconds on that the provider asks to wait", function()
    local again, delay = policy.retry()(failed("rate_limited", true, { retry_after = 2.5 }), 1)
    assert.same({ true, 2.5 }, { again, delay })
    again, delay = policy.retry()(failed("rate_limited", true, { retry_after = "2" }), 1)
    assert.is_true(again)
    assert.is_nil(delay)
    again, delay = policy.retry()(failed("rate_limited", true, { retry_after = 2 }), 3)
    assert.is_false(again)
    assert.is_nil(delay)
  end)

  it("reads the outcomes of real beats", function()
    local again, delay = policy.retry()(outcome_of{ fail = { kind = "overloaded",
      retry_after = 3 } }, 1)
    assert.same({ true, 3 }, { again, delay })
    assert.is_false(policy.retry()(outcome_of{ fail = { kind = "auth" } }, 1))
    assert.is_false(policy.retry()(outcome_of{ refuse = "no" }, 1))
    assert.is_false(policy.retry()(outcome_of{ text = "hi" }, 1))
    local conf = knl.beat(knl.open{ store = "mem" }, knl.device{})
    assert.is_false(policy.retry()(conf, 1))
  end)

  it("does not change with its options' table", function()
    local kinds = { "server" }
    local retry = policy.retry{ kinds = kinds }
    kinds[1] = "auth"
    assert.is_true(retry(failed("server", false), 1))
  end)

  it("refuses an attempt that is no whole number from 1 on", function()
    local retry = policy.retry()
    for shown, n in pairs{ ["0"] = 0, ["-1"] = -1, ["1.5"] = 1.5, ["1"] = "1", ["false"] = false,
      nan = 0 / 0, inf = 1 / 0 } do
      assert.errors_at_line(function() retry(never.ok, n) end, 0,
        "policy.retry: attempt must be a whole number >= 1, got " .. shown)
    end
    assert.errors_at_line(function() retry(never.ok) end, 0,
      "attempt must be a whole number >= 1, got nil")
  end)

  it("refuses what is no outcome", function()
    for name, v in pairs{ ["nil"] = false, number = 5, table = {},
      userdata = knl.open{ store = "mem" } } do
      assert.errors_at_line(function() policy.retry()(v or nil, 1) end, 0,
        "policy.retry: outcome must be an Outcome, got " .. name)
    end
  end)
end)

describe("the options of policy.retry", function()
  local function refuses(opts, text)
    assert.errors_at_line(function() policy.retry(opts) end, 0, "policy.retry: " .. text)
  end

  it("are a table, or nothing, known by name", function()
    refuses(5, "opts must be a table { kinds?, max? }, got number")
    refuses(false, "opts must be a table { kinds?, max? }, got boolean")
    refuses({ kind = {} }, "unknown option 'kind' (did you mean 'kinds'?)")
    refuses({ session = 1 },
      "unknown option 'session' (retry looks at an outcome, not at a session)")
    refuses({ budget = 1 },
      "unknown option 'budget' (a policy holds no state: it belongs to knl.open)")
  end)

  it("have a whole max of at least 1", function()
    for shown, v in pairs{ ["0"] = 0, ["1.5"] = 1.5, ['"3"'] = "3", ["false"] = false } do
      refuses({ max = v }, "max must be a whole number >= 1, got " .. shown)
    end
  end)

  it("have kinds that the kernel knows", function()
    for _, list in ipairs{ knl.shapes.error_kinds.values, knl.shapes.call_error_kinds.values } do
      for _, kind in ipairs(list) do
        assert.equal("function", type(policy.retry{ kinds = { kind } }))
      end
    end
    refuses({ kinds = { "server", "oops" } }, 'kinds[2] must be one of "busy", ')
    refuses({ kinds = { 429 } }, "kinds[1] must be one of ")
    refuses({ kinds = {} }, "kinds must be a non-empty list, got an empty table")
    refuses({ kinds = "server" }, "kinds must be a non-empty list, got string")
    refuses({ kinds = false }, "kinds must be a non-empty list, got false")
    refuses({ kinds = { server = true } },
      'kinds must be a non-empty list, got a table with the key "server"')
  end)
end)

describe("policy.escalate", function()
  local weak, strong = ports.script{ { text = "weak" } }:open(),
    ports.script{ { text = "strong" } }:open()
  local device = knl.device{ llm = weak, system = "s" }

  -- Whether the next beat is the strong model's.
  local function escalates(outcome, opts)
    opts = opts or {}
    opts.strong = strong
    local next_device = policy.escalate(opts)(outcome, device)
    assert.equal("s", next_device.system)
    assert.is_true(next_device == device or next_device.llm == strong)
    return next_device ~= device
  end

  it("goes to the strong model after a refusal and an error that is not retryable", function()
    assert.is_true(escalates(never.refused))
    for _, kind in ipairs{ "invalid_request", "context_overflow", "unknown" } do
      assert.is_true(escalates(failed(kind, false)))
      assert.is_true(escalates(failed(kind, nil)))
      assert.is_true(escalates(failed(kind, "yes")))
    end
    assert.is_true(escalates(outcome_of{ refuse = "no" }))
  end)

  it("stays with the device, the very same, otherwise", function()
    assert.is_false(escalates(never.ok))
    assert.is_false(escalates(never.stopped))
    assert.is_false(escalates(failed("server", true)))
    assert.is_false(escalates(outcome_of{ text = "hi" }))
  end)

  it("stays with the device when no model mends what failed", function()
    assert.is_false(escalates(failed("auth", false)))
    assert.is_false(escalates(failed("cancelled", false)))
    for _, stage in ipairs{ "conf", "filter", "state", "contract" } do
      assert.is_false(escalates{ status = "error", kind = stage,
        detail = { retryable = false, message = "m" } })
      assert.is_false(escalates{ status = "error", kind = stage, detail = "text" })
    end
  end)

  it("answers the device of the strong model as it is, so that a loop can end on it", function()
    local broken = ports.script(function() return { fail = { kind = "invalid_request" } } end)
    local next_device = policy.escalate{ strong = broken:open(), when = function() return true end }
    local s, beats, own, o = knl.open{ store = "mem" }, 0, device, nil
    repeat
      o, beats = knl.beat(s, own), beats + 1
      local stronger = next_device(o, own)
      local ended = stronger == own
      own = stronger
    until ended or beats == 5
    assert.same({ 2, "error" }, { beats, o.status })
    local fn = function() end
    next_device = policy.escalate{ strong = fn }
    local stronger = next_device(never.refused, device)
    assert.is_true(next_device(never.refused, stronger) == stronger)
    assert.is_true(next_device(never.refused, stronger:with{ system = "t" }).system == "t")
  end)

  it("asks when in place of that", function()
    assert.is_true(escalates(never.ok, { when = function(o) return o.status == "ok" end }))
    assert.is_false(escalates(never.refused, { when = function() return false end }))
    assert.is_false(escalates(never.refused, { when = function() end }))
    assert.is_true(escalates(never.ok,
      { when = setmetatable({}, { __call = function() return true end }) }))
  end)

  it("raises what when raises, and an answer that is none", function()
    assert.has_error(function() escalates(never.ok, { when = function() error("broken") end }) end,
      "broken")
    assert.has_error(function() escalates(never.ok, { when = function() return 1 end }) end,
      "policy%.escalate: when must answer true or false, got number")
  end)

  it("drives the same session and log", function()
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "go" } }
    local first = knl.beat(s, knl.device{ llm = ports.script{ { refuse = "no" } }:open() })
    local stronger = ports.script(function() return { text = "strong" } end):open()
    local o = knl.beat(s, policy.escalate{ strong = stronger }(first, device))
    assert.equal("strong", o.out.content[1].text)
    assert.equal(2, #knl.views.beats(s))
  end)

  it("takes a function as strong", function()
    local fn = function() return { status = "ok", content = {}, usage = {} } end
    assert.is_true(policy.escalate{ strong = fn }(never.refused, device).llm == fn)
  end)

  it("refuses what is no outcome and no device", function()
    local next_device = policy.escalate{ strong = strong }
    assert.errors_at_line(function() next_device(nil, device) end, 0,
      "policy.escalate: outcome must be an Outcome, got nil")
    assert.errors_at_line(function() next_device(5, device) end, 0,
      "policy.escalate: outcome must be an Outcome, got number")
    assert.errors_at_line(function() next_device(never.ok) end, 0,
      "policy.escalate: device must be a device, got nil")
    assert.errors_at_line(function() next_device(never.ok, {}) end, 0,
      "policy.escalate: device must be a device, got table")
  end)
end)

describe("the options of policy.escalate", function()
  local function refuses(opts, text)
    assert.errors_at_line(function() policy.escalate(opts) end, 0, "policy.escalate: " .. text)
  end

  it("are a table with strong, known by name", function()
    refuses(nil, "opts must be a table { strong, when? }, got nil")
    refuses("x", "opts must be a table { strong, when? }, got string")
    refuses({}, "strong is required")
    refuses({ strong = print, wen = print }, "unknown option 'wen' (did you mean 'when'?)")
    refuses({ strong = print, session = 1 },
      "unknown option 'session' (escalate looks at an outcome, not at a session)")
    refuses({ strong = print, owner = "x" },
      "unknown option 'owner' (a policy holds no state: it belongs to knl.open)")
  end)

  it("have an llm as strong and a callable when", function()
    for _, v in ipairs{ 5, "x", { 1 }, true, false } do
      refuses({ strong = v }, "strong must be an llm, got " .. type(v))
    end
    refuses({ strong = ports.script{} }, "strong must be an llm, got userdata")
    refuses({ strong = print, when = 5 }, "when must be a function, got number")
    refuses({ strong = print, when = false }, "when must be a function, got false")
  end)
end)
