--- policy.escalate: a stronger model for the next beat.
--
-- escalate{ strong } answers next(outcome, device): the device with strong in
-- place of its llm when when(outcome) holds, else the same device. Without when
-- that is a refusal, or a model call that failed for a reason that neither another
-- attempt nor a key or a person mends: not retryable, not auth, not cancelled. An
-- error of a fold, a filter or the session is no matter of the model. A device
-- whose llm is strong already is always handed back as it is, so next(o, d) == d
-- says that there is nothing to escalate to, and a loop can end on it.
--
-- Nothing is delegated: it is the same session and the same log with another
-- model. What only the other model can read back (thinking, signatures) is left
-- out by the port. It does not go back to the weaker model by itself.
--
-- Example:
--
--    local next_device = policy.escalate{ strong = ports.from("anthropic:claude-opus"):open() }
--    local o
--    repeat
--      o = knl.beat(session, device)
--      local stronger = next_device(o, device)
--      local ended = o.status ~= "ok" and stronger == device or o.out and #o.out.tools == 0
--      device = stronger
--    until ended

local knl = require("knl")
local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t

local PLACE = "policy.escalate"

local M = {}

M.shapes = {
  escalate_opts = T.shape({
    strong = T.any:describe("the model that takes over: what a device takes as llm"),
    when = options.callable:describe("whether an outcome asks for it"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a choice of the device for the next beat.",
  args = { { M.shapes.escalate_opts, "to what, and when", name = "opts" } },
  returns = "fun(outcome: knl.outcome, device: knl.device): knl.device",
  members = {
    next = {
      doc = "Answers the device for the next beat.",
      args = {
        { shapes.outcome, "what the last beat came to", name = "outcome" },
        { shapes.device, "the device that made it", name = "device" },
      },
      returns = shapes.device,
    },
    when = {
      doc = "Says whether an outcome asks for the stronger model; yours to give.",
      args = { { shapes.outcome, "what the last beat came to", name = "outcome" } },
      returns = T.boolean:is_optional(),
    },
  },
}

local BEYOND = { auth = true, cancelled = true } -- what no model mends

local function beyond_retry(outcome)
  if outcome.status == "refused" then
    return true
  end
  local detail = type(outcome.detail) == "table" and outcome.detail or {}
  return outcome.status == "error" and outcome.kind == "call" and detail.retryable ~= true
    and not BEYOND[detail.kind]
end

local function says(when, outcome)
  local verdict = when(outcome)
  if verdict ~= nil and type(verdict) ~= "boolean" then
    options.fail(PLACE, "when must answer true or false, got %s", type(verdict))
  end
  return verdict
end

-- Whether a device takes v as llm: the device says so.
local function is_llm(v)
  return (pcall(knl.device, { llm = v }))
end

---@class policy.escalate.opts
---@field strong llm the model that takes over
---@field when? fun(outcome: table): boolean? whether an outcome asks for it

--- Makes a choice of the device for the next beat.
---@param opts policy.escalate.opts
---@return fun(outcome: table, device: device): device
function M.new(opts)
  shapes.check_opts(PLACE, opts, M.shapes.escalate_opts, {
    hints = shapes.hints("escalate looks at an outcome, not at a session"),
    opts = "{ strong, when? }",
  })
  local strong, when = opts.strong, opts.when or beyond_retry
  if not is_llm(strong) then
    options.fail(PLACE, "strong must be an llm, got %s", type(strong))
  end
  return function(outcome, device)
    shapes.check_outcome(PLACE, outcome)
    shapes.check_device(PLACE, device)
    local wanted = says(when, outcome)
    return wanted and device.llm ~= strong and device:with{ llm = strong } or device
  end
end

return M
