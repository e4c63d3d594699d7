--- policy.retry: whether a beat that ended in an error is worth another one.
--
-- retry{ … } answers a predicate over an Outcome and how many attempts were made:
-- true, and the seconds that the provider asks to wait when it says so, or false.
-- Only an error is ever retried; without kinds one that says it is retryable,
-- with kinds one whose kind is listed. After max attempts it answers false. It
-- does not wait, and it does not read HTTP statuses: the port has classified
-- them.
--
-- Example:
--
--    local retry, attempt = policy.retry{ max = 5 }, 0
--    local o
--    repeat
--      o, attempt = knl.beat(session, device), attempt + 1
--      local again, delay = retry(o, attempt)
--      if again then std.task.sleep(1000 * (delay or 2 ^ attempt)) end
--    until not again

local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t

local PLACE = "policy.retry"
local MAX = 3

local M = {}

M.shapes = {
  retry_opts = T.shape({
    kinds = T.array_of(shapes.any_error_kind):min_len(1)
      :describe("kinds of errors that are retried (default: the retryable ones)"):is_optional(),
    max = T.integer:min(1):describe("attempts in all (default 3)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Makes a predicate that says whether an error is worth another attempt.",
  args = { { M.shapes.retry_opts, "what is retried", name = "opts", optional = true } },
  returns = "fun(outcome: knl.outcome, attempt: integer): boolean, number?",
  members = {
    predicate = {
      doc = "Answers whether to try again, and the seconds that the provider asks to wait.",
      args = {
        { shapes.outcome, "what the attempt came to", name = "outcome" },
        { T.integer:min(1), "attempts made so far", name = "attempt" },
      },
      returns = "boolean, number?",
    },
  },
}

local function set_of(words)
  local set
  for _, word in ipairs(words or {}) do
    set = set or {}
    set[word] = true
  end
  return set
end

local function check_attempt(attempt)
  if type(attempt) ~= "number" or attempt % 1 ~= 0 or attempt < 1 then
    options.fail(PLACE, "attempt must be a whole number >= 1, got %s", tostring(attempt))
  end
end

---@class policy.retry.opts
---@field kinds? string[] kinds of errors that are retried (default: the retryable ones)
---@field max? integer attempts in all (at least 1, default 3)

--- Makes a predicate that says whether an error is worth another attempt.
---@param opts? policy.retry.opts
---@return fun(outcome: table, attempt: integer): boolean, number?
function M.new(opts)
  opts = shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.retry_opts, {
    hints = shapes.hints("retry looks at an outcome, not at a session"),
    opts = "{ kinds?, max? }",
  })
  local max, kinds = opts.max or MAX, set_of(opts.kinds)
  return function(outcome, attempt)
    shapes.check_outcome(PLACE, outcome)
    check_attempt(attempt)
    local detail = outcome.detail
    if outcome.status ~= "error" or attempt >= max or type(detail) ~= "table" then
      return false
    end
    local again = detail.retryable == true
    if kinds then
      again = kinds[detail.kind] == true
    end
    return again, again and type(detail.retry_after) == "number" and detail.retry_after or nil
  end
end

return M
