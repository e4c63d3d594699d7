--- policy.canonical: a value as text, the same each time.
--
-- Keys are sorted and types kept apart: 1 and "1", [] and {}, nil and null all
-- read differently. The text names no address, so it can be compared with one
-- that another process made. Levels below depth read as one mark, which makes
-- what differs only there equal; a table inside itself reads as a mark too.
-- It is not JSON and cannot be read back.
--
-- Example:
--
--    canonical.render{ b = { 1, "1" }, a = true } --> {"a":true,"b":[1,"1"]}

local knl = require("knl")
local std = require("std")

local DEPTH = 8 -- levels of tables that are told apart

local M = {}

local render

-- Only JSON tells an empty list from an empty map.
local function is_list(t)
  if next(t) == nil then
    return std.json.encode(t) == "[]"
  end
  local n = 0
  for _ in pairs(t) do
    n = n + 1
  end
  return n == #t
end

local function list(t, depth, above)
  local parts = {}
  for i = 1, #t do
    parts[i] = render(t[i], depth, above)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

-- The keys of t as they are rendered, sorted, with their values.
local function map(t, depth, above)
  local parts = {}
  for key, value in pairs(t) do
    local name = type(key) == "table" and "<table>" or render(key, 0, above)
    parts[#parts + 1] = name .. ":" .. render(value, depth, above)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local function whole_table(t, depth, above)
  if above[t] then
    return "<cycle>"
  elseif depth == 0 then
    return "<deeper>"
  end
  above[t] = true
  local text = (is_list(t) and list or map)(t, depth - 1, above)
  above[t] = nil
  return text
end

local scalars = {
  ["nil"] = tostring,
  boolean = tostring,
  string = function(v)
    return ("%q"):format(v)
  end,
  number = function(v)
    return v % 1 == 0 and math.abs(v) < 2 ^ 53 and ("%d"):format(v) or ("%.17g"):format(v)
  end,
}

-- null and integers beyond 2^53 are userdata that print as what they are.
local function foreign(v)
  if v == knl.null then
    return "null"
  end
  local text = tostring(v)
  return text:match("^%-?%d+$") or "<" .. type(v) .. ">"
end

function render(v, depth, above)
  if type(v) == "table" then
    return whole_table(v, depth, above)
  end
  return (scalars[type(v)] or foreign)(v)
end

--- Renders a value.
---@param v any
---@param depth? integer levels of tables that are told apart (default 8)
---@return string
function M.render(v, depth)
  return render(v, depth or DEPTH, {})
end

return M
