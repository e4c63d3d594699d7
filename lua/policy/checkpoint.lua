--- policy.checkpoint: points of a session that it can be forked from.
--
-- checkpoint{ every } answers a function that the loop calls between beats: when
-- every beats were made since the last checkpoint it appends an event checkpoint
-- { beat, note } and answers { seq, beat, note }, else nil. beat is the last one
-- before it, note a word of yours ("" when there is none). It counts in the log,
-- so a resumed session goes on counting. It copies nothing: the log up to seq is
-- the point.
--
-- Example:
--
--    local mark = policy.checkpoint{ every = 25 }
--    local point = mark(session, "tests pass")
--    if point then print("fork at " .. point.seq) end

local knl = require("knl")
local log = require("policy.log")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t

local PLACE = "policy.checkpoint"
local EVERY = 10

local M = {}

M.shapes = {
  checkpoint_opts = T.shape({
    every = T.integer:min(1):describe("beats from one to the next (default 10)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a function that records a restart point every few beats.",
  args = { { M.shapes.checkpoint_opts, "how often", name = "opts", optional = true } },
  returns = "fun(session: knl.session, note?: string): "
    .. "{ seq: integer, beat: string, note: string }?",
  members = {
    mark = {
      doc = "Records a checkpoint when one is due and answers it.",
      args = {
        { shapes.session, "the session", name = "session" },
        { T.string, "what is special about this point", name = "note", optional = true },
      },
      returns = T.shape{ seq = T.integer, beat = T.string, note = T.string }:is_optional(),
    },
  },
}

---@class policy.checkpoint.opts
---@field every? integer beats from one to the next (at least 1, default 10)

--- Makes a function that records a restart point every few beats.
---@param opts? policy.checkpoint.opts
---@return fun(session: session, note?: string): { seq: integer, beat: string, note: string }?
function M.new(opts)
  opts = options.check(PLACE, opts == nil and {} or opts, M.shapes.checkpoint_opts, {
    hints = shapes.hints("the session is the argument of what checkpoint answers"),
    opts = "{ every? }",
  })
  local every = opts.every or EVERY
  return function(session, note)
    log.check_session(PLACE, session)
    if note ~= nil and type(note) ~= "string" then
      options.fail(PLACE, "note must be a string, got %s", type(note))
    end
    local beats = knl.tail(session, { since = "checkpoint", last = every }).beats
    if #beats < every then
      return nil
    end
    local point = { beat = beats[#beats], note = note or "" }
    point.seq = session:append{ kind = "checkpoint", data = point }
    return point
  end
end

return M
