--- spec.show: values as text.
--
-- show(v) writes a value on one line, the keys of a table sorted; a long one is
-- cut. The others are what spec.diff writes with. Nothing here compares.
--
-- Example:
--
--    local show = require("spec.show")
--    print(show.show({ b = 1, "x" })) --> { "x", b = 1 }

local M = {}

local DEPTH, WIDTH = 5, 240 -- what show writes of one value

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

--- A text in quotes, control characters as escapes.
---@param s string
---@return string
function M.quoted(s)
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

--- The keys of some tables, each once, in one order.
---@param ... table
---@return any[]
function M.sorted_keys(...)
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

--- A key as a constructor writes it.
---@param key any
---@return string
function M.name(key)
  if type(key) == "string" and key:find("^[%a_][%w_]*$") then
    return key
  end
  return "[" .. (type(key) == "string" and M.quoted(key) or tostring(key)) .. "]"
end

local function text_of(v, depth, open)
  if type(v) == "string" then
    return M.quoted(v)
  elseif type(v) ~= "table" then
    return tostring(v)
  elseif open[v] then
    return "{ itself }"
  elseif depth == 0 then
    return next(v) == nil and "{}" or "{ … }"
  end
  open[v] = true
  local parts = {}
  for _, key in ipairs(M.sorted_keys(v)) do
    local value = text_of(v[key], depth - 1, open)
    parts[#parts + 1] = key == #parts + 1 and value or M.name(key) .. " = " .. value
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

return M
