-- Views: readings of the log, as rows.

local knl, ports = require("knl"), require("ports")

-- A session with a budget and two beats, the first with two calls.
local function driven()
  local s = knl.open{ store = "mem", owner = "ada", budget = { amount = 5, tag = "beats" } }
  s:append{ kind = "msg_user", data = { content = "go" } }
  local device = knl.device{
    llm = ports.script{
      { calls = { { "good" }, { "bad" } },
        usage = { input_tokens = 10, output_tokens = 4, thinking_tokens = 1 } },
      { text = "x", usage = { input_tokens = 20, output_tokens = 2, cache_read_tokens = 5 } },
    }:open(),
    tools = { good = { handler = function() end }, bad = { handler = function() error("no") end } },
  }
  local a, b = knl.beat(s, device).out.beat, knl.beat(s, device).out.beat
  return s, a, b
end

-- The cases that every view has.
local function refuses(view, name)
  assert.errors_at_line(function() view() end, 0,
    ("knl.views.%s: argument 1 (session): got nil, want"):format(name))
  assert.errors_at_line(function() view({}) end, 0, "argument 1 (session): got a table, want")
  assert.errors_at_line(function() view(knl.device{}) end, 0, "argument 1 (session)")
  local s = knl.open{ store = "mem" }
  assert.errors_at_line(function() view(s, { limt = 1 }) end, 0,
    'unknown option "limt" (did you mean "limit"?)')
  assert.errors_at_line(function() view(s, { limit = 0 }) end, 0,
    'option "limit": got 0, want a whole number ≥ 1')
  assert.errors_at_line(function() view(s, { limit = 1.5 }) end, 0,
    'option "limit": got 1.5, want a whole number')
end

describe("knl.views.beats", function()
  it("has a row a beat, in order", function()
    local s, a, b = driven()
    local rows, truncated = knl.views.beats(s)
    assert.is_false(truncated)
    assert.same({
      session = s:id(), beat = a, seq_from = 4, seq_to = 10,
      kinds = "budget_reserved,llm_request,llm_response,tool_call,tool_result,tool_call,tool_result",
    }, rows[1])
    assert.equal(b, rows[2].beat)
    assert.equal(2, #rows)
  end)

  it("is cut by a limit, and reads other sessions", function()
    local s, t = driven(), driven()
    local rows, truncated = knl.views.beats(s, { limit = 1 })
    assert.equal(1, #rows)
    assert.is_true(truncated)
    rows = knl.views.beats(s, { sessions = { t, s:id() } })
    assert.same({ 4, t:id(), s:id() }, { #rows, rows[1].session, rows[3].session })
    assert.errors_at_line(function() knl.views.beats(s, { sessions = { 5 } }) end, 0,
      "sessions[1]: got 5, want a session or its id")
  end)

  it("is an empty list without beats", function()
    assert.equal("[]", std.json.encode((knl.views.beats(knl.open{ store = "mem" }))))
  end)

  it("refuses what is no session and no option", function() refuses(knl.views.beats, "beats") end)
end)

describe("knl.views.tool_pairs", function()
  it("has a row a call with its result", function()
    local s, a = driven()
    local rows = knl.views.tool_pairs(s)
    assert.equal(2, #rows)
    assert.same({ a, "good", true }, { rows[1].beat, rows[1].name, rows[1].ok })
    assert.same({ "bad", false }, { rows[2].name, rows[2].ok })
    assert.equal("string", type(rows[1].call_id))
  end)

  it("refuses what is no session and no option",
    function() refuses(knl.views.tool_pairs, "tool_pairs") end)
end)

describe("knl.views.open_calls", function()
  it("has a row for a call without a result, while it runs", function()
    local s = knl.open{ store = "mem" }
    local seen
    knl.beat(s, knl.device{
      llm = ports.script{ { calls = { { "look" } } } }:open(),
      tools = { look = { handler = function(_,
        ctx) seen = knl.views.open_calls(ctx.session) end } },
    })
    assert.equal(1, #seen)
    assert.equal("look", seen[1].name)
    assert.same({}, (knl.views.open_calls(s)))
  end)

  it("refuses what is no session and no option",
    function() refuses(knl.views.open_calls, "open_calls") end)
end)

describe("knl.views.ledger", function()
  it("has a row a move", function()
    local s, a = driven()
    local rows = knl.views.ledger(s)
    assert.same({ "budget_granted", "budget_reserved", "budget_reserved" },
      { rows[1].kind, rows[2].kind, rows[3].kind })
    assert.same({ 5, "beats", 2 }, { rows[1].amount, rows[1].tag, rows[1].seq })
    assert.equal(a, rows[2].beat)
  end)

  it("refuses what is no session and no option", function() refuses(knl.views.ledger, "ledger") end)
end)

describe("knl.views.usage", function()
  it("sums what the calls of a session used", function()
    local s = driven()
    assert.same({ {
      session = s:id(), calls = 2, input_tokens = 30, output_tokens = 6, thinking_tokens = 1, cache_read_tokens = 5, cache_write_tokens = 0,
    } }, (knl.views.usage(s)))
  end)

  it("has no row for a session without a call", function()
    assert.same({}, (knl.views.usage(knl.open{ store = "mem" })))
  end)

  it("refuses what is no session and no option", function() refuses(knl.views.usage, "usage") end)
end)

describe("knl.views.tree", function()
  it("has parents before their children", function()
    local root = knl.open{ store = "mem", owner = "ada", budget = { amount = 9, tag = "t" } }
    local child = knl.open{ parent = root, budget = { from_parent = 4 } }
    local leaf = knl.open{ parent = child, budget = { from_parent = 1 } }
    leaf:close()
    local rows = knl.views.tree(root)
    assert.same({ root:id(), child:id(), leaf:id() },
      { rows[1].session, rows[2].session, rows[3].session })
    assert.same({ 0, 1, 2 }, { rows[1].depth, rows[2].depth, rows[3].depth })
    assert.same({ root:id(), "ada", 3, "t" },
      { rows[2].parent, rows[2].owner, rows[2].remaining, rows[2].tag })
    assert.is_nil(rows[1].closed_epoch_ms)
    assert.is_true(rows[3].closed_epoch_ms >= rows[3].opened_epoch_ms)
    assert.equal(2, #knl.views.tree(child))
  end)

  it("refuses what is no session and no option", function() refuses(knl.views.tree, "tree") end)
end)

describe("knl.views.sessions", function()
  it("has a row a session of the store", function()
    local s = driven()
    local mine
    for _, row in ipairs((knl.views.sessions(s))) do
      mine = row.session == s:id() and row or mine
    end
    assert.same({ "ada", 2, 1, 3 }, { mine.owner, mine.calls, mine.epoch, mine.remaining })
    assert.equal(s:len(), mine.events)
    local rows, truncated = knl.views.sessions(s, { limit = 1 })
    assert.equal(1, #rows)
    assert.is_true(truncated)
  end)

  it("refuses what is no session and no option", function()
    refuses(knl.views.sessions, "sessions")
    local s = driven()
    assert.errors_at_line(function() knl.views.sessions(s, { sessions = {} }) end, 0,
      'unknown option "sessions"')
  end)
end)
