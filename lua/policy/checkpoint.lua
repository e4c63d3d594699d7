--- policy.checkpoint: points of a session that it can be forked from.
--
-- checkpoint{ every } answers a function that the loop calls between beats: when
-- every beats were begun since the last checkpoint it appends an event checkpoint
-- { beat, note, beats } and answers it with its seq, else nil. beat is the last one
-- before it, beats how many there are, note a word of yours ("" when there is
-- none). It counts in the log, so a resumed session goes on counting, and asking
-- costs the same however long that is. It copies nothing: the log up to seq is the
-- point.
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
    .. "{ seq: integer, beat: string, note: string, beats: integer }?",
  members = {
    mark = {
      doc = "Records a checkpoint when one is due and answers it.",
      args = {
        { shapes.session, "the session", name = "session" },
        { T.string, "what is special about this point", name = "note", optional = true },
      },
      returns = T.shape{
        seq = T.integer, beat = T.string, note = T.string, beats = T.integer,
      }:is_optional(),
    },
  },
}

-- How many beats there were at the last checkpoint, 0 when there is none. One that
-- does not say so, of a script's own, counts as made before the first beat.
local function beats_before(session)
  local newest = knl.tail(session, { since = "checkpoint", last = 1 }).since
  local beats = newest and log.data(newest).beats
  return type(beats) == "number" and beats or 0
end

---@class policy.checkpoint.opts
---@field every? integer beats from one to the next (at least 1, default 10)

--- Makes a function that records a restart point every few beats.
---@param opts? policy.checkpoint.opts
---@return fun(session: session, note?: string): table? mark answers { seq, beat, note, beats }
function M.new(opts)
  opts = shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.checkpoint_opts, {
    hints = shapes.hints("the session is the argument of what checkpoint answers"),
    opts = "{ every? }",
  })
  local every = opts.every or EVERY
  return function(session, note)
    log.check_session(PLACE, session, "len")
    if note ~= nil and type(note) ~= "string" then
      options.fail(PLACE, "note must be a string, got %s", type(note))
    end
    local beats = session:len("beats")
    if beats < every or beats - beats_before(session) < every then
      return nil
    end
    local point = { beat = log.newest(PLACE, session).id, note = note or "", beats = beats }
    point.seq = session:append{ kind = "checkpoint", data = point }
    return point
  end
end

return M
