--- policy.beat_cap: a named stop after a number of beats.
--
-- The loop asks it before each beat; it answers "beat_cap" once max beats or more
-- of the session were begun, so a run that was killed and resumed goes on
-- counting. Beats of child sessions are not this session's. Asking costs the same
-- however many there are.
--
-- Example:
--
--    local full = policy.beat_cap{ max = 40 }
--    while not full(session) do … end

local log = require("policy.log")
local shapes = require("policy.shapes")
local T = require("lshape").t

local PLACE = "policy.beat_cap"

local M = {}

M.shapes = {
  beat_cap_opts = T.shape({
    max = T.integer:min(1):describe("beats that the session may have"),
  }, { open = false }),
}

M.api = {
  doc = "Makes a predicate that stops a loop after a number of beats.",
  args = { { M.shapes.beat_cap_opts, "how many", name = "opts" } },
  returns = T.fn,
  members = {
    predicate = {
      doc = "Answers \"beat_cap\" when the session has that many beats, else nil.",
      args = { { shapes.session, "the session", name = "session" } },
      returns = shapes.stop_reason:is_optional(),
    },
  },
}

---@class policy.beat_cap.opts
---@field max integer beats that the session may have

--- Makes a predicate.
---@param opts policy.beat_cap.opts
---@return fun(session: session): string?
function M.new(opts)
  local max = shapes.check_opts(PLACE, opts, M.shapes.beat_cap_opts, {
    hints = shapes.hints("the session is the argument of the predicate"),
    opts = "{ max }",
  }).max
  return function(session)
    log.check_session(PLACE, session, "len")
    return session:len("beats") >= max and "beat_cap" or nil
  end
end

return M
