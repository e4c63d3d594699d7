--- lshape.t: constructors of schemas.
--
--    T.string T.number T.boolean T.table T.fn     values of that Lua type
--    T.integer                                    a whole number
--    T.any                                        anything, nil too
--    T.shape(fields, { open = false }?)           a table with these fields
--    T.partial(fields, opts?)                     the same, every field optional
--    T.array_of(elem)  T.tuple(items)  T.map_of(key, val)
--    T.one_of(values)  T.literal(v)               one of some scalars
--    T.any_of(variants)                           the first schema that fits
--    T.discriminated(tag, variants)               the shape that a field names
--    T.pattern(pat)                               a string that a Lua pattern finds
--    T.ref(name)                                  a schema of a registry, by name
--
-- A schema is plain data and is never changed; lshape.node has its methods:
-- is_optional, describe, min, max, min_len, max_len. A bound is set once, for it
-- stands in a field of its method's name, and T.number:min(1):min(2) calls the
-- number 1; write T.number:min(2). A list may not hold
-- optional elements, however they are wrapped in descriptions and bounds: a list
-- ends at its first nil. Schemas that were written by hand or reloaded pass none
-- of these checks.
--
-- Example:
--
--    local Opts = T.shape({
--      max = T.integer:min(1):describe("how often at most"),
--      kinds = T.array_of(T.string):is_optional(),
--    }, { open = false })

local node = require("lshape.node")

local refuse, is_schema = node.refuse, node.is_schema

local M = {}

local function copied(t)
  local copy = {}
  for k, v in next, t do
    copy[k] = v
  end
  return copy
end

-- Whether the keys of t are 1 to #t.
local function is_dense(t)
  local n = 0
  for _ in next, t do
    n = n + 1
  end
  for i = 1, n do
    if rawget(t, i) == nil then
      return false
    end
  end
  return true
end

-- Whether a list with these elements would end at a nil.
local function admits_nil(schema)
  local _, around = node.bare(schema)
  return around.optional
end

-- Values -------------------------------------------------------------------

M.string = node.new({ kind = "prim", prim = "string" })
M.number = node.new({ kind = "prim", prim = "number" })
M.boolean = node.new({ kind = "prim", prim = "boolean" })
M.table = node.new({ kind = "prim", prim = "table" })
M.fn = node.new({ kind = "prim", prim = "function" })
M.any = node.new({ kind = "any" })
M.integer = node.new({ kind = "integer" })

local literal_types = { string = true, number = true, boolean = true }

--- One of some strings, numbers and booleans.
---@param values (string|number|boolean)[]
---@return lshape.schema
function M.one_of(values)
  if type(values) ~= "table" then
    refuse("one_of expects a values table as argument, got %s", type(values))
  end
  if next(values) == nil then
    refuse("one_of expects at least one value")
  end
  if not is_dense(values) then
    refuse("one_of expects a 1-based dense array of values")
  end
  local seen = {}
  for i, v in ipairs(values) do
    if not literal_types[type(v)] then
      refuse("one_of values must be string/number/boolean, got %s at index %d", type(v), i)
    end
    local id = type(v) .. tostring(v)
    if seen[id] then
      local text = type(v) == "string" and ("%q"):format(v) or tostring(v)
      refuse("one_of has duplicate value %s at index %d", text, i)
    end
    seen[id] = true
  end
  return node.new({ kind = "one_of", values = copied(values) })
end

--- The one value v.
---@param v string|number|boolean
---@return lshape.schema
function M.literal(v)
  if not literal_types[type(v)] then
    refuse("literal expects string/number/boolean, got %s", type(v))
  end
  return node.new({ kind = "one_of", values = { v } })
end

--- A string in which the Lua pattern pat is found; ^ and $ anchor it.
---@param pat string
---@return lshape.schema
function M.pattern(pat)
  if type(pat) ~= "string" then
    refuse("pattern expects string, got %s", type(pat))
  end
  if pat == "" then
    refuse("pattern must not be empty (it is found in every string; use T.string)")
  end
  if not pcall(string.find, "", pat) then
    refuse("pattern %q is malformed", pat)
  end
  return node.new({ kind = "pattern", pattern = pat })
end

--- The schema that a registry holds under name when a value is checked.
---@param name string
---@return lshape.schema
function M.ref(name)
  if type(name) ~= "string" or name == "" then
    refuse("ref expects non-empty string name, got %s", name == "" and '""' or type(name))
  end
  return node.new({ kind = "ref", name = name })
end

-- Tables -------------------------------------------------------------------

local function check_fields(word, fields, opts)
  if type(fields) ~= "table" then
    refuse("%s expects fields table as first argument, got %s", word, type(fields))
  end
  if opts ~= nil and type(opts) ~= "table" then
    refuse("%s expects opts table as second argument, got %s", word, type(opts))
  end
  for name, field in next, fields do
    if type(name) ~= "string" then
      refuse("%s field name must be string, got %s", word, type(name))
    end
    if not is_schema(field) then
      refuse("%s field '%s' must be a schema (table with kind), got %s", word, name, type(field))
    end
  end
end

local function shape_of(fields, opts)
  return node.new({ kind = "shape", fields = fields, open = not (opts and opts.open == false) })
end

--- A table with fields; open to others unless opts.open is false.
---@param fields table<string, lshape.schema>
---@param opts? { open?: boolean }
---@return lshape.schema
function M.shape(fields, opts)
  check_fields("shape", fields, opts)
  return shape_of(copied(fields), opts)
end

--- A shape whose fields may all be left out.
---@param fields table<string, lshape.schema>
---@param opts? { open?: boolean }
---@return lshape.schema
function M.partial(fields, opts)
  check_fields("partial", fields, opts)
  local optional = copied(fields)
  for name, field in next, fields do
    if field.kind ~= "optional" then
      optional[name] = node.combinators.is_optional(field)
    end
  end
  return shape_of(optional, opts)
end

--- A list of elem.
---@param elem lshape.schema
---@return lshape.schema
function M.array_of(elem)
  if not is_schema(elem) then
    refuse("array_of expects a schema as argument, got %s", type(elem))
  end
  if admits_nil(elem) then
    refuse("array_of(optional(T)) is not allowed — a list ends at its first nil")
  end
  return node.new({ kind = "array_of", elem = elem })
end

--- A table whose keys are key and whose values are val.
---@param key lshape.schema
---@param val lshape.schema
---@return lshape.schema
function M.map_of(key, val)
  if not is_schema(key) then
    refuse("map_of expects a schema as key argument, got %s", type(key))
  end
  if not is_schema(val) then
    refuse("map_of expects a schema as val argument, got %s", type(val))
  end
  return node.new({ kind = "map_of", key = key, val = val })
end

-- Wants a dense list of schemas; most says what it is short of.
local function check_list(word, noun, list)
  if type(list) ~= "table" then
    refuse("%s expects %s table as argument, got %s", word, noun.a_list, type(list))
  end
  if not is_dense(list) then
    refuse("%s expects a 1-based dense array of %ss", word, noun.one)
  end
  if #list < noun.least then
    refuse("%s expects at least %s", word, noun.least_text)
  end
  for i, schema in ipairs(list) do
    if not is_schema(schema) then
      refuse("%s %s at index %d must be a schema, got %s", word, noun.one, i, type(schema))
    end
  end
end

local variant = { one = "variant", a_list = "a variants", least = 2, least_text = "two variants" }
local item = { one = "item", a_list = "an items", least = 1, least_text = "one item" }

--- The first of variants that fits.
---@param variants lshape.schema[]
---@return lshape.schema
function M.any_of(variants)
  check_list("any_of", variant, variants)
  return node.new({ kind = "any_of", variants = copied(variants) })
end

--- A list of exactly these items.
---@param items lshape.schema[]
---@return lshape.schema
function M.tuple(items)
  check_list("tuple", item, items)
  for i, schema in ipairs(items) do
    if admits_nil(schema) then
      refuse("tuple(optional(T)) at index %d is not allowed — a list ends at its first nil", i)
    end
  end
  return node.new({ kind = "tuple", items = copied(items) })
end

local function check_variant(tag, key, schema)
  if type(key) ~= "string" then
    refuse("discriminated variant key must be string, got %s", type(key))
  end
  if not is_schema(schema) or schema.kind ~= "shape" then
    refuse("discriminated variant '%s' must be a shape schema", key)
  end
  local fields = rawget(schema, "fields")
  if type(fields) ~= "table" or rawget(fields, tag) == nil then
    refuse("discriminated variant '%s' must declare the tag field '%s'", key, tag)
  end
end

--- The shape of variants that the field tag names.
---@param tag string
---@param variants table<string, lshape.schema> shapes that declare tag
---@return lshape.schema
function M.discriminated(tag, variants)
  if type(tag) ~= "string" or tag == "" then
    refuse("discriminated expects non-empty string tag, got %s", tag == "" and '""' or type(tag))
  end
  if type(variants) ~= "table" then
    refuse("discriminated expects variants table, got %s", type(variants))
  end
  if next(variants) == nil then
    refuse("discriminated expects at least one variant")
  end
  for key, schema in next, variants do
    check_variant(tag, key, schema)
  end
  return node.new({ kind = "discriminated", tag = tag, variants = copied(variants) })
end

M._internal = {
  schema_mt = node.schema_mt,
  combinators = node.combinators,
  is_schema = is_schema,
}

return M
