--- spec.show: values as text, and what two values differ in.
--
-- show(v) writes a value on one line, the keys of a table sorted. differences
-- lists the places where two values differ, as text. It compares what tables
-- hold and not their metatables; what is no table is equal when == says so.
--
-- Example:
--
--    local show = require("spec.show")
--    print(show.show({ b = 1, "x" })) --> { "x", b = 1 }

local M = {}

local DEPTH, WIDTH = 5, 240 -- what show writes of one value
local MOST = 12 -- differences that are listed

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

local function quoted(s)
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\%d"):format(c:byte())
  end) .. '"'
end

local function order(a, b)
  if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then
    return a < b
  end
  if type(a) ~= type(b) then
    return type(a) == "number" or type(a) < type(b) and type(b) ~= "number"
  end
  return tostring(a) < tostring(b)
end

local function sorted_keys(...)
  local keys, seen = {}, {}
  for _, t in ipairs({ ... }) do
    for key in pairs(t) do
      if not seen[key] then
        seen[key] = true
        keys[#keys + 1] = key
      end
    end
  end
  table.sort(keys, order)
  return keys
end

local function name(key)
  if type(key) == "string" and key:find("^[%a_][%w_]*$") then
    return key
  end
  return "[" .. (type(key) == "string" and quoted(key) or tostring(key)) .. "]"
end

local function text_of(v, depth, open)
  if type(v) == "string" then
    return quoted(v)
  elseif type(v) ~= "table" then
    return tostring(v)
  elseif open[v] then
    return "{ itself }"
  elseif depth == 0 then
    return next(v) == nil and "{}" or "{ … }"
  end
  open[v] = true
  local parts = {}
  for _, key in ipairs(sorted_keys(v)) do
    local value = text_of(v[key], depth - 1, open)
    parts[#parts + 1] = key == #parts + 1 and value or name(key) .. " = " .. value
  end
  open[v] = nil
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

-- Cuts text between two characters.
local function cut(text, width)
  if #text <= width then
    return text
  end
  while width > 0 and (text:byte(width + 1) or 0) >= 0x80 and text:byte(width + 1) < 0xC0 do
    width = width - 1
  end
  return text:sub(1, width) .. "…"
end

--- Writes a value on one line.
---@param v any
---@return string
function M.show(v)
  return cut(text_of(v, DEPTH, {}), WIDTH)
end

local function lines(text)
  local out = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do
    out[#out + 1] = line
  end
  return out
end

-- Long texts differ in a line, short ones as a whole.
local function text_difference(want, got)
  if #want < WIDTH and #got < WIDTH and not (want .. got):find("\n") then
    return ("want %s, got %s"):format(quoted(want), quoted(got))
  end
  local a, b = lines(want), lines(got)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then
      local function line(s)
        return s and M.show(s) or "the end"
      end
      return ("line %d: want %s, got %s"):format(i, line(a[i]), line(b[i]))
    end
  end
end

local function nan(v)
  return v ~= v
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
    for _, key in ipairs(sorted_keys(want, got)) do
      local step = type(key) == "string" and key:find("^[%a_][%w_]*$") and "." .. key or name(key)
      compare(want[key], got[key], path .. step, out, met)
    end
    return
  end
  local what = type(want) == "string" and type(got) == "string" and text_difference(want, got)
    or ("want %s, got %s"):format(M.show(want), M.show(got))
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

return M
