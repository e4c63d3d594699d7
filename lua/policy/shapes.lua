--- policy.shapes: schemas that several policies share.
--
-- What describes a value of the kernel is the kernel's own schema, out of
-- knl.shapes. It holds no options: those stand with the policy that takes them.
--
-- Example:
--
--    local shapes = require("policy.shapes")
--    args = { { shapes.session, "the session to look at", name = "session" } }

local knl = require("knl")
local options = require("lshape.options")
local T = require("lshape").t

local kernel = knl.shapes

local M = {
  beat_record = kernel.beat_record,
  outcome = kernel.outcome,
  request = kernel.request,
  session = kernel.session,
  device = kernel.device,
}

local function union(...)
  local values, seen = {}, {}
  for _, schema in ipairs{ ... } do
    for _, value in ipairs(schema.values) do
      values[#values + 1] = not seen[value] and value or nil
      seen[value] = true
    end
  end
  return T.one_of(values)
end

-- Every kind that the error of an Outcome may have.
M.any_error_kind = union(kernel.error_kinds, kernel.call_error_kinds)

-- A tool call of one beat with its result.
M.tool_pair = T.shape{
  beat = T.string:is_optional():describe("the beat it belongs to"),
  call_id = T.string:is_optional(),
  name = T.string:is_optional():describe("the tool; nil when the log has no call"),
  input = T.any:describe("the arguments; nil when the log has no call"),
  result = T.any,
  ok = T.boolean:describe("what the kernel recorded: whether the call succeeded"),
}

-- Why a policy tells a loop to stop.
M.stop_reason = T.one_of{ "repeated", "no_progress", "context", "beat_cap", "deadline" }

--- Raises unless outcome is one.
---@param place string the function that was handed it, as the script calls it
---@param outcome any
function M.check_outcome(place, outcome)
  if type(outcome) ~= "table" or type(outcome.status) ~= "string" then
    options.fail(place, "outcome must be an Outcome, got %s", type(outcome))
  end
end

--- What to say of options that belong to a session, for options.check.
---@param session string where the policy takes its session
---@return table<string, string>
function M.hints(session)
  local open = "a policy holds no state: it belongs to knl.open"
  return { session = session, store = open, owner = open, budget = open }
end

return M
