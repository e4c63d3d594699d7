-- Sessions: opening, resuming, attaching, closing, and what a handle says.

local knl, ports = require("knl"), require("ports")

local function open(opts)
  opts = opts or {}
  opts.store = "mem"
  return knl.open(opts)
end

local function kinds(rows)
  local out = {}
  for i, ev in ipairs(rows) do
    out[i] = ev.kind
  end
  return table.concat(out, " ")
end

-- Wants fn to raise a kernel error of a kind on its own line.
local function refused(kind, text, fn)
  local raised = assert.errors_at_line(fn, 0, text)
  assert.equal(kind, raised.kind)
end

describe("knl.open", function()
  it("writes session_opened and nothing else", function()
    local s = open()
    local rows, truncated = s:events()
    assert.equal("session_opened", kinds(rows))
    assert.is_false(truncated)
    assert.equal("anon", rows[1].data.owner)
    assert.equal(s:scope_id(), rows[1].data.scope_id)
  end)

  it("grants a budget in the same write", function()
    local s = open{ budget = { amount = 3, tag = "beats", desc = "a trial" } }
    local rows = s:events()
    assert.equal("session_opened budget_granted", kinds(rows))
    assert.equal(3, rows[2].data.amount)
    assert.equal("beats", rows[2].data.tag)
    assert.equal("a trial", rows[2].data.desc)
  end)

  it("keeps the labels in meta", function()
    local s = open{ meta = { run = "nightly", try = 2, dry = true } }
    assert.same({ run = "nightly", try = 2, dry = true }, s:events()[1].meta)
  end)

  it("moves a child's budget from its parent", function()
    local parent = open{ owner = "ada", budget = { amount = 10, tag = "beats" } }
    local child = knl.open{ parent = parent, budget = { from_parent = 4 } }
    assert.equal(6, parent:remaining())
    assert.equal(4, child:remaining())
    assert.equal("ada", child:owner())
    assert.equal(parent:id(), child:events()[1].data.parent)
    local moved = parent:scan{ kinds = { "budget_reserved" } }[1]
    assert.equal(child:id(), moved.data.child)
  end)

  it("records a refused allocation on the parent and opens nothing", function()
    local parent = open{ budget = { amount = 2 } }
    refused("refused", "2",
      function() knl.open{ parent = parent, budget = { from_parent = 3 } } end)
    assert.equal("session_opened budget_granted budget_refused", kinds(parent:events()))
    assert.equal(1, #knl.views.tree(parent))
  end)

  it("wants a grant on a parent that allocates", function()
    local parent = open()
    refused("validation", "grant",
      function() knl.open{ parent = parent, budget = { from_parent = 1 } } end)
  end)

  it("names an unknown option and the nearest one", function()
    assert.errors_at_line(function() knl.open{ ownr = "x" } end, 0,
      'knl.open: unknown option "ownr" (did you mean "owner"?)')
    assert.errors_at_line(function() knl.open{ budget = { amout = 1 } } end, 0,
      'unknown budget "amout" (did you mean "amount"?)')
    assert.errors_at_line(function() knl.open("x") end, 0,
      "knl.open: argument 1 (opts): got \"x\", want a table")
    assert.errors_at_line(function() knl.open{ owner = 5 } end, 0,
      'option "owner": got 5, want a string')
    assert.errors_at_line(function() knl.open{ [1] = true } end, 0, "unknown option [1]")
  end)

  it("points device keys at knl.device", function()
    assert.errors_at_line(function() knl.open{ tools = {} } end, 0,
      'unknown option "tools": it belongs to knl.device')
  end)

  it("refuses budgets that say two things or nothing", function()
    local parent = open{ budget = { amount = 9 } }
    refused("validation", "both amount and from_parent",
      function() knl.open{ parent = parent, budget = { amount = 1, from_parent = 1 } } end)
    refused("validation", "desc with from_parent",
      function() knl.open{ parent = parent, budget = { from_parent = 1, desc = "x" } } end)
    refused("validation", "refund without from_parent",
      function() knl.open{ budget = { amount = 1, refund = true } } end)
    refused("validation", "no amount", function() knl.open{ budget = {} } end)
    refused("validation", "parent", function() knl.open{ budget = { from_parent = 1 } } end)
    refused("validation", "from_parent", function() knl.open{ parent = parent } end)
    refused("validation", "-1", function() knl.open{ budget = { amount = -1 } } end)
    assert.errors_at_line(function() knl.open{ budget = { amount = 1.5 } } end, 0,
      "got 1.5, want a whole number")
  end)

  it("refuses owners that are the kernel's", function()
    refused("validation", "system", function() knl.open{ owner = "system" } end)
    refused("validation", "anon", function() knl.open{ owner = "anon" } end)
  end)

  it("refuses labels that are not flat, and stores that are no text", function()
    refused("validation", "meta", function() knl.open{ meta = { a = { 1 } } } end)
    refused("validation", "NaN", function() knl.open{ meta = { a = 0 / 0 } } end)
    refused("validation", "store: got 5", function() knl.open{ store = 5 } end)
    assert.errors_at_line(function() knl.open{ parent = {} } end, 0,
      'option "parent": got a table, want a handle')
  end)

  it("refuses a parent that has ended", function()
    local parent = open{ budget = { amount = 5 } }
    parent:close()
    refused("closed", "", function() knl.open{ parent = parent, budget = { from_parent = 1 } } end)
  end)
end)

describe("knl.resume", function()
  it("takes over: a higher epoch, the same scope, the older handle fenced", function()
    local s = open{ owner = "ada" }
    local again = knl.resume{ session = s:id(), store = "mem" }
    assert.equal(s:epoch() + 1, again:epoch())
    assert.equal(s:scope_id(), again:scope_id())
    assert.equal("ada", again:owner())
    assert.equal("session_opened driver_changed", kinds(again:events()))
    refused("fenced", "", function() s:append{ kind = "note" } end)
    refused("fenced", "", function() s:close() end)
    assert.equal(2, again:len())
  end)

  it("adds a grant to what is left", function()
    local s = open{ budget = { amount = 2, tag = "a" } }
    s:spend(1)
    local again = knl.resume{ session = s:id(), budget = { amount = 5, tag = "b" } }
    assert.equal(6, again:remaining())
  end)

  it("refuses what is not there or has ended", function()
    refused("validation", "no-such", function() knl.resume{ session = "no-such" } end)
    local s = open()
    s:close()
    refused("closed", "has ended", function() knl.resume{ session = s:id() } end)
  end)

  it("wants the id, and a grant from outside", function()
    assert.errors_at_line(function() knl.resume() end, 0,
      "knl.resume: argument 1 (opts): got nil, want a table")
    assert.errors_at_line(function() knl.resume{} end, 0,
      'option "session": got nil, want a string')
    assert.errors_at_line(function() knl.resume{ session = open() } end, 0,
      'option "session": got a userdata, want a string')
    assert.errors_at_line(function() knl.resume{ session = "x", owner = "y" } end, 0,
      'unknown option "owner"')
    refused("validation", "from_parent",
      function() knl.resume{ session = open():id(), budget = { from_parent = 1 } } end)
  end)
end)

describe("knl.attach", function()
  it("reads and appends beside the driver", function()
    local s = open{ budget = { amount = 3 } }
    local beside = knl.attach{ session = s:id() }
    assert.equal(3, beside:append{ kind = "note" })
    assert.equal(4, s:append{ kind = "note" })
    assert.equal(4, beside:len())
    assert.equal(3, beside:remaining())
  end)

  it("never drives", function()
    local s = open{ budget = { amount = 3 } }
    local beside = knl.attach{ session = s:id() }
    refused("unsupported", "attach", function() beside:reserve(1) end)
    refused("unsupported", "attach", function() beside:spend(1) end)
    refused("unsupported", "attach", function() beside:settle(1) end)
    refused("unsupported", "attach", function() beside:close() end)
    local o = knl.beat(beside, knl.device{ llm = ports.script({}):open() })
    assert.equal("state", o.kind)
    assert.equal("unsupported", o.detail.kind)
  end)

  it("refuses an id that nothing has", function()
    refused("validation", "none", function() knl.attach{ session = "none" } end)
    assert.errors_at_line(function() knl.attach{ session = "x", budget = {} } end, 0,
      'unknown option "budget"')
  end)
end)

describe("knl.is_session", function()
  it("knows handles and complete stand-ins", function()
    local s = open()
    assert.is_true(knl.is_session(s))
    local fake = {}
    for _, m in ipairs{ "id", "scope_id", "owner", "epoch", "append", "events", "beats", "scan", "len", "view", "request", "reserve",
      "spend", "settle", "remaining", "exhausted", "interrupted", "close" } do
      fake[m] = function() end
    end
    assert.is_true(knl.is_session(fake))
    fake.settle = nil
    assert.is_false(knl.is_session(fake))
  end)

  it("says no to everything else, without raising", function()
    assert.is_false(knl.is_session())
    assert.is_false(knl.is_session(5))
    assert.is_false(knl.is_session({}))
    assert.is_false(knl.is_session(knl.device{}))
    assert.is_false(knl.is_session(setmetatable({}, { __index = function() error("no") end })))
  end)
end)

describe("session:id", function()
  it("is a text of its own for every session", function()
    local a, b = open(), open()
    assert.equal("string", type(a:id()))
    assert.is_false(a:id() == b:id())
    assert.equal("session " .. a:id(), tostring(a))
  end)

  it("is called with a colon, on a session", function()
    local s = open()
    assert.errors_at_line(function() s.id() end, 0,
      "session:id: got nil as receiver, want a session (call it with a colon)")
    assert.errors_at_line(function() s.id(knl.device{}) end, 0, "as receiver, want a session")
    assert.errors_at_line(function() s.name = "x" end, 0,
      'session: field "name" cannot be set, a session is read-only')
  end)
end)

describe("session:scope_id", function()
  it("is not the id", function()
    local s = open()
    assert.is_false(s:scope_id() == s:id())
    assert.equal("string", type(s:scope_id()))
  end)
end)

describe("session:owner", function()
  it("is who opened it, anon when nobody was named", function()
    assert.equal("ada", open{ owner = "ada" }:owner())
    assert.equal("anon", open():owner())
  end)
end)

describe("session:epoch", function()
  it("is a whole number that a resume raises", function()
    local s = open()
    assert.equal(1, s:epoch())
    assert.equal(2, knl.resume{ session = s:id() }:epoch())
  end)
end)

describe("session:len", function()
  it("counts the beats that were begun, after a resume too", function()
    local s = knl.open{}
    local device = knl.device{ llm = ports.script(function() return { text = "a" } end):open() }
    assert.equal(0, s:len("beats"))
    knl.beat(s, device)
    s:append{ kind = "llm_request", beat = "mine", data = { window = "none" } }
    knl.beat(s, device)
    assert.equal(2, s:len("beats"))
    assert.is_nil(knl.views.beats(s)[2].window)
    assert.equal(2, knl.resume{ session = s:id() }:len("beats"))
    assert.has_error(function() s:len("beat") end, 'len: validation: got "beat", want "events" or "beats"')
  end)

  it("counts the events", function()
    local s = open()
    assert.equal(1, s:len())
    s:append{ kind = "note" }
    assert.equal(2, s:len())
  end)
end)

describe("session:close", function()
  it("records reason and detail, once", function()
    local s = open()
    s:close("done", "all of it")
    s:close("again")
    local rows = s:events()
    assert.equal("session_opened session_closed", kinds(rows))
    assert.same({ reason = "done", detail = "all of it" }, rows[2].data)
  end)

  it("says closed without a reason, and cuts a long detail", function()
    local s = open()
    s:close()
    assert.equal("closed", s:view("tail", { n = 1 })[1].data.reason)
    local t = open()
    t:close("x", ("é"):rep(300))
    assert.equal(("é"):rep(200) .. "...", t:view("tail", { n = 1 })[1].data.detail)
  end)

  it("ends the stream: nothing is appended after it, reads go on", function()
    local s = open{ budget = { amount = 1 } }
    local beside = knl.attach{ session = s:id() }
    s:close()
    refused("closed", "", function() s:append{ kind = "note" } end)
    refused("closed", "", function() s:reserve(1) end)
    refused("closed", "", function() s:spend(1) end)
    refused("closed", "", function() beside:append{ kind = "note" } end)
    assert.equal(3, s:len())
    assert.equal(1, s:remaining())
  end)

  it("names the children that are still open", function()
    local parent = open{ budget = { amount = 5 } }
    local child = knl.open{ parent = parent, budget = { from_parent = 1 } }
    parent:close()
    assert.same({ child:id() }, parent:view("tail", { n = 1 })[1].data.open_children)
  end)

  it("gives back what a child has left, when it was opened so", function()
    local parent = open{ budget = { amount = 5 } }
    local child = knl.open{ parent = parent, budget = { from_parent = 4, refund = true } }
    child:spend(1)
    child:close()
    assert.equal(4, parent:remaining())
    assert.equal(1, #parent:scan{ kinds = { "budget_returned" } })
  end)

  it("wants texts", function()
    local s = open()
    assert.errors_at_line(function() s:close(5) end, 0,
      "session:close: argument 1 (reason): got 5, want a string")
    assert.errors_at_line(function() s:close("a", {}) end, 0,
      "session:close: argument 2 (detail): got a table, want a string")
  end)
end)
