--- lshape.reflect: reads schemas.
--
--    fields(shape)          { name, type, optional, doc? } of each field, by name
--    walk(schema, visitor)  visits a schema and all that it is made of
--
-- Fields are read raw, so schemas that were reloaded as plain data work alike. A
-- ref is not followed.
--
-- Example:
--
--    for _, field in ipairs(reflect.fields(Opts)) do
--      print(field.name, field.optional, field.doc)
--    end

local node = require("lshape.node")
local place = require("lshape.place")
local sound = require("lshape.sound")
local violation = require("lshape.violation")

local M = {}

-- A schema without optional and described around it, whether one was optional,
-- and the outermost description.
local function unwrap(schema)
  local optional, doc = false, nil
  local inner = node.peeled(schema, function(wrap)
    local kind = rawget(wrap, "kind")
    optional = optional or kind == "optional"
    doc = doc or kind == "described" and rawget(wrap, "doc") or nil
    return kind == "optional" or kind == "described"
  end)
  return inner, optional, doc
end

---@class lshape.field
---@field name string
---@field type lshape.schema without optional and described
---@field optional boolean
---@field doc? string the outermost description

--- The fields of a shape, sorted by name.
---@param shape lshape.schema of kind shape
---@return lshape.field[]
function M.fields(shape)
  if type(shape) ~= "table" then
    place.raise("lshape.reflect.fields: expected table, got " .. type(shape))
  end
  if rawget(shape, "kind") ~= "shape" then
    place.raise("lshape.reflect.fields: schema must be kind='shape', got kind="
      .. violation.literal(rawget(shape, "kind")))
  end
  local fields = rawget(shape, "fields")
  if type(fields) ~= "table" then
    place.raise("lshape.reflect.fields: schema.fields is not a table, got " .. type(fields))
  end
  local list = {}
  for name, schema in violation.sorted(fields) do
    if not node.is_schema(schema) then
      place.raise(("lshape.reflect.fields: field '%s' must be a schema, got %s"):format(
        tostring(name), type(schema)))
    end
    local inner, optional, doc = unwrap(schema)
    list[#list + 1] = { name = name, type = inner, optional = optional, doc = doc }
  end
  return list
end

-- The schemas that a schema is made of, in order, by its kind.
local parts = {}

local function in_key_order(field)
  return function(schema)
    local list = {}
    for _, part in violation.sorted(rawget(schema, field)) do
      list[#list + 1] = part
    end
    return list
  end
end

local function of_fields(...)
  local names = { ... }
  return function(schema)
    local list = {}
    for i, name in ipairs(names) do
      list[i] = rawget(schema, name)
    end
    return list
  end
end

local function in_list(field)
  return function(schema)
    return rawget(schema, field)
  end
end

parts.shape = in_key_order("fields")
parts.discriminated = in_key_order("variants")
parts.array_of = of_fields("elem")
parts.map_of = of_fields("key", "val")
parts.optional = of_fields("inner")
parts.described = of_fields("inner")
parts.bounded = of_fields("inner")
parts.any_of = in_list("variants")
parts.tuple = in_list("items")

local function walk(schema, visitor, depth)
  node.check_depth(depth, "lshape.reflect.walk")
  local broken = sound.fault(schema)
  if broken then
    place.raise("lshape.reflect.walk: " .. broken)
  end
  visitor(schema)
  local of = parts[rawget(schema, "kind")]
  for _, part in ipairs(of and of(schema) or {}) do
    walk(part, visitor, depth + 1)
  end
end

--- Calls visitor with a schema and then with its parts, depth first.
---@param schema lshape.schema
---@param visitor fun(schema: lshape.schema)
function M.walk(schema, visitor)
  if visitor == nil then
    place.raise("lshape.reflect.walk: expected a visitor function, got nil")
  end
  walk(schema, visitor, 1)
end

M._internal = { unwrap = unwrap }

return M
