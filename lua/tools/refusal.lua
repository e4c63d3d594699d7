--- tools.refusal: how a tool says no.
--
-- of makes the answer that a model reads; try runs what may meet the world
-- outside and turns its expected failures into such an answer. What is no
-- expected failure (a cancelled task, a bug) is raised on.
--
-- Example:
--
--    return refusal.try(function() return std.fs.read(path) end)

local M = {}

-- Kinds of failures of std that are the world's, and what they are called here.
local reasons = {
  not_found = "not_found", denied = "denied", conflict = "conflict", io = "io",
  validation = "validation", too_large = "too_large", timeout = "timeout",
  transport = "transport", unsupported = "unsupported",
}

--- A refusal.
---@param reason string one word, for programs
---@param message string for the model: what is wrong and what to do
---@param more? table further fields
---@return { ok: false, reason: string, message: string }
function M.of(reason, message, more)
  local answer = { ok = false, reason = reason, message = message }
  for key, value in pairs(more or {}) do
    answer[key] = value
  end
  return answer
end

--- Answers what fn answers, or the refusal that its failure is.
---@param fn fun(): any
---@return any
function M.try(fn)
  local ok, answer = pcall(fn)
  if ok then
    return answer
  end
  local reason = type(answer) == "userdata" and reasons[answer.kind]
  if not reason then
    error(answer, 0)
  end
  return M.of(reason, answer.message)
end

return M
