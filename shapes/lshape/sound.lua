--- lshape.sound: what a schema must hold to be read.
--
-- fault(schema) answers nil, or what is broken about one schema; the schemas that
-- it is made of are not looked into. Constructors make no broken ones: this is
-- for schemas that were written by hand, reloaded or changed.
--
-- Example:
--
--    print(sound.fault({ kind = "shape" })) --> schema of kind 'shape' has no fields table

local violation = require("lshape.violation")

local M = {}

-- Wants a value of a Lua type in a field; noun is what it is there.
local function has(field, lua_type, noun)
  return function(schema)
    if type(rawget(schema, field)) ~= lua_type then
      return ("has no %s %s"):format(field, noun)
    end
  end
end

local has_inner = has("inner", "table", "schema")

local function described(schema)
  local doc = rawget(schema, "doc")
  if doc ~= nil and type(doc) ~= "string" then
    return "has a doc that is no text, got " .. type(doc)
  end
  return has_inner(schema)
end

local function bounded(schema)
  for _, word in ipairs({ "min", "max", "min_len", "max_len" }) do
    local bound = rawget(schema, word)
    if bound ~= nil and type(bound) ~= "number" then
      return ("has a %s that is no number, got %s"):format(word, violation.literal(bound))
    end
  end
  return has_inner(schema)
end

local function pattern(schema)
  local pat = rawget(schema, "pattern")
  if type(pat) ~= "string" then
    return "has no pattern text"
  elseif not pcall(string.find, "", pat) then
    return "has the malformed pattern " .. violation.literal(pat)
  end
end

local function map_of(schema)
  return has("key", "table", "schema")(schema) or has("val", "table", "schema")(schema)
end

local function discriminated(schema)
  return has("tag", "string", "text")(schema) or has("variants", "table", "table")(schema)
end

local function whole() end

-- By kind: what is broken, behind "schema of kind 'k'".
local faults = {
  any = whole,
  integer = whole,
  prim = has("prim", "string", "type"),
  shape = has("fields", "table", "table"),
  array_of = has("elem", "table", "schema"),
  tuple = has("items", "table", "list"),
  map_of = map_of,
  one_of = has("values", "table", "list"),
  any_of = has("variants", "table", "list"),
  discriminated = discriminated,
  pattern = pattern,
  ref = has("name", "string", "text"),
  optional = has_inner,
  described = described,
  bounded = bounded,
}

--- What is broken about a schema, nil when nothing is.
---@param schema any
---@return string?
function M.fault(schema)
  if type(schema) ~= "table" then
    return "schema must be a table, got " .. type(schema)
  end
  local kind = rawget(schema, "kind")
  if kind == nil then
    return "schema missing 'kind' field"
  elseif not faults[kind] then
    return ("unknown kind '%s'"):format(type(kind) == "string" and kind or type(kind))
  end
  local fault = faults[kind](schema)
  return fault and ("schema of kind '%s' %s"):format(kind, fault)
end

return M
