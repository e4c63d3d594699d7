--- spec.show: values as text.
--
-- show(v) writes a value on one line, the keys of a table sorted; a long one is
-- cut. text(v) is tostring that always answers a text. The others are what
-- spec.diff writes with. Nothing here compares, and nothing raises.
--
-- Example:
--
--    local show = require("spec.show")
--    print(show.show({ b = 1, "x" })) --> { "x", b = 1 }

local ipairs, next, pairs, pcall, tostring, type = ipairs, next, pairs, pcall, tostring, type
local byte, find, format = string.byte, string.find, string.format
local gsub, match, sub = string.gsub, string.match, string.sub
local concat, sort = table.concat, table.sort

local M = {}

local DEPTH, WIDTH = 5, 240 -- what show writes of one value

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

-- Characters of two bytes and more, as patterns (RFC 3629).
local characters = {
  "^[\194-\223][\128-\191]",
  "^\224[\160-\191][\128-\191]",
  "^[\225-\236\238\239][\128-\191][\128-\191]",
  "^\237[\128-\159][\128-\191]",
  "^\240[\144-\191][\128-\191][\128-\191]",
  "^[\241-\243][\128-\191][\128-\191][\128-\191]",
  "^\244[\128-\143][\128-\191][\128-\191]",
}

local function character_at(s, i)
  for _, pattern in ipairs(characters) do
    local character = match(s, pattern, i)
    if character then
      return character
    end
  end
end

local function escaped(c)
  return escapes[c] or format("\\%d", byte(c))
end

--- A text as it is; bytes that are no character as escapes.
---@param s string
---@return string
function M.legible(s)
  local parts, from = {}, 1
  local at = find(s, "[\128-\255]")
  while at do
    local character = character_at(s, at)
    parts[#parts + 1] = sub(s, from, at - 1) .. (character or escaped(sub(s, at, at)))
    from = at + (character and #character or 1)
    at = find(s, "[\128-\255]", from)
  end
  return concat(parts) .. sub(s, from)
end

--- A text in quotes, legible, control characters as escapes.
---@param s string
---@return string
function M.quoted(s)
  return '"' .. M.legible(gsub(s, '[%c"\\]', escaped)) .. '"'
end

--- What tostring answers, or why it does not.
---@param v any
---@return string
function M.text(v)
  local ok, text = pcall(tostring, v)
  if ok and type(text) == "string" then
    return text
  end
  local why = ok and "answers a " .. type(text) or type(text) == "string" and "raises " .. text
    or "raises a " .. type(text)
  return format("a %s whose __tostring %s", type(v), why)
end

local function order(a, b)
  if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then
    return a < b
  end
  if type(a) ~= type(b) then
    return type(a) == "number" or type(a) < type(b) and type(b) ~= "number"
  end
  return M.text(a) < M.text(b)
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
  sort(keys, order)
  return keys
end

--- A key as a constructor writes it.
---@param key any
---@return string
function M.name(key)
  if type(key) == "string" and find(key, "^[%a_][%w_]*$") then
    return key
  end
  return "[" .. (type(key) == "string" and M.quoted(key) or M.text(key)) .. "]"
end

local function text_of(v, depth, open)
  if type(v) == "string" then
    return M.quoted(v)
  elseif type(v) ~= "table" then
    return M.text(v)
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
  return #parts == 0 and "{}" or "{ " .. concat(parts, ", ") .. " }"
end

-- Cuts text between two characters.
local function cut(text, width)
  if #text <= width then
    return text
  end
  while width > 0 and (byte(text, width + 1) or 0) >= 0x80 and byte(text, width + 1) < 0xC0 do
    width = width - 1
  end
  return sub(text, 1, width) .. "…"
end

--- Writes a value on one line.
---@param v any
---@return string
function M.show(v)
  return cut(text_of(v, DEPTH, {}), WIDTH)
end

return M
