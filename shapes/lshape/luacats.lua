--- lshape.luacats: writes schemas as LuaCATS annotations.
--
--    type_of(schema, prefix?)          { a?: string, b: integer[] }
--    class_for(name, shape, prefix?)   ---@class with a line for each field
--    gen(shapes?, prefix?)             a meta file with a class for each shape
--
-- A ref is written as the class of its name, the prefix in front. Bounds and
-- patterns have no notation and are left out. Nothing is written to a file.
--
-- Example:
--
--    print(luacats.class_for("Point", T.shape({ x = T.number:describe("metres") })))
--    --> ---@class Point
--    --> ---@field x number @metres

local place = require("lshape.place")
local reflect = require("lshape.reflect")
local violation = require("lshape.violation")

local M = {}

-- "TokenUsage" for token_usage: the first letter of each piece is raised.
local function pascal(name)
  return (name:gsub("[^_-]+", function(piece)
    return piece:sub(1, 1):upper() .. piece:sub(2)
  end):gsub("[_-]", ""))
end

-- Whether a type has a | that no bracket encloses.
local function is_union(text)
  local depth = 0
  for c in text:gmatch("[|{}()%[%]<>]") do
    if c == "|" and depth == 0 then
      return true
    end
    if c:find("[{(<%[]") then
      depth = depth + 1
    elseif c ~= "|" then
      depth = depth - 1
    end
  end
  return false
end

local writers = {}

local function type_of(schema, prefix)
  local kind = rawget(schema, "kind")
  local writer = writers[kind]
  if not writer then
    place.raise(("lshape.luacats: unknown kind '%s'"):format(tostring(kind)))
  end
  return writer(schema, prefix)
end

local function joined(schemas, between, prefix)
  local texts = {}
  for i, schema in ipairs(schemas) do
    texts[i] = type_of(schema, prefix)
  end
  return table.concat(texts, between)
end

function writers.prim(schema)
  return rawget(schema, "prim")
end

function writers.integer()
  return "integer"
end

function writers.any()
  return "any"
end

function writers.pattern()
  return "string"
end

local function of_inner(schema, prefix)
  return type_of(rawget(schema, "inner"), prefix)
end

writers.optional, writers.described, writers.bounded = of_inner, of_inner, of_inner

function writers.ref(schema, prefix)
  return prefix .. pascal(rawget(schema, "name"))
end

function writers.one_of(schema)
  local texts = {}
  for i, v in ipairs(rawget(schema, "values")) do
    texts[i] = type(v) == "string" and ("%q"):format(v) or tostring(v)
  end
  return table.concat(texts, "|")
end

function writers.any_of(schema, prefix)
  return joined(rawget(schema, "variants"), "|", prefix)
end

function writers.tuple(schema, prefix)
  return "[" .. joined(rawget(schema, "items"), ", ", prefix) .. "]"
end

function writers.map_of(schema, prefix)
  local key, val = rawget(schema, "key"), rawget(schema, "val")
  return ("table<%s, %s>"):format(type_of(key, prefix), type_of(val, prefix))
end

function writers.array_of(schema, prefix)
  local elem = rawget(schema, "elem")
  local text = type_of(elem, prefix)
  local _, optional = reflect._internal.unwrap(elem)
  if optional then
    text = text .. "|nil"
  end
  return is_union(text) and ("(%s)[]"):format(text) or text .. "[]"
end

function writers.discriminated(schema, prefix)
  local variants = {}
  for _, variant in violation.sorted(rawget(schema, "variants")) do
    variants[#variants + 1] = variant
  end
  return joined(variants, "|", prefix)
end

function writers.shape(schema, prefix)
  local texts = {}
  for i, field in ipairs(reflect.fields(schema)) do
    local mark = field.optional and "?" or ""
    texts[i] = ("%s%s: %s"):format(field.name, mark, type_of(field.type, prefix))
  end
  return #texts > 0 and "{ " .. table.concat(texts, ", ") .. " }" or "table"
end

--- The type of a schema.
---@param schema lshape.schema
---@param prefix? string stands in front of the names of refs
---@return string
function M.type_of(schema, prefix)
  return type_of(schema, prefix or "")
end

--- A class with the fields of a shape.
---@param class_name string
---@param shape lshape.schema of kind shape
---@param prefix? string stands in front of the names of refs
---@return string
function M.class_for(class_name, shape, prefix)
  local lines = { "---@class " .. class_name }
  for _, field in ipairs(reflect.fields(shape)) do
    local doc = field.doc and " @" .. field.doc:gsub("%s*\n%s*", " ") or ""
    local mark = field.optional and "?" or ""
    local text = type_of(field.type, prefix or "")
    lines[#lines + 1] = ("---@field %s%s %s%s"):format(field.name, mark, text, doc)
  end
  return table.concat(lines, "\n") .. "\n"
end

--- A meta file with a class for each shape; other schemas are passed over.
---@param shapes? table<string, lshape.schema>
---@param prefix? string in front of the name of each class
---@return string
function M.gen(shapes, prefix)
  local blocks = { "---@meta\n" }
  for name, schema in violation.sorted(shapes or {}) do
    if type(schema) == "table" and rawget(schema, "kind") == "shape" then
      blocks[#blocks + 1] = M.class_for((prefix or "") .. pascal(name), schema, prefix)
    end
  end
  return table.concat(blocks, "\n")
end

return M
