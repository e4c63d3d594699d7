--- spec.place: where in a spec file something happened.
--
-- attempt runs a function and reads what it raised; outside finds the caller of
-- the vocabulary, and mistake raises there. It judges nothing.
--
-- Example:
--
--    local failure = require("spec.place").attempt(function() error("no") end)
--    print(failure.line, failure.message)

local M = {}

-- The source files of the vocabulary.
local own = { [debug.getinfo(1).short_src] = true }

--- Adds a file to those that are not a place in a spec.
---@param fn? function any function of that file; nothing: the calling file
function M.hide(fn)
  own[debug.getinfo(fn or 2).short_src] = true
end

--- The innermost caller outside the vocabulary.
---@return string file, integer line
function M.outside()
  local level = 2
  while true do
    local info = debug.getinfo(level)
    if not info then
      return "?", 0
    end
    if info.what ~= "Go" and not own[info.short_src] then
      return info.short_src, info.currentline
    end
    level = level + 1
  end
end

--- Raises a mistake in the spec itself, at the line that made it.
---@param text string a format
---@param ... any
function M.mistake(text, ...)
  local file, line = M.outside()
  error(("%s:%d: %s"):format(file, line, text:format(...)), 0)
end

-- The lines of a traceback that lie between the vocabulary's own frames: what
-- the case did, without how it was called and how it was judged. A frame of Go
-- is no place, and one lost to a tail call stands below the one it led to.
local function trimmed(trace)
  local kept = {}
  for line in trace:gmatch("[^\n]+") do
    local file = line:match("^\t(.-):%d+: ")
    if file and own[file] then
      if #kept > 0 then
        break
      end
    elseif file or #kept > 0 and line:find("^\t") then
      kept[#kept + 1] = line
    end
  end
  while #kept > 0 and kept[#kept]:find("[Go]", 1, true) do
    table.remove(kept)
  end
  return table.concat(kept, "\n")
end

local function position(text)
  local file, line = text:match("^\t?([^\n:]+):(%d+): ")
  return file, tonumber(line)
end

-- What a raised value says: the words of a failed assertion stand in its table.
local function read(raised, trace)
  local failure = { raised = raised, traceback = trace }
  if type(raised) == "table" and rawget(raised, "pending") then
    failure.pending, failure.message = raised.pending, raised.pending
  elseif type(raised) == "table" and rawget(raised, "assertion") then
    failure.message, failure.file, failure.line = raised.message, raised.file, raised.line
  elseif type(raised) == "string" then
    failure.message = raised
    failure.file, failure.line = position(raised)
  else
    failure.message = raised == nil and "raised nil" or tostring(raised)
  end
  if not failure.file then
    failure.file, failure.line = position(trace)
  end
  return failure
end

---@class spec.failure
---@field message string
---@field file? string
---@field line? integer
---@field traceback string
---@field raised any the value itself
---@field pending? string why the case ends as pending

--- Runs fn and answers what it raised, or nil.
---@param fn fun()
---@return spec.failure?
function M.attempt(fn)
  local failure
  xpcall(fn, function(raised)
    failure = read(raised, trimmed(debug.traceback()))
  end)
  return failure
end

return M
