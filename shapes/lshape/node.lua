--- lshape.node: what a schema is, and its methods.
--
--    s:is_optional()              nil passes too
--    s:describe(doc)              says what the value is for
--    s:min(n) s:max(n)            bounds of a number
--    s:min_len(n) s:max_len(n)    bounds of the length of a string or a list
--
-- A schema is a table with a field kind; everything it says stands in its raw
-- fields. A method answers a new table and changes none. Bounds that are chained
-- make one node; they stand in fields named as the methods, so read them raw:
-- T.number:max(3).min is the method, rawget of it is nil. For the same reason a
-- bound that is set hides its method: each is called once. Another bound of a
-- schema that has one is set on what describes it:
--
--    T.number:min(1):min(2)                -- calls the number 1: no function
--    T.number:min(1):describe("n"):min(2)  -- both bounds hold
--
-- Example:
--
--    local node = require("lshape.node")
--    local name = node.new({ kind = "prim", prim = "string" }):min_len(1)

local place = require("lshape.place")

---@class lshape.schema
---@field kind string
---@field is_optional fun(self: lshape.schema): lshape.schema
---@field describe fun(self: lshape.schema, doc: string): lshape.schema
---@field min fun(self: lshape.schema, n: number): lshape.schema
---@field max fun(self: lshape.schema, n: number): lshape.schema
---@field min_len fun(self: lshape.schema, n: integer): lshape.schema
---@field max_len fun(self: lshape.schema, n: integer): lshape.schema

local combinators = {}
local schema_mt = { __index = combinators }

local M = {
  combinators = combinators,
  schema_mt = schema_mt,
  depth = 256, -- schemas inside each other
}

--- Raises a mistake in the making of a schema, at the line that makes it.
---@param text string
---@param ... any for string.format
function M.refuse(text, ...)
  place.raise("lshape.t: " .. text:format(...))
end

--- Makes a schema of its plain data.
---@param data table
---@return lshape.schema
function M.new(data)
  return setmetatable(data, schema_mt)
end

--- Whether v is a schema: a table with a kind of its own.
---@param v any
---@return boolean
function M.is_schema(v)
  return type(v) == "table" and rawget(v, "kind") ~= nil
end

---@class lshape.wrapping what stands around a schema
---@field optional? boolean
---@field doc? string the outermost description
---@field min? number
---@field max? number
---@field min_len? integer
---@field max_len? integer

local function take_bounds(schema, around)
  for _, word in ipairs({ "min", "max", "min_len", "max_len" }) do
    around[word] = around[word] or rawget(schema, word)
  end
end

--- Raises when schemas are nested too deep.
---@param depth integer
---@param where string who found it
function M.check_depth(depth, where)
  if depth > M.depth then
    place.raise(("%s: recursion depth exceeded (> %d; cycle in schema?)"):format(where, M.depth))
  end
end

-- The schema inside one that wraps.
local function inner_of(schema)
  local inner = rawget(schema, "inner")
  if not M.is_schema(inner) then
    place.raise(("lshape: schema of kind '%s' has no inner schema"):format(schema.kind))
  end
  return inner
end

--- Takes schemas that wrap off a schema, as long as takes(schema) answers true.
---@param schema lshape.schema
---@param takes fun(schema: lshape.schema): boolean
---@return lshape.schema
function M.peeled(schema, takes)
  local depth = 1
  while takes(schema) do
    schema, depth = inner_of(schema), depth + 1
    M.check_depth(depth, "lshape")
  end
  return schema
end

--- A schema without what is around it, and what that is.
---@param schema lshape.schema
---@return lshape.schema bare, lshape.wrapping
function M.bare(schema)
  local around = {}
  return M.peeled(schema, function(wrap)
    if wrap.kind == "bounded" then
      take_bounds(wrap, around)
    elseif wrap.kind == "optional" then
      around.optional = true
    elseif wrap.kind == "described" then
      around.doc = around.doc or rawget(wrap, "doc")
    else
      return false
    end
    return true
  end), around
end

local function check_self(word, self)
  if not M.is_schema(self) then
    M.refuse("%s expects a schema before its colon, got %s", word, type(self))
  end
end

--- The same, and nil passes too.
---@return lshape.schema
function combinators:is_optional()
  check_self("is_optional", self)
  return M.new({ kind = "optional", inner = self })
end

--- The same, with a word on what the value is for.
---@param doc string
---@return lshape.schema
function combinators:describe(doc)
  check_self("describe", self)
  if type(doc) ~= "string" then
    M.refuse("describe expects string doc, got %s", type(doc))
  end
  return M.new({ kind = "described", inner = self, doc = doc })
end

local function check_order(low, high, bounds)
  local from, to = bounds[low], bounds[high]
  if from and to and from > to then
    M.refuse("%s (%s) must be <= %s (%s)", low, tostring(from), high, tostring(to))
  end
end

local function bounded(self, word, n)
  check_self(word, self)
  if type(n) ~= "number" or n ~= n then
    M.refuse("%s expects number, got %s", word, type(n) == "number" and "nan" or type(n))
  end
  local chained = self.kind == "bounded"
  local data = { kind = "bounded", inner = chained and self.inner or self }
  if chained then
    data.min, data.max = rawget(self, "min"), rawget(self, "max")
    data.min_len, data.max_len = rawget(self, "min_len"), rawget(self, "max_len")
  end
  data[word] = n
  check_order("min", "max", data)
  check_order("min_len", "max_len", data)
  return M.new(data)
end

local function bounded_length(self, word, n)
  if type(n) == "number" and not (n >= 0 and n % 1 == 0) then
    M.refuse("%s expects a non-negative integer, got %s", word, tostring(n))
  end
  return bounded(self, word, n)
end

--- A number of n or more.
---@param n number
---@return lshape.schema
function combinators:min(n)
  return bounded(self, "min", n)
end

--- A number of n or less.
---@param n number
---@return lshape.schema
function combinators:max(n)
  return bounded(self, "max", n)
end

--- A string of n bytes, or a list of n elements, or more.
---@param n integer
---@return lshape.schema
function combinators:min_len(n)
  return bounded_length(self, "min_len", n)
end

--- A string of n bytes, or a list of n elements, or less.
---@param n integer
---@return lshape.schema
function combinators:max_len(n)
  return bounded_length(self, "max_len", n)
end

return M
