-- supervisor: what the module publishes, and what it says to wrong arguments.

local check = require("lshape.check")
local knl = require("knl")
local supervisor = require("supervisor")

-- In dev mode the gate stands in front: it answers positional arguments of a wrong
-- type in words of its own. Options, and what no shape can say, are answered alike.
local dev = check.is_dev_mode()

local function open()
  return knl.open{ store = "mem", budget = { amount = 10 } }
end

-- fn raises at its line: text, or in dev mode the gate's word on argument arg.
local function wrong(text, fn, arg)
  assert.errors_at_line(fn, 0, dev and arg or text)
end

local NO_SESSION = "the first argument must be a knl session (from knl.open / knl.session), got "

local NAN, INF = 0 / 0, 1 / 0

-- Wrong values of a whole number from 1 on, and how they are named.
local not_whole = {
  { 0, "0" }, { -1, "-1" }, { 1.5, "1.5" }, { NAN, "nan" }, { INF, "inf" }, { "3", '"3"' },
  { false, "false" }, { {}, "table" },
}

describe("supervisor", function()
  it("declares what it exports and exports what it declares", function()
    local exports, entries = {}, {}
    for name in pairs(supervisor) do
      exports[name] = true
    end
    for name, entry in pairs(supervisor.shapes.api) do
      entries[name] = true
      assert.is_string(entry.doc)
      assert.truthy(entry.returns)
    end
    assert.same(exports, entries)
    assert.same({ child = true, parallel = true, merge = true, reclaim = true, shapes = true },
      exports)
  end)

  it("publishes closed shapes of its options", function()
    local S = supervisor.shapes
    for value, shape in pairs{
      [{ budget = { amount = 1, tag = "t", refund = true } }] = S.child_opts,
      [{ joiner = "isolate", timeout_ms = 1, width = 1 }] = S.parallel_opts,
      [{ limit = 1, timeout_ms = 1 }] = S.merge_opts,
      [{ opts = { budget = { amount = 1 } }, fn = print }] = S.child_entry,
    } do
      assert.is_true(check.check(value, shape))
      value.other = 1
      assert.is_false(check.check(value, shape))
    end
    assert.is_true(check.check("cancel_on_error", S.joiner))
    assert.is_false(check.check("other", S.joiner))
  end)

  it("answers what its shapes say", function()
    local S, up = supervisor.shapes, open()
    local opts = { budget = { amount = 1 } }
    assert.is_true(check.check(supervisor.parallel(up, {
      { opts = opts, fn = function() return 1 end }, { opts = opts, fn = error },
      { opts = { budget = { amount = 99 } }, fn = print },
    }), S.results))
    local later = knl.resume{ session = up:id(), store = "mem" }
    knl.open{ parent = later, budget = { from_parent = 1 } }
    later = knl.resume{ session = up:id(), store = "mem" }
    local rows = supervisor.reclaim(later)
    assert.equal(1, #rows)
    assert.is_true(check.check(rows, S.reclaimed))
    assert.is_false(check.check({ ok = true, values = {}, err = 1 }, S.result_slot))
    assert.is_false(check.check({ ok = "true", values = {} }, S.result_slot))
  end)

  it("is gated in dev mode and left alone without it", function()
    local up = open()
    local raised = assert.has_error(function() supervisor.child(up, {}, 5) end)
    assert.equal(dev, raised:find("supervisor.child arg 3 (the body, fn(child))", 1, true) ~= nil)
  end)
end)

-- The options of a child, as child and an entry of parallel take them: what is
-- said of them stands behind place.
local function child_options(place, call)
  local function refused(text, opts)
    assert.has_error(function() call(opts) end, place .. text)
  end

  it("refuses unknown words in " .. place, function()
    refused(": unknown option 'budgt' (did you mean 'budget'?)", { budgt = {} })
    refused(": unknown option 'owner' (a child has its parent's owner)",
      { budget = { amount = 1 }, owner = "x" })
    refused(": unknown option 'session' (the parent is the first argument)", { session = "x" })
    refused(": unknown option 'contract'", { budget = { amount = 1 }, contract = {} })
    refused(" budget: unknown option 'amuont' (did you mean 'amount'?)", { budget = { amuont = 1 } })
    refused(" budget: unknown option 'from_parent'", { budget = { amount = 1, from_parent = 1 } })
    refused(" budget: unknown option 'desc'", { budget = { amount = 1, desc = "x" } })
    refused(": unknown option", { { budget = { amount = 1 } } })
  end)

  it("wants a budget in " .. place, function()
    assert.has_error(function() call({}) end, place .. ": budget is required — {")
    local through = setmetatable({}, { __index = { budget = { amount = 1 } } })
    assert.has_error(function() call(through) end, place .. ": opts must be a plain table")
    assert.has_error(function() call{ budget = {} } end, place .. ": budget.amount is required")
    refused(": budget must be a table", { budget = false })
    refused(": budget must be a table", { budget = 5 })
    for _, case in ipairs(not_whole) do
      refused(": budget.amount must be a whole number >= 1, got " .. case[2],
        { budget = { amount = case[1] } })
    end
    for _, tag in ipairs{ false, 5, {} } do
      refused(": budget.tag must be a non-empty string", { budget = { amount = 1, tag = tag } })
    end
    refused(": budget.tag must be a non-empty string", { budget = { amount = 1, tag = "" } })
    for _, refund in ipairs{ 1, "yes", {} } do
      refused(": budget.refund must be true or false", { budget = { amount = 1, refund = refund } })
    end
  end)

  it("wants a table of options in " .. place, function()
    local text = ": opts must be a table { budget = { amount, tag?, refund? } }, got "
    refused(text .. "boolean", false)
    refused(text .. "number", 5)
    refused(text .. "userdata", open())
    assert.has_error(function() call(nil) end, place .. text .. "nil")
  end)
end

describe("supervisor.child with wrong arguments", function()
  local up = open()

  it("wants a session first, then a function, then options", function()
    for _, v in ipairs{ false, 5, "01J", {}, print } do
      assert.errors_at_line(function() supervisor.child(v, 5, print) end, 0,
        "supervisor.child: " .. NO_SESSION .. type(v))
    end
    assert.errors_at_line(function() supervisor.child() end, 0, "the first argument must be a knl")
    wrong("supervisor.child: the third argument must be a function fn(child), got number",
      function() supervisor.child(up, { budget = {} }, 5) end, "supervisor.child arg 3 (the body")
    wrong("supervisor.child: the third argument must be a function fn(child), got boolean",
      function() supervisor.child(up, { budget = {} }, false) end, "supervisor.child arg 3")
    assert.errors_at_line(function() supervisor.child(up, { budget = {} }) end, 0,
      "supervisor.child: the third argument must be a function fn(child), got nil")
    assert.errors_at_line(function() supervisor.child(up, { budget = {} }, {}) end, 0,
      "supervisor.child: the third argument must be a function fn(child), got table")
  end)

  child_options("supervisor.child", function(opts)
    supervisor.child(up, opts, print)
  end)
end)

describe("supervisor.parallel with wrong arguments", function()
  local up = open()
  local good = { opts = { budget = { amount = 1 } }, fn = function() error("it ran") end }

  after_each(function() -- whatever was wrong, nothing was opened
    assert.equal(1, #knl.views.tree(up))
    assert.equal(10, up:remaining())
  end)

  child_options("supervisor.parallel: children[2]", function(opts)
    supervisor.parallel(up, { good, { opts = opts, fn = print } })
  end)

  it("wants a session and an array", function()
    for _, v in ipairs{ false, 5, "01J", {} } do
      assert.errors_at_line(function() supervisor.parallel(v, {}) end, 0,
        "supervisor.parallel: " .. NO_SESSION .. type(v))
    end
    local text = "supervisor.parallel: the second argument must be an array of { opts, fn }, got "
    wrong(text .. "number", function() supervisor.parallel(up, 5) end, "supervisor.parallel arg 2")
    wrong(text .. "boolean", function() supervisor.parallel(up, false) end,
      "supervisor.parallel arg 2 (an array of { opts, fn })")
    for _, list in ipairs{ { good, nil, good }, { good, name = good }, { [2] = good } } do
      assert.errors_at_line(function() supervisor.parallel(up, list) end, 0,
        text .. "a table with holes or names")
    end
    assert.errors_at_line(function() supervisor.parallel(up) end, 0, text .. "nil")
  end)

  it("wants entries of two keys", function()
    local function refused(text, entry)
      assert.errors_at_line(function() supervisor.parallel(up, { good, entry }) end, 0,
        "supervisor.parallel: children[2]" .. text)
    end
    refused(" must be a table { opts, fn }, got number", 5)
    refused(" must be a table { opts, fn }, got boolean", false)
    refused(" must be a table { opts, fn }, got function", print)
    refused(": unknown option 'fm' (did you mean 'fn'?)", { opts = good.opts, fm = print })
    refused(": unknown option", { good.opts, print })
    refused(": unknown option 'budget'", { budget = { amount = 1 }, fn = print })
    refused(": fn must be a function fn(child), got nil", { opts = good.opts })
    refused(": fn must be a function fn(child), got boolean", { opts = good.opts, fn = false })
    refused(": opts must be a table", { fn = print })
  end)

  it("wants known options of known values", function()
    local function refused(text, opts)
      assert.errors_at_line(function() supervisor.parallel(up, { good }, opts) end, 0,
        "supervisor.parallel: " .. text)
    end
    for _, opts in ipairs{ false, 5, "x" } do
      refused("opts must be a table { joiner?, timeout_ms?, width? }, got " .. type(opts), opts)
    end
    for _, joiner in ipairs{ "all", "", false, 5 } do
      refused('joiner must be one of "isolate", "cancel_on_error", got', { joiner = joiner })
    end
    for _, case in ipairs(not_whole) do
      refused("timeout_ms must be a whole number >= 1, got " .. case[2], { timeout_ms = case[1] })
      refused("width must be a whole number", { width = case[1] })
    end
    refused("width must be a whole number", { width = 1025 })
    assert.errors_at_line(function() supervisor.parallel(up, { good }, { timeout = 5 }) end, 0,
      "supervisor.parallel: unknown option 'timeout' (did you mean 'timeout_ms'?)")
    assert.errors_at_line(function() supervisor.parallel(up, { good }, { "isolate" }) end, 0,
      "supervisor.parallel: unknown option")
  end)
end)

describe("supervisor.merge with wrong arguments", function()
  local up = open()

  it("wants a session and sessions", function()
    for _, v in ipairs{ false, 5, "01J", {} } do
      assert.errors_at_line(function() supervisor.merge(v, { up }) end, 0,
        "supervisor.merge: " .. NO_SESSION .. type(v))
    end
    local text = "supervisor.merge: the second argument must be a non-empty array of sessions, got "
    wrong(text .. "number", function() supervisor.merge(up, 5) end, "supervisor.merge arg 2")
    wrong(text .. "boolean", function() supervisor.merge(up, false) end,
      "supervisor.merge arg 2 (ids or sessions)")
    for _, list in ipairs{ {}, { a = up }, { up, nil, up }, { up, last = up } } do
      assert.errors_at_line(function() supervisor.merge(up, list) end, 0, text)
    end
    assert.errors_at_line(function() supervisor.merge(up) end, 0, text .. "nil")
  end)

  it("wants an id of every session", function()
    local nameless = setmetatable({ id = function() return 5 end },
      { __index = function(_, name) return up[name] end })
    local broken = setmetatable({ id = function() error("no") end },
      { __index = function(_, name) return up[name] end })
    for _, v in ipairs{ false, 5, "", {}, print, nameless, broken } do
      assert.errors_at_line(function() supervisor.merge(up, { up, v }) end, 0,
        "supervisor.merge: sessions[2]: a session must be its id, or a knl session handle that"
          .. " answers one, got " .. type(v))
    end
  end)

  it("wants known options of known values", function()
    local function refused(text, opts)
      assert.errors_at_line(function() supervisor.merge(up, { up }, opts) end, 0,
        "supervisor.merge: " .. text)
    end
    for _, opts in ipairs{ false, 5, "x" } do
      refused("opts must be a table { limit?, timeout_ms? }, got " .. type(opts), opts)
    end
    for _, case in ipairs(not_whole) do
      refused("limit must be a whole number >= 1, got " .. case[2], { limit = case[1] })
      refused("timeout_ms must be a whole number >= 1, got " .. case[2], { timeout_ms = case[1] })
    end
    assert.errors_at_line(function() supervisor.merge(up, { up }, { limits = 1 }) end, 0,
      "supervisor.merge: unknown option 'limits' (did you mean 'limit'?)")
    assert.errors_at_line(function() supervisor.merge(up, { up }, { sessions = {} }) end, 0,
      "supervisor.merge: unknown option 'sessions' (they are the second argument)")
  end)
end)
