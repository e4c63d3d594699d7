--- spec.perform: the run of one case.
--
-- case(c) runs the hooks before it, outermost block first, its body, and the
-- hooks behind it, innermost first, also after a failure. All of it is one scope
-- of tasks: the case ends after them, and a failure cancels them. What a task
-- raised that nobody joined is a failure of the case. What was stubbed meanwhile
-- is put back. It never raises what the case raised; the end of the run and its
-- limits go through it.
--
-- Example:
--
--    local result = require("spec.perform").case(case)
--    print(result.status, result.message)

local doubles = require("spec.doubles")
local place = require("spec.place")
local show = require("spec.show")
local std = require("std")

local ipairs, insert, floor, format = ipairs, table.insert, math.floor, string.format
local monotonic, scope, unjoined = std.time.monotonic, std.task.scope, std.task.unjoined

local M = {}

place.hide()

-- The blocks around a case, outermost first.
local function blocks_of(case)
  local list, of = {}, case.block
  while of do
    insert(list, 1, of)
    of = of.parent
  end
  return list
end

local function run_all(hooks, what)
  for _, hook in ipairs(hooks) do
    local failure = place.attempt(hook)
    if failure then
      failure.message = what .. ": " .. failure.message
      return failure
    end
  end
end

-- What a case came to after one more failure: the first counts and the words of
-- the others stand below it; that it is pending gives way to any.
local function and_then(failure, late)
  if not failure or not late or failure.pending then
    return late or failure
  elseif not late.pending then
    failure.message = failure.message .. "\n" .. late.message
  end
  return failure
end

-- Runs the hooks and the body; the hooks behind are those of the blocks whose
-- hooks before have begun.
local function with_hooks(case)
  local failure
  local entered = {}
  for _, of in ipairs(blocks_of(case)) do
    insert(entered, 1, of)
    failure = run_all(of.before, "before_each")
    if failure then
      break
    end
  end
  failure = failure or place.attempt(case.fn)
  for _, of in ipairs(entered) do
    failure = and_then(failure, run_all(of.after, "after_each"))
  end
  return failure
end

-- Runs fn in a scope of tasks and answers the failures of those that nobody
-- joined, in this scope and in those within.
local function in_scope(fn)
  local failures = {}
  local before = unjoined(function(raised, trace, name)
    local failure = place.failure_of(raised, trace)
    failure.message = format("task %q: %s", name, failure.message)
    insert(failures, failure)
  end)
  scope("case", fn)
  unjoined(before)
  return failures
end

local function failure_of(case)
  if not case.fn then
    return case.broken
  end
  local failure
  local standing = doubles.standing()
  local of_tasks = in_scope(function(tasks)
    failure = with_hooks(case)
    if failure then
      tasks:cancel()
    end
  end)
  doubles.restore(standing)
  for _, late in ipairs(of_tasks) do
    failure = and_then(failure, late)
  end
  return failure
end

--- Runs a case and says how it went.
---@param case table
---@return spec.result
function M.case(case)
  local began = monotonic()
  local failure = failure_of(case)
  local result = {
    name = case.name,
    path = case.path,
    status = "passed",
    file = case.file,
    line = case.line,
    ms = floor((monotonic() - began) * 1000),
  }
  if case.pending or failure and failure.pending then
    result.status = "pending"
    result.message = failure and failure.pending ~= "" and show.legible(failure.pending) or nil
  elseif failure then
    result.status, result.message = "failed", show.legible(failure.message)
    result.traceback = show.legible(failure.traceback)
    result.file, result.line = failure.file or case.file, failure.line or case.line
  end
  return result
end

return M
