--- supervisor.caller: the checks of arguments that no shape can say.
--
-- Each raises at the line that called supervisor, the same words in both modes.
--
-- Example:
--
--    caller.session("supervisor.child", parent)

local knl = require("knl")
local options = require("lshape.options")
local shapes = require("supervisor.shapes")

local M = {}

-- What is said of words that belong to knl.open.
local hints = {
  owner = "a child has its parent's owner",
  store = "a child is in its parent's store",
  parent = "the parent is the first argument",
  session = "the parent is the first argument",
  meta = "append an event to the child to label it",
}

--- Wants a session as the first argument.
---@param place string
---@param v any
function M.session(place, v)
  if not knl.is_session(v) then
    options.fail(place, "the first argument must be a knl session"
      .. " (from knl.open / knl.session), got %s", type(v))
  end
end

--- Answers the budget of a child as knl.session takes it.
---@param place string
---@param opts any child options
---@return { from_parent: integer, tag?: string, refund?: boolean }
function M.budget(place, opts)
  options.check(place, opts, shapes.child_opts,
    { opts = "{ budget = { amount, tag?, refund? } }", hints = hints })
  local budget = rawget(opts, "budget")
  return {
    from_parent = rawget(budget, "amount"),
    tag = rawget(budget, "tag"),
    refund = rawget(budget, "refund"),
  }
end

--- Answers std.task, which a host may lack.
---@param place string
---@param word "scope"|"with_timeout" the function that is needed
---@return table
function M.nursery(place, word)
  local task = require("std").task
  if type(task) ~= "table" or not options.is_callable(task[word]) then
    options.fail(place, "std.task is not available in this VM (it is the host's nursery)")
  end
  return task
end

return M
