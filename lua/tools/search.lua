--- tools.search: how the file tools look for names and for lines.
--
-- glob and grep take a scope and the arguments of a call. What they answer is
-- bounded: a model that gets too much is told to ask for less. A pattern of grep
-- is a regular expression in the syntax of RE2, as of grep -E without back
-- references; it takes time in proportion to the text and to the pattern, which
-- is bounded, and a deadline ends it.
--
-- Example:
--
--    local names = search.glob(places, { pattern = "src/**/*.go" })

local knl = require("knl")
local refusal = require("tools.refusal")

local M = {}

local NAMES = 1000
local LINES = 200

-- Runs a search; a glob that is none is the model's mistake, not the script's.
local function try(fn, ...)
  local ok, found, more = pcall(fn, ...)
  if not ok and type(found) == "string" then
    local text = found:gsub("^.-: argument 1 ", ""):gsub("^.-: option ", "")
    return nil, refusal.of("bad_pattern", text)
  end
  if not ok then
    error(found, 0)
  end
  return found, more
end

--- Answers the names that match, from the root, or a refusal.
---@param places scope
---@param args { pattern: string }
---@return table
function M.glob(places, args)
  local pattern, refused = places:pattern(args.pattern)
  if not pattern then
    return refused
  end
  local found, bad = try(places.files.glob, places.files, pattern)
  if not found then
    return bad
  end
  local names, more = knl.array(), 0
  for _, name in ipairs(found) do
    if places:holds(name) and #names < NAMES then
      names[#names + 1] = name
    elseif places:holds(name) then
      more = more + 1
    end
  end
  if more > 0 then
    local message = "%d names match, at most %d are answered at once: give a narrower pattern"
    return refusal.of("too_many", message:format(NAMES + more, NAMES))
  end
  return refusal.bounded(names, "give a narrower pattern")
end

-- Adds the lines below path to found; answers a refusal, or nil.
local function lines_in(places, path, args, found)
  local matches, more = try(places.files.grep, places.files, args.pattern, {
    path = path,
    glob = args.glob,
    ignore_case = args.ignore_case,
    max = math.max(1, LINES - #found.lines),
  })
  if not matches then
    return more
  end
  for _, m in ipairs(matches) do
    if #found.lines == LINES then
      more = true
      break
    end
    found.lines[#found.lines + 1] = ("%s:%d:%s"):format(m.path, m.line, m.text)
  end
  found.more = found.more or more
end

--- Answers the lines that match as path:line:text, or a refusal.
---@param places scope
---@param args { pattern: string, path?: string, glob?: string, ignore_case?: boolean }
---@return table
function M.grep(places, args)
  local paths, refused = places:all(args.path)
  if not paths then
    return refused
  end
  local found = { lines = knl.array() }
  for _, path in ipairs(paths) do
    local bad = lines_in(places, path, args, found)
    if bad then
      return bad
    end
  end
  return { matches = found.lines, more = found.more }
end

return M
