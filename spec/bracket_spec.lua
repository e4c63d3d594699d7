-- The bracket: knl.session(opts, fn) opens or resumes, runs, and closes behind it.

local knl = require("knl")

local function open(opts)
  opts = opts or {}
  opts.store = "mem"
  return knl.open(opts)
end

describe("knl.session", function()
  it("answers every value of the function, nil included", function()
    local seen
    local n, a, b, c = (function(...) return select("#", ...), ... end)(knl.session({ store = "mem" }, function(s)
      seen = s
      return 1, nil, 3
    end))
    assert.same({ 3, 1, nil, 3 }, { n, a, b, c })
    local rows = seen:events()
    assert.equal("session_closed", rows[#rows].kind)
    assert.equal("scope_exit", rows[#rows].data.reason)
  end)

  it("raises the very value and closes with error and its words", function()
    local seen
    local t = setmetatable({}, { __tostring = function() return "my words" end })
    assert.equal(t, assert.has_error(function()
      knl.session({ store = "mem" }, function(s)
        seen = s
        error(t)
      end)
    end))
    local rows = seen:events()
    assert.equal("error", rows[#rows].data.reason)
    assert.matches("my words", rows[#rows].data.detail)
  end)

  it("resumes the session that opts name", function()
    local s = open{ budget = { amount = 1 } }
    local opts = { session = s:id(), budget = { amount = 1 }, owner = "ada", meta = { job = "x" } }
    local id = knl.session(opts, function(again)
      assert.equal(1, again:remaining()) -- the budget was for a new one
      assert.equal("anon", again:owner())
      return again:id()
    end)
    assert.equal(s:id(), id)
  end)

  it("leaves a session open that its loop did not end", function()
    local stopped = knl.Outcome.stopped("budget")
    local failed = knl.Outcome.err("call", { kind = "overloaded", retryable = true, message = "full" })
    for _, o in ipairs{ stopped, knl.Outcome.refused("model"), failed } do
      local seen
      local answer = knl.session({ store = "mem" }, function(s) seen = s return o end)
      assert.equal(o, answer)
      assert.equal(0, #seen:scan{ kinds = { "session_closed" } })
      assert.equal(seen:id(), knl.resume{ session = seen:id(), store = "mem" }:id())
    end
    for _, v in ipairs{ knl.Outcome.ok{}, { status = "stopped" }, { status = "error", kind = 1 } } do
      local seen
      knl.session({ store = "mem" }, function(s) seen = s return v end)
      assert.equal(1, #seen:scan{ kinds = { "session_closed" } })
    end
  end)

  it("leaves a session alone that was closed before", function()
    local seen
    knl.session({ store = "mem" }, function(s)
      seen = s
      s:close("done", "early")
    end)
    assert.equal(1, #seen:scan{ kinds = { "session_closed" } })
    assert.equal("done", seen:view("tail", { n = 1 })[1].data.reason)
  end)

  it("nests", function()
    knl.session({ store = "mem" }, function(outer)
      local inner_id = knl.session({ store = "mem" }, function(inner) return inner:id() end)
      assert.is_false(inner_id == outer:id())
      assert.equal(2, outer:append{ kind = "note" })
    end)
  end)

  it("wants a function and the keys of the call it makes", function()
    assert.errors_at_line(function() knl.session({}, 5) end, 0,
      "knl.session: argument 2 (fn): got 5, want a function")
    assert.errors_at_line(function() knl.session({ lllm = 1 }, print) end, 0,
      'unknown option "lllm"')
    assert.errors_at_line(function() knl.session({ llm = 1 }, print) end, 0,
      "belongs to knl.device")
    assert.errors_at_line(function() knl.session({ session = "x", ownr = "y" }, print) end, 0,
      'unknown option "ownr"')
  end)
end)
