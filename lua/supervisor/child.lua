--- supervisor.child: runs a function on a child session of its own budget.
--
--    child(parent, { budget = { amount, tag?, refund? } }, fn) -> what fn returns
--
-- amount moves from the parent's ledger to the child's in one write, and what
-- the child spends is its own. When fn returns, all its values are answered and
-- the child is closed with scope_exit; when it raises, the child is closed with
-- error and the same value is raised. When the child could not be opened, the
-- answer is nil and the error, as knl.error reads it: kind "refused" says that
-- the parent's balance is too small, which the parent's ledger records. A body
-- may itself return nil and a value; who must tell the two apart uses
-- supervisor.parallel.
--
-- A child always ends closed: by a return, a raise, a cancellation, an abort and
-- the end of the run. With refund what is left then goes back. Nothing is
-- retried.
--
-- Example:
--
--    local text, err = supervisor.child(s, { budget = { amount = 5, refund = true } },
--      function(c)
--        c:append{ kind = "msg_user", data = { content = "sum up the report" } }
--        return knl.beat(c, device).out.content[1].text
--      end)
--    if not text then error(err) end

local caller = require("supervisor.caller")
local knl = require("knl")
local options = require("lshape.options")
local shapes = require("supervisor.shapes")

local PLACE = "supervisor.child"

local M = {}

M.api = {
  doc = "Runs fn on a child session with a budget of its own; answers what fn returns, or nil and"
    .. " why the child could not be opened.",
  args = {
    { shapes.session, "the parent", name = "parent" },
    { shapes.child_opts, "of the child", name = "opts" },
    { shapes.body, "the body, fn(child)", name = "fn" },
  },
  returns = "any ...",
  members = {
    fn = { doc = "The body.", args = { { shapes.session, "its session", name = "child" } },
      returns = "any ..." },
  },
}

---@class supervisor.ending
---@field values? table what the body returned, with n
---@field refused? table why the child could not be opened
---@field raised? { value: any } what the body raised

-- How a protected call ended.
local function ending(entered, ok, ...)
  if ok then
    return { values = { n = select("#", ...), ... } }
  elseif entered() then
    return { raised = { value = (...) } }
  end
  return { refused = knl.error((...)) }
end

--- Runs fn on a new child of parent and answers how that ended. What it takes
--- was checked before.
---@param parent knl.session
---@param budget table as caller.budget answers it
---@param fn fun(child: knl.session): any ...
---@return supervisor.ending
function M.run(parent, budget, fn)
  local entered, bracket = false, { parent = parent, budget = budget }
  return ending(function() return entered end, pcall(knl.session, bracket, function(child)
    entered = true
    return fn(child)
  end))
end

--- Runs fn on a child of parent.
---@param parent knl.session
---@param opts { budget: { amount: integer, tag?: string, refund?: boolean } }
---@param fn fun(child: knl.session): any ...
---@return any ...
function M.child(parent, opts, fn)
  caller.session(PLACE, parent)
  if not options.is_callable(fn) then
    options.fail(PLACE, "the third argument must be a function fn(child), got %s", type(fn))
  end
  local how = M.run(parent, caller.budget(PLACE, opts), fn)
  if how.raised then
    error(how.raised.value, 0)
  elseif how.refused then
    return nil, how.refused
  end
  return unpack(how.values, 1, how.values.n)
end

return M
