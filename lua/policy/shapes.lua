--- policy.shapes: schemas that several policies share.
--
-- What describes a value of the kernel is the kernel's own schema, out of
-- knl.shapes. It holds no options: those stand with the policy that takes them.
-- The checks of options and arguments that policies share stand here, too.
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

--- The last whole number that the one behind it differs from.
M.LARGEST = 2 ^ 53

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

--- Raises unless device is one.
---@param place string the function that was handed it, as the script calls it
---@param device any
function M.check_device(place, device)
  local ok, method = pcall(function()
    return device.with
  end)
  if not (ok and options.is_callable(method)) then
    options.fail(place, "device must be a device, got %s", type(device))
  end
end

-- Raises when a number of t is too large to be counted with.
local function check_sizes(place, t, path)
  for name, value in pairs(t) do
    if type(value) == "number" and value > M.LARGEST then
      options.fail(place, "%s must be at most 2^53, got %g", path .. name, value)
    end
  end
end

--- options.check, and no number of opts, or of the options in it, is beyond 2^53.
---@generic O
---@param place string the factory, as the script calls it
---@param opts O
---@param shape table the closed shape of opts
---@param extra lshape.options.extra
---@return O opts
function M.check_opts(place, opts, shape, extra)
  options.check(place, opts, shape, extra)
  check_sizes(place, opts, "")
  for _, inner in ipairs{ "fit", "timeout" } do
    if type(opts[inner]) == "table" then
      check_sizes(place, opts[inner], inner .. ".")
    end
  end
  return opts
end

--- What to say of options that belong to a session, for options.check.
---@param session string where the policy takes its session
---@return table<string, string>
function M.hints(session)
  local open = "a policy holds no state: it belongs to knl.open"
  return { session = session, store = open, owner = open, budget = open }
end

return M
