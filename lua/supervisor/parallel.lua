--- supervisor.parallel: runs children side by side and answers a slot for each.
--
--    parallel(parent, { { opts = child options, fn = fn(child) }, … }, opts?) -> slots
--
-- The slots stand in the order of the list, whatever ended first:
--
--    { ok = true, values = { n = 2, … } }      the body returned
--    { ok = false, err = v, cancelled? = true } it raised v, was cut short, or its
--                                               child could not be opened
--
-- err is never nil. An Outcome that is not ok is a value like any other, except
-- that of a beat which the cancellation cut: that is no answer. width (32)
-- children are open at a time; the others wait. Their waits overlap, their Lua
-- does not.
--
-- joiner "isolate": a failure means nothing to the others. "cancel_on_error":
-- the first slot that is not ok, a refusal too, cancels the others; what blocks
-- ends at once, a body that goes on regardless is aborted after a second, and
-- what was not started is not opened. timeout_ms does the same to all of them.
-- The call returns when every child has ended, and each has ended closed.
--
-- The list and the options are checked before any child is opened. Nothing is
-- retried.
--
-- Example:
--
--    local jobs = {}
--    for i, question in ipairs(questions) do
--      jobs[i] = { opts = { budget = { amount = 5 } }, fn = research(question) }
--    end
--    for i, slot in ipairs(supervisor.parallel(s, jobs, { timeout_ms = 60000 })) do
--      print(i, slot.ok and slot.values[1] or slot.err)
--    end

local caller = require("supervisor.caller")
local child = require("supervisor.child")
local options = require("lshape.options")
local shapes = require("supervisor.shapes")

local PLACE = "supervisor.parallel"
local WIDTH = 32

local M = {}

M.api = {
  doc = "Runs each fn on a child of its own, side by side; answers a slot for each, in order.",
  args = {
    { shapes.session, "the parent", name = "parent" },
    { shapes.children, "an array of { opts, fn }", name = "children" },
    { shapes.parallel_opts, "of the call", name = "opts", optional = true },
  },
  returns = shapes.results,
  members = {
    fn = {
      doc = "The body of a child.",
      args = { { shapes.session, "its session", name = "child" } },
      returns = "any ...",
    },
  },
}

-- Answers entry i as it will be run, whatever the script does to it meanwhile.
local function checked_entry(i, entry)
  local place = ("%s: children[%d]"):format(PLACE, i)
  if type(entry) ~= "table" then
    options.fail(PLACE, "children[%d] must be a table { opts, fn }, got %s", i, type(entry))
  end
  options.check(place, entry, shapes.entry_keys)
  local fn = rawget(entry, "fn")
  if not options.is_callable(fn) then
    options.fail(place, "fn must be a function fn(child), got %s", type(fn))
  end
  return { budget = caller.budget(place, rawget(entry, "opts")), fn = fn }
end

-- Answers the checked entries of a list that has neither holes nor names.
local function checked_list(children)
  local got = type(children)
  local entries, keys = {}, 0
  if got == "table" then
    for i, entry in ipairs(children) do
      entries[i] = checked_entry(i, entry)
    end
    for _ in pairs(children) do
      keys = keys + 1
    end
    got = "a table with holes or names"
  end
  if keys ~= #entries or type(children) ~= "table" then
    options.fail(PLACE, "the second argument must be an array of { opts, fn }, got %s", got)
  end
  return entries
end

-- Whether an error says that its task was cancelled: by its text, as a wait
-- raises it, or by its kind, as a beat and a failed open report it.
local function says_cancelled(err)
  local ok, text = pcall(tostring, err)
  if ok and type(text) == "string" and text:find("task cancelled", 1, true) then
    return true
  end
  return type(err) == "table" and rawget(err, "kind") == "cancelled"
end

local function failure(err)
  if err == nil then
    err = "the body raised nil"
  end
  return { ok = false, err = err, cancelled = says_cancelled(err) or nil }
end

-- The error of an Outcome that says that its beat was cut by a cancellation.
local function cut(values)
  local outcome = values[1]
  local detail = type(outcome) == "table" and rawget(outcome, "status") == "error"
    and rawget(outcome, "detail")
  return type(detail) == "table" and detail.kind == "cancelled" and detail or nil
end

---@class supervisor.fan one call of parallel
---@field parent knl.session
---@field entries { budget: table, fn: function }[]
---@field slots table[] by index, as they are filled
---@field next integer the first child that nobody has taken
---@field stop? fun() cancels the others; nil: a failure means nothing to them
---@field stopped? boolean
---@field cancelled fun(): boolean whether the running task was

-- The slot of child i, once it has ended.
local function slot(fan, i)
  if fan.stopped then
    return { ok = false, err = "task cancelled before the child was opened", cancelled = true }
  end
  local entry = fan.entries[i]
  local how = child.run(fan.parent, entry.budget, entry.fn)
  if how.raised then
    return failure(how.raised.value)
  elseif how.refused then
    return failure(how.refused)
  end
  local detail = fan.cancelled() and cut(how.values)
  if detail then
    return { ok = false, err = detail, cancelled = true }
  end
  return { ok = true, values = how.values }
end

-- Runs child i, and then one after the other those that nobody has taken.
local function work(fan, i)
  while i <= #fan.entries do
    local filled = slot(fan, i)
    fan.slots[i] = filled
    if not filled.ok and fan.stop then
      fan.stopped = true
      fan.stop()
    end
    i, fan.next = fan.next, fan.next + 1
  end
end

local function start(fan, scope, opts)
  if opts.joiner == "cancel_on_error" then
    fan.stop = function() scope:cancel() end
  end
  local width = math.min(opts.width or WIDTH, #fan.entries)
  fan.next = width + 1
  for i = 1, width do
    scope:spawn(function() work(fan, i) end, { name = ("children[%d]"):format(i) })
  end
end

-- Fills the slots of children that did not live to fill them.
local function fill(fan, ok, raised)
  local err, cancelled = raised, true
  if ok then
    err, cancelled = "the scope ended before this child finished", fan.stopped
  elseif raised == nil then
    err = "the nursery raised nil"
  end
  for i = 1, #fan.entries do
    fan.slots[i] = fan.slots[i] or { ok = false, err = err, cancelled = cancelled }
  end
  return fan.slots
end

--- Runs the children of parent side by side.
---@param parent knl.session
---@param children { opts: table, fn: fun(child: knl.session): any ... }[]
---@param opts? { joiner?: "isolate"|"cancel_on_error", timeout_ms?: integer, width?: integer }
---@return { ok: boolean, values?: table, err?: any, cancelled?: boolean }[]
function M.parallel(parent, children, opts)
  caller.session(PLACE, parent)
  local entries = checked_list(children)
  opts = options.check(PLACE, opts == nil and {} or opts, shapes.parallel_opts,
    { opts = "{ joiner?, timeout_ms?, width? }" })
  local word = opts.timeout_ms and "with_timeout" or "scope"
  local task = caller.nursery(PLACE, word)
  local fan = { parent = parent, entries = entries, slots = {} }
  fan.cancelled = task.cancelled or function() return false end
  local function body(scope)
    start(fan, scope, opts)
  end
  if opts.timeout_ms then
    return fill(fan, pcall(task.with_timeout, opts.timeout_ms, body))
  end
  return fill(fan, pcall(task.scope, body))
end

return M
