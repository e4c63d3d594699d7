--- supervisor.reclaim: closes the children that their driver did not live to
--- close.
--
--    reclaim(parent) -> { { session = id, returned = n }, … }
--
-- A process that is killed leaves its children open, with their units. Whoever
-- resumes the parent calls this before it opens children of its own: all that
-- was opened under an earlier driver of the parent, and all below it, is taken
-- over and closed with error, "orphaned", the deepest first, and what was opened
-- with refund gives back what is left. Children that the present driver opened
-- are not touched. A driver that does live on somewhere is fenced: its next write
-- is refused, nothing of what it wrote is lost.
--
-- It costs one read of the parent's ledger, so it is asked once a resume. It
-- runs nothing again.
--
-- Example:
--
--    knl.session({ session = arg.session, budget = { amount = 100 } }, function(s)
--      supervisor.reclaim(s)
--      local slots = supervisor.parallel(s, jobs)
--    end)

local caller = require("supervisor.caller")
local knl = require("knl")
local shapes = require("supervisor.shapes")

local PLACE = "supervisor.reclaim"

local M = {}

M.api = {
  doc = "Closes what an earlier driver of the parent left open below it; answers what it closed.",
  args = { { shapes.session, "the parent", name = "parent" } },
  returns = shapes.reclaimed,
}

-- The children that were paid for under a driver before this one.
local function earlier(parent)
  local orphans, epoch = {}, 1
  for _, ev in ipairs(parent:scan{ kinds = { "budget_reserved", "driver_changed" } }) do
    if ev.kind == "driver_changed" then
      epoch = ev.data.epoch
    elseif ev.data.child and epoch < parent:epoch() then
      orphans[ev.data.child] = true
    end
  end
  return orphans
end

-- The sessions to close, each behind what is below it.
local function to_close(parent)
  local orphans, ids = earlier(parent), {}
  if next(orphans) == nil then
    return ids
  end
  for _, row in ipairs(knl.views.tree(parent)) do -- parents before their children
    orphans[row.session] = orphans[row.session] or orphans[row.parent or ""]
    if orphans[row.session] and not row.closed_epoch_ms then
      table.insert(ids, 1, row.session)
    end
  end
  return ids
end

-- Closes a session and answers its row, nil when somebody else has closed it.
local function close(parent, id)
  local ok, session = pcall(knl.resume, { session = id, store = parent })
  if not ok then
    return knl.error(session).kind ~= "closed" and error(session, 0) or nil
  end
  session:close("error", "orphaned")
  return { session = id, returned = session:view("tail", { n = 1 })[1].data.returned or 0 }
end

--- Closes what an earlier driver of parent left open below it.
---@param parent knl.session
---@return { session: string, returned: integer }[]
function M.reclaim(parent)
  caller.session(PLACE, parent)
  local closed = knl.array()
  for _, id in ipairs(to_close(parent)) do
    closed[#closed + 1] = close(parent, id)
  end
  return closed
end

return M
