--- tools.edit: the change of an exact piece of a text.
--
-- replace works on text alone. A piece that does not occur is refused with the
-- place where the longest beginning of it stops agreeing, because that is what
-- a model needs to mend its call; one that occurs more than once is refused
-- with the lines. Nothing is matched loosely.
--
-- Example:
--
--    local changed, answer = edit.replace("a b a", { search = "b", replace = "c" })
--    print(changed, answer.replaced) --> a c a  1

local refusal = require("tools.refusal")

local M = {}

local SHOWN = 60 -- bytes of text in a refusal
local LISTED = 20 -- lines of occurrences in a refusal

local function line_at(text, at)
  local _, n = text:sub(1, at - 1):gsub("\n", "")
  return n + 1
end

-- The line numbers of every occurrence.
local function occurrences(text, search)
  local starts, at = {}, 1
  while true do
    local first, last = text:find(search, at, true)
    if not first then
      return starts
    end
    starts[#starts + 1] = first
    at = last + 1
  end
end

local function inside_character(text, i)
  local byte = text:byte(i)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

-- The length of the longest beginning of search that occurs, and where it does.
local function agreement(text, search)
  local low, high = 0, #search - 1
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if text:find(search:sub(1, middle), 1, true) then
      low = middle
    else
      high = middle - 1
    end
  end
  while low > 0 and inside_character(search, low + 1) do
    low = low - 1
  end
  return low, text:find(search:sub(1, low), 1, true)
end

-- What stands from i on, to the end of its line or shorter.
local function rest(text, i)
  local stop = math.min(text:find("\n", i, true) or #text, i + SHOWN - 1)
  while stop > i and inside_character(text, stop + 1) do
    stop = stop - 1
  end
  return text:sub(i, stop)
end

local function not_found(text, search)
  local n, at = agreement(text, search)
  if n == 0 then
    return refusal.of("search_not_found",
      "the search text does not occur, nor does a beginning of it")
  end
  local differs = at + n
  local want, got = rest(search, n + 1), rest(text, differs)
  local message = "the search text does not occur; "
    .. ("it agrees with line %d and stops agreeing in line %d"):format(
      line_at(text, at), line_at(text, differs))
  if got:sub(1, 1) == "\r" then
    message = message .. ": the lines of this file end in \\r\\n"
  end
  return refusal.of("search_not_found", message, {
    agreed_bytes = n,
    line = line_at(text, differs),
    want = want,
    got = got == "" and "the end of the file" or got,
  })
end

local function ambiguous(text, starts)
  local lines = {}
  for i = 1, math.min(#starts, LISTED) do
    lines[i] = line_at(text, starts[i])
  end
  local message = "the search text occurs %d times: take in more of what is around it, or say all"
  return refusal.of("search_ambiguous", message:format(#starts), {
    matches = #starts,
    lines = lines,
  })
end

-- Puts replace in the place of every occurrence.
local function spliced(text, search, replace, starts)
  local parts, from = {}, 1
  for _, start in ipairs(starts) do
    parts[#parts + 1] = text:sub(from, start - 1)
    parts[#parts + 1] = replace
    from = start + #search
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts)
end

--- Answers the changed text and what to tell the model, or nil and a refusal.
---@param text string
---@param args { search: string, replace: string, all?: boolean }
---@return string?, table
function M.replace(text, args)
  if args.search == "" then
    return nil, refusal.of("bad_edit", "the search text is empty: give what stands in the file")
  end
  if args.search == args.replace then
    return nil, refusal.of("no_edits", "search and replace are the same text")
  end
  local starts = occurrences(text, args.search)
  if #starts == 0 then
    return nil, not_found(text, args.search)
  end
  if #starts > 1 and not args.all then
    return nil, ambiguous(text, starts)
  end
  return spliced(text, args.search, args.replace, starts),
    { ok = true, replaced = #starts, line = line_at(text, starts[1]) }
end

return M
