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

local SHORT = 64 -- bytes of a search text that string.gsub looks for
local LARGEST = 64 * 1024 * 1024 -- bytes of a changed text

local function newlines(text)
  local _, n = text:gsub("\n", "\n")
  return n
end

local function line_at(text, at)
  return newlines(text:sub(1, at - 1)) + 1
end

-- The lines of the first occurrences.
local function first_lines(text, search)
  local lines, line, from = {}, 1, 1
  local first, last = text:find(search, 1, true)
  while first and #lines < LISTED do
    line = line + newlines(text:sub(from, first - 1))
    lines[#lines + 1] = line
    from = first
    first, last = text:find(search, last + 1, true)
  end
  return lines
end

-- Puts replace in the place of every occurrence; answers the text and how many
-- there were. A short search text may occur at every byte, which is the host's
-- work; a long one is found in time that does not depend on its length.
local function replace_all(text, search, replace)
  if #search <= SHORT then
    return text:gsub(search:gsub("%p", "%%%0"), (replace:gsub("%%", "%%%%")))
  end
  local parts, from = {}, 1
  local first, last = text:find(search, 1, true)
  while first do
    parts[#parts + 1] = text:sub(from, first - 1)
    from = last + 1
    first, last = text:find(search, from, true)
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts, replace), #parts - 1
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

local function ambiguous(text, search)
  local _, n = replace_all(text, search, search)
  local message = "the search text occurs %d times: take in more of what is around it, or say all"
  return refusal.of("search_ambiguous", message:format(n), {
    matches = n,
    lines = first_lines(text, search),
  })
end

-- Every occurrence replaced, and how many, or nil and a refusal.
local function everywhere(text, search, replace)
  local _, n = replace_all(text, search, search)
  local size = #text + n * (#replace - #search)
  if size > LARGEST then
    local message = "the changed file would have %d bytes, at most %d are written"
    return nil, refusal.of("too_large", message:format(size, LARGEST))
  end
  return replace_all(text, search, replace)
end

--- Answers the changed text and what to tell the model, or nil and a refusal.
---@param text string
---@param args { search: string, replace: string, all?: boolean }
---@return string?, table
function M.replace(text, args)
  local search, replace = args.search, args.replace
  if search == "" then
    return nil, refusal.of("bad_edit", "the search text is empty: give what stands in the file")
  end
  if search == replace then
    return nil, refusal.of("no_edits", "search and replace are the same text")
  end
  local first, last = text:find(search, 1, true)
  if not first then
    return nil, not_found(text, search)
  end
  local changed, n
  if not text:find(search, last + 1, true) then
    changed, n = text:sub(1, first - 1) .. replace .. text:sub(last + 1), 1
  elseif args.all then
    changed, n = everywhere(text, search, replace)
  else
    return nil, ambiguous(text, search)
  end
  if not changed then
    return nil, n
  end
  return changed, { ok = true, replaced = n, line = line_at(text, first) }
end

return M
