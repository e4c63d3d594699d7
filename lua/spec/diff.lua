--- spec.diff: where two values differ, as text.
--
-- differences(want, got) lists the places, by their path in the tables. It looks
-- at what tables hold and not at their metatables; what is no table is equal
-- when == says so, and NaN is NaN. Long texts are shown around what differs,
-- texts of many lines as the lines that do. fits is the one way in which a spec
-- holds a text against a pattern.
--
-- Example:
--
--    local diff = require("spec.diff")
--    print(diff.differences({ a = { 1 } }, { a = { 2 } })[1]) --> .a[1]: want 1, got 2

local show = require("spec.show")

local M = {}

local MOST = 12 -- differences that are listed
local WIDTH = 160 -- bytes of a text that is shown whole
local BEFORE, BEHIND = 24, 72 -- bytes shown around the first difference
local HUNK = 8 -- lines shown of each side

local function inside_character(text, i)
  local byte = text:byte(i)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

-- The part of text around byte i, in quotes; … stands for what is left out.
local function around(text, i)
  local first, last = i - BEFORE, i + BEHIND
  if first <= 1 then
    first = 1
  end
  while first > 1 and inside_character(text, first) do
    first = first - 1
  end
  while last < #text and inside_character(text, last + 1) do
    last = last + 1
  end
  local before, behind = first > 1 and "…" or "", last < #text and "…" or ""
  return before .. show.quoted(text:sub(first, last)) .. behind
end

local function first_difference(a, b)
  local low, high = 0, math.min(#a, #b)
  while low < high do -- the longest beginning that both have
    local middle = math.ceil((low + high) / 2)
    if a:sub(1, middle) == b:sub(1, middle) then
      low = middle
    else
      high = middle - 1
    end
  end
  return low + 1
end

local function of_lines(want, got)
  if #want <= WIDTH and #got <= WIDTH then
    return ("want %s, got %s"):format(show.quoted(want), show.quoted(got))
  end
  local i = first_difference(want, got)
  return ("from byte %d: want %s, got %s"):format(i, around(want, i), around(got, i))
end

local function lines(text)
  local out = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do
    out[#out + 1] = line
  end
  return out
end

-- How many lines two texts begin and end with alike.
local function common(a, b)
  local head, tail = 0, 0
  local most = math.min(#a, #b)
  while head < most and a[head + 1] == b[head + 1] do
    head = head + 1
  end
  while tail < most - head and a[#a - tail] == b[#b - tail] do
    tail = tail + 1
  end
  return head, tail
end

-- Writes the lines first to last of a text, each with its number.
local function list(out, mark, text, first, last)
  local shown = math.min(last, first + HUNK - 1)
  for i = first, shown do
    out[#out + 1] = ("  %s %d: %s"):format(mark, i, show.show(text[i]))
  end
  if shown < last then
    out[#out + 1] = ("  %s … %d more lines"):format(mark, last - shown)
  end
end

local function of_texts(want, got)
  local a, b = lines(want), lines(got)
  local head, tail = common(a, b)
  local missing, added = #a - tail - head, #b - tail - head
  if missing <= 1 and added <= 1 then
    local one, other = a[head + 1], b[head + 1]
    if missing == 1 and added == 1 then
      return ("line %d: %s"):format(head + 1, of_lines(one, other))
    end
    local function said(n, line)
      return n == 0 and "no such line" or show.show(line)
    end
    return ("line %d: want %s, got %s"):format(head + 1, said(missing, one), said(added, other))
  end
  local out = { ("from line %d on (- want, + got):"):format(head + 1) }
  list(out, "-", a, head + 1, #a - tail)
  list(out, "+", b, head + 1, #b - tail)
  return table.concat(out, "\n")
end

local function text_difference(want, got)
  if (want .. got):find("\n", 1, true) then
    return of_texts(want, got)
  end
  return of_lines(want, got)
end

local function nan(v)
  return v ~= v
end

local function step(key)
  local name = show.name(key)
  return name:sub(1, 1) == "[" and name or "." .. name
end

local function compare(want, got, path, out, met)
  if want == got or nan(want) and nan(got) then
    return
  end
  if type(want) == "table" and type(got) == "table" then
    if met[want] == got then
      return
    end
    met[want] = got
    for _, key in ipairs(show.sorted_keys(want, got)) do
      compare(want[key], got[key], path .. step(key), out, met)
    end
    return
  end
  local what = type(want) == "string" and type(got) == "string" and text_difference(want, got)
    or ("want %s, got %s"):format(show.show(want), show.show(got))
  out[#out + 1] = (path == "" and "" or path .. ": ") .. what
end

--- The places where got differs from want, none when they are the same.
---@param want any
---@param got any
---@return string[]
function M.differences(want, got)
  local out = {}
  compare(want, got, "", out, {})
  local more = #out - MOST
  if more > 1 then
    for i = #out, MOST + 1, -1 do
      out[i] = nil
    end
    out[MOST + 1] = ("and %d more"):format(more)
  end
  return out
end

--- Whether a text holds what is wanted as it stands, or fits it as a Lua pattern.
---@param text string
---@param wanted string
---@return boolean
function M.fits(text, wanted)
  if text:find(wanted, 1, true) then
    return true
  end
  local ok, at = pcall(string.find, text, wanted)
  return ok and at ~= nil
end

return M
