--- policy.deadline: a named stop some time after a session began.
--
-- The loop asks it before each beat; it answers "deadline" once seconds have
-- passed since the first event of the log, by the clock of the machine. A run
-- that was killed and resumed has no more time than before, and the time it lay
-- still counts. It ends no beat under way: knl.beat{ deadline } does that.
--
-- Example:
--
--    local late = policy.deadline{ seconds = 3600 }
--    while not late(session) do … end

local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local std = require("std")
local T = require("lshape").t

local PLACE = "policy.deadline"

local M = {}

M.shapes = {
  deadline_opts = T.shape({
    seconds = T.number:describe("seconds that the session may take"),
  }, { open = false }),
}

M.api = {
  doc = "Makes a predicate that stops a loop some time after its session began.",
  args = { { M.shapes.deadline_opts, "how long", name = "opts" } },
  returns = T.fn,
  members = {
    predicate = {
      doc = "Answers \"deadline\" when the time has passed, else nil.",
      args = { { shapes.session, "the session", name = "session" } },
      returns = shapes.stop_reason:is_optional(),
    },
  },
}

---@class policy.deadline.opts
---@field seconds number seconds that the session may take, above 0

--- Makes a predicate.
---@param opts policy.deadline.opts
---@return fun(session: session): string?
function M.new(opts)
  local seconds = shapes.check_opts(PLACE, opts, M.shapes.deadline_opts, {
    hints = shapes.hints("the session is the argument of the predicate"),
    opts = "{ seconds }",
  }).seconds
  if not (seconds > 0 and seconds < math.huge) then
    options.fail(PLACE, "seconds must be a number above 0, got %s", tostring(seconds))
  end
  return function(session)
    log.check_session(PLACE, session)
    local first = session:scan{ from = 1, to = 1 }[1]
    return std.time.now() >= first.epoch_ms / 1000 + seconds and "deadline" or nil
  end
end

return M
