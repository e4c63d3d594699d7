-- knl.shapes: the kernel's values as schemas, made from its Go types.

local knl = require("knl")
local lshape = require("lshape")

local check = lshape.check.check
local S = knl.shapes

describe("knl.shapes", function()
  it("has the closed lists of the kernel as one_of", function()
    local function values(name)
      assert.equal("one_of", S[name].kind, name)
      return table.concat(S[name].values, " ")
    end
    assert.equal("busy storage corruption closed validation unsupported timeout refused fenced",
      values("error_kinds"))
    assert.equal("transport rate_limited overloaded server auth invalid_request context_overflow "
      .. "cancelled unknown", values("call_error_kinds"))
    assert.equal("end_turn tool_use stop_sequence max_tokens pause_turn refusal",
      values("stop_reasons"))
    assert.equal("ok refused error stopped", values("outcome_status"))
    assert.equal("conf filter call state contract", values("outcome_stages"))
    assert.equal("budget deadline", values("stopped_reasons"))
    assert.equal("read write external", values("effects"))
    assert.equal("run deny", values("tool_policy_decision"))
  end)

  it("gives its schemas the methods of lshape", function()
    local maybe = S.tool_pair:is_optional()
    assert.is_true(check(nil, maybe))
    assert.is_false(check({}, maybe))
  end)

  it("is the same table at each look", function()
    assert.equal(S, knl.shapes)
    assert.equal(S.event, require("knl").shapes.event)
    assert.equal(S.event, S.beat_record.fields.events.inner.elem)
  end)

  it("takes every Outcome that a script can make", function()
    local O = knl.Outcome
    for _, o in ipairs{
      O.ok{}, O.refused("model"), O.refused("model", { a = 1 }), O.err("mine", "text"),
      O.err("call", nil), O.stopped("budget"), O.stopped("mine", "tag"),
    } do
      local ok, why = check(o, S.outcome)
      assert.is_true(ok, tostring(why))
    end
  end)

  it("refuses what is no Outcome, naming the place", function()
    local function why(v)
      local ok, text = check(v, S.outcome)
      assert.is_false(ok)
      return text
    end
    assert.matches("missing discriminant field 'status'", why({}))
    assert.matches("discriminant 'status' = \"done\" not in", why({ status = "done" }))
    assert.matches("$.out: expected table, got string", why({ status = "ok", out = "text" }))
    assert.matches("$.reason: expected string, got nil", why({ status = "stopped" }))
    assert.matches("$.reason: expected string, got nil", why({ status = "refused", detail = {} }))
    assert.matches("$.kind: expected string, got nil", why({ status = "error", detail = {} }))
  end)

  it("says what knl.device and a tool take, closed", function()
    assert.is_true(check({ handler = print, effects = "read", timeout = 1.5 }, S.tool_entry))
    for field, text in pairs{
      handler = "no variant matched", effects = "expected one of", timeout = "-1 is below min 0",
      strict = "expected boolean", wrong = "unexpected field",
    } do
      local entry = { handler = print, timeout = 1 }
      entry[field] = field == "timeout" and -1 or "x"
      local ok, why = check(entry, S.tool_entry)
      assert.is_false(ok, field)
      assert.matches("$." .. field .. ": " .. text, why:gsub("\n.*", ""), field)
    end
    local opts = { tools = { a = { handler = print } }, filters = { print } }
    assert.is_true(check(opts, S.device_opts))
    assert.is_false(check({ tools = { a = {} } }, S.device_opts))
  end)

  it("says how an event is appended, and how it reads", function()
    assert.is_true(check({ kind = "note", meta = { a = 1, b = "x", c = true } }, S.event_in))
    for field, value in pairs{ kind = "", beat = 1, meta = { a = {} }, data = "x", seq = 1 } do
      local event = { kind = "note" }
      event[field] = value
      assert.is_false(check(event, S.event_in), field)
    end
    local s = knl.open()
    s:append{ kind = "note" }
    for _, ev in ipairs(s:events()) do
      assert.is_true(check(ev, S.event))
    end
  end)

  it("has the options that a function takes under the function's name", function()
    assert.is_true(check({ owner = "me", budget = { amount = 1 } }, S.open_opts))
    assert.is_false(check({ owner = 1 }, S.open_opts))
    assert.is_false(check({ budget = { amunt = 1 } }, S.open_opts))
    assert.is_false(check({}, S.resume_opts), "session is required")
    assert.is_true(check({ last = 3, from_seed = true }, S.session_beats_opts))
    assert.is_false(check({ last = 1.5 }, S.session_beats_opts))
    assert.equal(S.api.open.args[1][1], S.open_opts)
  end)
end)

describe("knl.shapes.api", function()
  it("says of a function what it takes and answers", function()
    local rerun = S.api.rerun
    assert.same({ "session", "device", "call_id" },
      { rerun.args[1].name, rerun.args[2].name, rerun.args[3].name })
    assert.same({ kind = "prim", prim = "string" }, rerun.args[3][1])
    assert.equal("of the interrupted beat", rerun.args[3][2])
    assert.is_nil(rerun.args[3].optional)
    assert.is_true(S.api.beat.args[3].optional)
    assert.equal(S.beat_outcome, rerun.returns)
    assert.equal("knl.event[], boolean", S.objects.session.events.returns)
    assert.is_nil(S.objects.session.spend.returns)
  end)

  it("says of what is no function its type", function()
    assert.equal("string", S.api.version.returns)
    assert.is_nil(S.api.version.args)
    assert.equal("table", S.api.views.returns)
    assert.equal("One row a beat.", S.api.views.members.beats.doc)
  end)

  it("says of std and ports the same", function()
    assert.equal("path", std.shapes.api.fs.members.read.args[1].name)
    assert.equal("boolean", std.shapes.sh_run_opts.fields.cwd and "boolean")
    assert.is_false(rawget(std.shapes.sh_run_opts, "open"))
    local ports = require("ports")
    assert.equal(ports.shapes.conf, ports.shapes.objects.port.open.args[1][1])
    local conf = { model = "m", thinking = { effort = "low" }, stop = "x" }
    assert.is_true(check(conf, ports.shapes.conf))
    assert.is_false(check({ modell = "m" }, ports.shapes.conf))
    assert.is_false(check({ thinking = { effort = "most" } }, ports.shapes.conf))
    assert.is_true(check({ text = "hi", delay = 0.1 }, ports.shapes.reply))
    assert.is_false(check({ text = "hi", delay = -1 }, ports.shapes.reply))
  end)
end)
