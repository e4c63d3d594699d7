--- lshape.fault: what is wrong with a value of an option.
--
-- find(value, schema, path) answers nil, or what an error says behind the name
-- of the function: ": tail must be a whole number >= 1, got 0". It refuses what
-- lshape.check refuses, and also NaN, infinity, and a list with holes or names.
-- Tables are read past their metatables. It raises nothing.
--
-- Example:
--
--    fault.find(0, T.integer:min(1), "tail")

local kinds = require("lshape.kinds")
local node = require("lshape.node")
local violation = require("lshape.violation")
local words = require("lshape.words")

local M = {}

--- A function or a value with __call, in a shape of options.
M.callable = node.new({
  kind = "any_of",
  callable = true,
  variants = {
    { kind = "prim", prim = "function" },
    { kind = "prim", prim = "table" },
    { kind = "prim", prim = "userdata" },
  },
})

--- Whether v can be called. A coroutine is made of nothing else, and the host
--- looks behind a metatable that it hides from scripts.
---@param v any
---@return boolean
function M.is_callable(v)
  return type(v) == "function" or (pcall(coroutine.create, v))
end

local function must(value, schema, path)
  return (": %s must be %s, got %s"):format(path, words.noun(schema), words.got(value, schema))
end

local function step(path, name)
  return path == "" and violation.field(name):sub(2) or path .. violation.key(name)
end

-- What the general check says, for kinds that have no words here.
local function general(value, schema, path)
  local why, at = kinds.visit(value, schema, { exact = true, registry = {} }, 1)
  if type(why) == "table" and why.halts then
    why = why.broken or "nested too deep"
  end
  if why then
    local reason = violation.compose(path, why, at):gsub("^shape violation at ", "")
    return ": " .. reason
  end
end

local finders = {}

function finders.any() end

function finders.prim(value, schema, path, whole)
  if type(value) ~= schema.prim then
    return must(value, whole, path)
  end
  if type(value) == "number" and (value ~= value or value == math.huge or value == -math.huge) then
    local noun = words.noun(whole):gsub("^a number", "a finite number")
    return (": %s must be %s, got %s"):format(path, noun, tostring(value))
  end
end

function finders.integer(value, _, path, whole)
  if type(value) ~= "number" or value % 1 ~= 0 then
    return must(value, whole, path)
  end
end

-- What keeps a table from being a list.
local function unlisted(t)
  local n = 0
  for key in next, t do
    if type(key) ~= "number" then
      return "a table with the key " .. violation.literal(key)
    end
    n = n + 1
  end
  for i = 1, n do
    if rawget(t, i) == nil then
      return ("a list with a hole at %d"):format(i)
    end
  end
end

function finders.array_of(value, schema, path, whole)
  if type(value) ~= "table" then
    return must(value, whole, path)
  end
  local odd = unlisted(value)
  if odd then
    return (": %s must be %s, got %s"):format(path, words.noun(whole), odd)
  end
  for i = 1, #value do
    local found = M.find(rawget(value, i), schema.elem, path .. violation.index(i))
    if found then
      return found
    end
  end
end

function finders.map_of(value, schema, path, whole)
  if type(value) ~= "table" then
    return must(value, whole, path)
  end
  for key, element in violation.sorted(value) do
    local found = M.find(key, schema.key, "the key of " .. step(path, key))
      or M.find(element, schema.val, step(path, key))
    if found then
      return found
    end
  end
end

local function unknown_key(t, shape, path, hints)
  for key in violation.sorted(t) do
    if type(key) ~= "string" or shape.fields[key] == nil then
      local hint = hints and hints[key] or words.nearest(key, shape.fields)
      local inside = path == "" and "" or " " .. path
      return ("%s: unknown option %s (%s)"):format(inside, words.key(key), hint)
    end
  end
end

--- What is wrong with the fields of a table.
---@param t table
---@param shape lshape.schema
---@param path string of the table; "" for the options themselves
---@param hints? table<string, string>
---@return string?
function M.in_fields(t, shape, path, hints)
  local found = not shape.open and unknown_key(t, shape, path, hints) or nil
  if found then
    return found
  end
  for name, schema in violation.sorted(shape.fields) do
    found = M.find(rawget(t, name), schema, step(path, name))
    if found then
      return found
    end
  end
end

function finders.shape(value, schema, path, whole)
  if type(value) ~= "table" then
    return must(value, whole, path)
  end
  return M.in_fields(value, schema, path)
end

local function as_declared(value, schema, path, whole)
  if kinds.visit(value, schema, {}, 1) then
    return must(value, whole, path)
  end
end

finders.one_of, finders.pattern = as_declared, as_declared

-- The type of the values that a schema is for, nil when there are several.
local function type_for(schema)
  local bare = node.bare(schema)
  if bare.kind == "prim" then
    return bare.prim
  end
  local of_kind = { integer = "number", pattern = "string", one_of = type((bare.values or {})[1]) }
  return of_kind[bare.kind] or bare.kind ~= "any_of" and "table" or nil
end

function finders.any_of(value, schema, path, whole)
  if schema.callable then
    return not M.is_callable(value) and must(value, whole, path) or nil
  end
  local found, candidates
  for _, variant in ipairs(schema.variants) do
    local why = M.find(value, variant, path)
    if not why then
      return nil
    end
    if type_for(variant) == type(value) then
      found, candidates = why, (candidates or 0) + 1
    end
  end
  return candidates == 1 and found or must(value, whole, path)
end

local function missing(around, path)
  local doc = around.doc and " — " .. around.doc or ""
  return not around.optional and (": %s is required%s"):format(path, doc) or nil
end

--- What is wrong with a value, nil when nothing is. What is not optional is
--- required, also where the schema is for anything.
---@param value any
---@param schema lshape.schema
---@param path string
---@return string?
function M.find(value, schema, path)
  local bare, around = node.bare(schema)
  if value == nil then
    return missing(around, path)
  end
  local finder = finders[bare.kind]
  local found = (finder or general)(value, bare, path, schema)
  if found or not finder then
    return found
  end
  if kinds.visit(value, schema, { registry = {} }, 1) then
    return must(value, schema, path)
  end
end

return M
