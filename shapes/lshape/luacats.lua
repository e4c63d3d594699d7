--- lshape.luacats: writes schemas as LuaCATS annotations.
--
--    type_of(schema, prefix?)          { a?: string, b: integer[] }
--    class_for(name, shape, prefix?)   ---@class with a line for each field
--    gen(shapes?, prefix?)             a meta file with a class for each shape
--
-- A ref is written as the class of its name, the prefix in front. Bounds and
-- patterns have no notation and are left out. A field whose name is no word is
-- written ["so"]; in the name of a class "_" stands for what is no letter, digit or
-- dot. Nothing is written to a file.
--
-- Example:
--
--    print(luacats.class_for("Point", T.shape({ x = T.number:describe("metres") })))
--    --> ---@class Point
--    --> ---@field x number @metres

local node = require("lshape.node")
local place = require("lshape.place")
local reflect = require("lshape.reflect")
local sound = require("lshape.sound")
local violation = require("lshape.violation")

local M = {}

-- "TokenUsage" for token_usage: the first letter of each piece is raised.
local function pascal(name)
  return (name:gsub("[^_-]+", function(piece)
    return piece:sub(1, 1):upper() .. piece:sub(2)
  end):gsub("[_-]", ""))
end

-- A name as an annotation can hold it.
local function class_name(name)
  local text = name:gsub("[^%w_.]", "_")
  return text:find("^[%a_]") and text or "_" .. text
end

local keywords = {}
for word in ("and break do else elseif end false for function goto if in local nil not or"
  .. " repeat return then true until while"):gmatch("%a+") do
  keywords[word] = true
end

local function field_name(name)
  name = tostring(name)
  if name:find("^[%a_][%w_]*$") and not keywords[name] then
    return name
  end
  return "[" .. violation.quoted(name) .. "]"
end

-- Whether a type has a | that neither a bracket nor a string encloses.
local function is_union(text)
  local depth = 0
  text = text:gsub("\\.", ""):gsub('"[^"]*"', "")
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

-- The type of a schema; at is { prefix, depth }, where the writing has come to.
local function type_of(schema, at)
  local broken = sound.fault(schema)
  if broken then
    place.raise("lshape.luacats: " .. broken)
  end
  at = { prefix = at.prefix, depth = at.depth + 1 }
  node.check_depth(at.depth, "lshape.luacats")
  return writers[rawget(schema, "kind")](schema, at)
end

local function joined(schemas, between, at)
  local texts = {}
  for i, schema in ipairs(schemas) do
    texts[i] = type_of(schema, at)
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

local function of_inner(schema, at)
  return type_of(rawget(schema, "inner"), at)
end

writers.optional, writers.described, writers.bounded = of_inner, of_inner, of_inner

function writers.ref(schema, at)
  return class_name(at.prefix .. pascal(rawget(schema, "name")))
end

function writers.one_of(schema)
  local texts = {}
  for i, v in ipairs(rawget(schema, "values")) do
    texts[i] = type(v) == "string" and violation.quoted(v) or tostring(v)
  end
  return table.concat(texts, "|")
end

function writers.any_of(schema, at)
  return joined(rawget(schema, "variants"), "|", at)
end

function writers.tuple(schema, at)
  return "[" .. joined(rawget(schema, "items"), ", ", at) .. "]"
end

function writers.map_of(schema, at)
  local key, val = rawget(schema, "key"), rawget(schema, "val")
  return ("table<%s, %s>"):format(type_of(key, at), type_of(val, at))
end

function writers.array_of(schema, at)
  local elem = rawget(schema, "elem")
  local text = type_of(elem, at)
  local _, optional = reflect._internal.unwrap(elem)
  if optional then
    text = text .. "|nil"
  end
  return is_union(text) and ("(%s)[]"):format(text) or text .. "[]"
end

function writers.discriminated(schema, at)
  local variants = {}
  for _, variant in violation.sorted(rawget(schema, "variants")) do
    variants[#variants + 1] = variant
  end
  return joined(variants, "|", at)
end

function writers.shape(schema, at)
  local texts = {}
  for i, field in ipairs(reflect.fields(schema)) do
    local mark = field.optional and "?" or ""
    texts[i] = ("%s%s: %s"):format(field_name(field.name), mark, type_of(field.type, at))
  end
  return #texts > 0 and "{ " .. table.concat(texts, ", ") .. " }" or "table"
end

-- Where a writing begins.
local function start(prefix)
  if prefix ~= nil and type(prefix) ~= "string" then
    place.raise("lshape.luacats: the prefix must be a string, got " .. type(prefix))
  end
  return { prefix = prefix or "", depth = 0 }
end

--- The type of a schema.
---@param schema lshape.schema
---@param prefix? string stands in front of the names of refs
---@return string
function M.type_of(schema, prefix)
  return type_of(schema, start(prefix))
end

--- A class with the fields of a shape.
---@param name string
---@param shape lshape.schema of kind shape
---@param prefix? string stands in front of the names of refs
---@return string
function M.class_for(name, shape, prefix)
  if type(name) ~= "string" then
    place.raise("lshape.luacats.class_for: the name must be a string, got " .. type(name))
  end
  local lines, at = { "---@class " .. class_name(name) }, start(prefix)
  for _, field in ipairs(reflect.fields(shape)) do
    local doc = field.doc and " @" .. field.doc:gsub("%s*[\r\n]%s*", " ") or ""
    local mark = field.optional and "?" or ""
    local text = type_of(field.type, at)
    lines[#lines + 1] = ("---@field %s%s %s%s"):format(field_name(field.name), mark, text, doc)
  end
  return table.concat(lines, "\n") .. "\n"
end

--- A meta file with a class for each shape; other schemas are passed over.
---@param shapes? table<string, lshape.schema>
---@param prefix? string in front of the name of each class
---@return string
function M.gen(shapes, prefix)
  if shapes ~= nil and type(shapes) ~= "table" then
    place.raise("lshape.luacats.gen: shapes must be a table, got " .. type(shapes))
  end
  local blocks = { "---@meta\n" }
  for name, schema in violation.sorted(shapes or {}) do
    if type(schema) == "table" and rawget(schema, "kind") == "shape" then
      blocks[#blocks + 1] = M.class_for((prefix or "") .. pascal(name), schema, prefix)
    end
  end
  return table.concat(blocks, "\n")
end

return M
