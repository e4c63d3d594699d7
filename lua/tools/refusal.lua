--- tools.refusal: how a tool says no.
--
-- of makes the answer that a model reads; try runs what may meet the world
-- outside and turns its expected failures into such an answer. What is no
-- expected failure (a cancelled task, a bug) is raised on. bounded keeps a list
-- of names to what is answered at once.
--
-- Example:
--
--    return refusal.try(function() return std.fs.read(path) end)

local M = {}

M.ANSWERED = 256 * 1024 -- bytes that a tool answers at once

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

--- Answers names, or a refusal when they are longer than is answered at once.
---@param names string[]
---@param advice string what to do then
---@return table
function M.bounded(names, advice)
  local size = 0
  for _, name in ipairs(names) do
    size = size + #name + 4 -- quotes, comma and blank
  end
  if size <= M.ANSWERED then
    return names
  end
  local message = "%d names have %d bytes, at most %d are answered at once: %s"
  return M.of("too_many", message:format(#names, size, M.ANSWERED, advice))
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
