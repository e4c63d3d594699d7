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

local pcall, type = pcall, type
local byte, find, format, gmatch, sub = string.byte, string.find, string.format, string.gmatch,
  string.sub
local ceil, min, concat = math.ceil, math.min, table.concat

local M = {}

local MOST = 12 -- differences that are listed
local WIDTH = 160 -- bytes of a text that is shown whole
local BEFORE, BEHIND = 24, 72 -- bytes shown around the first difference
local HUNK = 8 -- lines shown of each side
local STEPS = 24 -- of a path that is shown whole

local function inside_character(text, i)
  local b = byte(text, i)
  return b ~= nil and b >= 0x80 and b < 0xC0
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
  return before .. show.quoted(sub(text, first, last)) .. behind
end

local function first_difference(a, b)
  local low, high = 0, min(#a, #b)
  while low < high do -- the longest beginning that both have
    local middle = ceil((low + high) / 2)
    if sub(a, 1, middle) == sub(b, 1, middle) then
      low = middle
    else
      high = middle - 1
    end
  end
  return low + 1
end

local function of_lines(want, got)
  if #want <= WIDTH and #got <= WIDTH then
    return format("want %s, got %s", show.quoted(want), show.quoted(got))
  end
  local i = first_difference(want, got)
  return format("from byte %d: want %s, got %s", i, around(want, i), around(got, i))
end

local function lines(text)
  local out = {}
  for line in gmatch(text .. "\n", "(.-)\n") do
    out[#out + 1] = line
  end
  return out
end

-- How many lines two texts begin and end with alike.
local function common(a, b)
  local head, tail = 0, 0
  local most = min(#a, #b)
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
  local shown = min(last, first + HUNK - 1)
  for i = first, shown do
    out[#out + 1] = format("  %s %d: %s", mark, i, show.show(text[i]))
  end
  if shown < last then
    out[#out + 1] = format("  %s … %d more lines", mark, last - shown)
  end
end

local function of_texts(want, got)
  local a, b = lines(want), lines(got)
  local head, tail = common(a, b)
  local missing, added = #a - tail - head, #b - tail - head
  if missing <= 1 and added <= 1 then
    local one, other = a[head + 1], b[head + 1]
    if missing == 1 and added == 1 then
      return format("line %d: %s", head + 1, of_lines(one, other))
    end
    local function said(n, line)
      return n == 0 and "no such line" or show.show(line)
    end
    return format("line %d: want %s, got %s", head + 1, said(missing, one), said(added, other))
  end
  local out = { format("from line %d on (- want, + got):", head + 1) }
  list(out, "-", a, head + 1, #a - tail)
  list(out, "+", b, head + 1, #b - tail)
  return concat(out, "\n")
end

local function text_difference(want, got)
  if find(want .. got, "\n", 1, true) then
    return of_texts(want, got)
  end
  return of_lines(want, got)
end

local function nan(v)
  return v ~= v
end

local function step(key)
  local name = show.name(key)
  return sub(name, 1, 1) == "[" and name or "." .. name
end

-- The text of a path, each step of which knows the one before it; the middle of
-- a long one is left out.
local function path_text(path)
  local steps, at = {}, path
  while at do
    steps[#steps + 1], at = at.key, at.before
  end
  local text, n = {}, #steps
  for i = n, 1, -1 do
    if n <= STEPS or i > n - STEPS / 2 or i <= STEPS / 2 then
      text[#text + 1] = step(steps[i])
    elseif i == STEPS / 2 + 1 then
      text[#text + 1] = "…"
    end
  end
  return concat(text)
end

local function same_value(want, got)
  return want == got or nan(want) and nan(got)
end

-- Whether two tables meet for the first time: those that contain themselves
-- meet again.
local function first_meeting(met, want, got)
  met[want] = met[want] or {}
  local before = met[want][got]
  met[want][got] = true
  return not before
end

local function difference_of(at)
  local want, got = at.want, at.got
  local what = type(want) == "string" and type(got) == "string" and text_difference(want, got)
    or format("want %s, got %s", show.show(want), show.show(got))
  local path = path_text(at.path)
  return (path == "" and "" or path .. ": ") .. what
end

-- Puts what two tables hold onto the pile, the first key on top.
local function pile_up(pile, at)
  local keys = show.sorted_keys(at.want, at.got)
  for i = #keys, 1, -1 do
    local key = keys[i]
    pile[#pile + 1] =
      { want = at.want[key], got = at.got[key], path = { key = key, before = at.path } }
  end
end

-- The places that differ, in the order of their keys. A pile and no recursion:
-- values nest as deep as they like.
local function compared(want, got)
  local out, met, pile = {}, {}, { { want = want, got = got } }
  while #pile > 0 do
    local at = pile[#pile]
    pile[#pile] = nil
    if not same_value(at.want, at.got) then
      if type(at.want) ~= "table" or type(at.got) ~= "table" then
        out[#out + 1] = difference_of(at)
      elseif first_meeting(met, at.want, at.got) then
        pile_up(pile, at)
      end
    end
  end
  return out
end

--- The places where got differs from want, none when they are the same.
---@param want any
---@param got any
---@return string[]
function M.differences(want, got)
  local out = compared(want, got)
  local more = #out - MOST
  if more > 1 then
    for i = #out, MOST + 1, -1 do
      out[i] = nil
    end
    out[MOST + 1] = format("and %d more", more)
  end
  return out
end

--- Whether a text holds what is wanted as it stands, or fits it as a Lua pattern.
---@param text string
---@param wanted string
---@return boolean
function M.fits(text, wanted)
  if find(text, wanted, 1, true) then
    return true
  end
  local ok, at = pcall(find, text, wanted)
  return ok and at ~= nil
end

return M
