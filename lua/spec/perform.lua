--- spec.perform: the run of one case.
--
-- case(c) runs the hooks before it, outermost block first, its body, and the
-- hooks behind it, innermost first, also after a failure. All of it is one scope
-- of tasks: the case ends after them, and a failure cancels them. What was
-- stubbed meanwhile is put back. It never raises what the case raised; the end
-- of the run and its limits go through it.
--
-- Example:
--
--    local result = require("spec.perform").case(case)
--    print(result.status, result.message)

local doubles = require("spec.doubles")
local place = require("spec.place")
local std = require("std")

local M = {}

place.hide()

-- The blocks around a case, outermost first.
local function blocks_of(case)
  local list, of = {}, case.block
  while of do
    table.insert(list, 1, of)
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

-- Runs the hooks and the body; the hooks behind are those of the blocks whose
-- hooks before have begun.
local function with_hooks(case)
  local failure
  local entered = {}
  for _, of in ipairs(blocks_of(case)) do
    table.insert(entered, 1, of)
    failure = run_all(of.before, "before_each")
    if failure then
      break
    end
  end
  failure = failure or place.attempt(case.fn)
  for _, of in ipairs(entered) do
    local late = run_all(of.after, "after_each")
    if late and failure then
      failure.message = failure.message .. "\n" .. late.message
    end
    failure = failure or late
  end
  return failure
end

local function failure_of(case)
  if not case.fn then
    return case.broken
  end
  local failure
  local standing = doubles.standing()
  std.task.scope("case", function(scope)
    failure = with_hooks(case)
    if failure then
      scope:cancel()
    end
  end)
  doubles.restore(standing)
  return failure
end

--- Runs a case and says how it went.
---@param case table
---@return spec.result
function M.case(case)
  local began = std.time.monotonic()
  local failure = failure_of(case)
  local result = {
    name = case.name,
    path = case.path,
    status = "passed",
    file = case.file,
    line = case.line,
    ms = math.floor((std.time.monotonic() - began) * 1000),
  }
  if case.pending or failure and failure.pending then
    result.status = "pending"
    result.message = failure and failure.pending ~= "" and failure.pending or nil
  elseif failure then
    result.status, result.message, result.traceback = "failed", failure.message, failure.traceback
    result.file, result.line = failure.file or case.file, failure.line or case.line
  end
  return result
end

return M
