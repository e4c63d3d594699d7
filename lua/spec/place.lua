--- spec.place: where in a spec file something happened.
--
-- attempt runs a function and reads what it raised; failure_of reads a raised
-- value; outside finds the caller of the vocabulary, and mistake raises there.
-- failed and pending raise what attempt knows again by its metatable: no table
-- that a script raises is taken for one of them. What is read is all text, fit
-- for a report. It judges nothing.
--
-- Nothing here, nor in any file that runs within a case, looks a function of the
-- libraries up when it is called: a case may have stubbed it.
--
-- Example:
--
--    local failure = require("spec.place").attempt(function() error("no") end)
--    print(failure.line, failure.message)

local show = require("spec.show")

local error, getmetatable, pcall, setmetatable = error, getmetatable, pcall, setmetatable
local tonumber, type, xpcall = tonumber, type, xpcall
local getinfo, traceback = debug.getinfo, debug.traceback
local find, format, gmatch, match = string.find, string.format, string.gmatch, string.match
local concat, remove = table.concat, table.remove
local places = package.places

local M = {}

-- The source files of the vocabulary.
local own = { [getinfo(1).short_src] = true }

--- Adds the calling file to those that are not a place in a spec.
function M.hide()
  own[getinfo(2).short_src] = true
end

-- Whether a file belongs to the shapes: what they raise is the caller's mistake.
local function of_shapes(file)
  return match(places[file] or "", "^[^.]*") == "lshape"
end

--- The innermost caller outside the vocabulary; nil when a tail call has lost it.
---@return string? file, integer? line
function M.outside()
  local level = 2
  while true do
    local info = getinfo(level)
    if not info or info.func == M.attempt then
      return nil
    end
    local file = info.short_src
    if info.what ~= "Go" and not own[file] and not of_shapes(file) then
      return file, info.currentline
    end
    level = level + 1
  end
end

--- Raises a mistake in the spec itself, at the line that made it.
---@param text string a format
---@param ... any
function M.mistake(text, ...)
  local file, line = M.outside()
  local at = file and format("%s:%d: ", file, line) or ""
  error(at .. format(text, ...), 0)
end

local failed_meta = {
  __tostring = function(f)
    return (f.file and format("%s:%d: ", f.file, f.line) or "") .. f.message
  end,
}

local pending_meta = {
  __tostring = function(p)
    return "pending: " .. p.reason
  end,
}

--- Raises a failed assertion, at the line that asserts.
---@param text string
function M.failed(text)
  local file, line = M.outside()
  error(setmetatable({ message = text, file = file, line = line }, failed_meta), 0)
end

--- Raises what ends a case as pending.
---@param reason any
function M.pending(reason)
  error(setmetatable({ reason = reason == nil and "" or show.text(reason) }, pending_meta), 0)
end

local attempt_at -- what getinfo says of attempt

local function is_attempt(file, line)
  local at = attempt_at
  return file == at.short_src and line >= at.linedefined and line <= at.lastlinedefined
end

-- The lines of a traceback down to attempt, without the vocabulary's own: what
-- the case did, without how it was called and how it was judged. The shapes are
-- left out where they raised. A frame of Go is no place, and one lost to a tail
-- call stands below the one it led to.
local function trimmed(trace)
  local kept = {}
  for line in gmatch(trace, "[^\n]+") do
    local file, at = match(line, "^\t(.-):(%d+): ")
    if file and is_attempt(file, tonumber(at)) then
      break
    end
    local left_out = file and (own[file] or #kept == 0 and of_shapes(file))
    if not left_out and (file or #kept > 0 and find(line, "^\t")) then
      kept[#kept + 1] = line
    end
  end
  while #kept > 0 and find(kept[#kept], "[Go]", 1, true) do
    remove(kept)
  end
  return concat(kept, "\n")
end

local function position(text)
  local file, line = match(text, "^\t?([^\n:]+):(%d+): ")
  return file, tonumber(line)
end

-- The text of what was raised: its own, when it has one, else its content.
local function words_of(raised)
  local kind, text = type(raised), show.text(raised)
  if kind == "table" and find(text, "^table: ") then
    return "raised " .. show.show(raised)
  elseif kind == "string" or kind == "table" or kind == "userdata" then
    return text
  end
  return "raised " .. text
end

---@class spec.failure
---@field message string
---@field file? string
---@field line? integer
---@field traceback string
---@field raised any the value itself
---@field pending? string why the case ends as pending

--- Reads a raised value: the words of a failed assertion stand in its table.
---@param raised any
---@param trace string its traceback
---@return spec.failure
function M.failure_of(raised, trace)
  local failure = { raised = raised, traceback = trimmed(trace) }
  local meta = getmetatable(raised)
  if meta == pending_meta then
    failure.pending, failure.message = raised.reason, raised.reason
  elseif meta == failed_meta then
    failure.message, failure.file, failure.line = raised.message, raised.file, raised.line
  else
    failure.message = words_of(raised)
    if raised == failure.message then
      failure.file, failure.line = position(raised)
    end
  end
  if not failure.file then
    failure.file, failure.line = position(failure.traceback)
  end
  return failure
end

local function read(raised)
  local ok, failure = pcall(M.failure_of, raised, traceback())
  if ok then
    return failure
  end
  local message = "raised what cannot be read: " .. show.text(failure)
  return { raised = raised, traceback = "", message = message }
end

--- Runs fn and answers what it raised, or nil.
---@param fn fun()
---@return spec.failure?
function M.attempt(fn)
  local ok, failure = xpcall(fn, read)
  if ok then
    return nil
  end
  if type(failure) ~= "table" then -- not even read could run
    return { message = show.text(failure), traceback = "" }
  end
  return failure
end

attempt_at = getinfo(M.attempt)

return M
