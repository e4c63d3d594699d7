--- lshape.kinds: what each kind of schema asks of a value.
--
-- handlers[kind](value, schema, walk, depth) answers nil when the value passes,
-- else why it does not and, when it failed further in, the path from there.
-- visit does that for a schema of any kind. A walk is { exact, registry?,
-- default_registry }; default_registry() answers what refs are looked up in when
-- there is no registry. One that is exact takes fields in the order of their
-- names and stops at the first failure; a reason with halts ends the whole walk
-- and is nothing about the value: too deep, or { halts = true, broken = text }.
--
-- One that is not exact wants to know only whether. It takes fields in any order,
-- says UNSAID, and looks at the other fields of a table that has failed: whoever
-- meets a broken schema raises, whatever the order. Why, an exact walk says.
--
-- Example:
--
--    local why, at = kinds.visit({ 1, "2" }, T.array_of(T.number), { exact = true }, 1)
--    print(at, why) --> [2]  expected number, got string

local node = require("lshape.node")
local sound = require("lshape.sound")
local violation = require("lshape.violation")

local next, rawget, type = next, rawget, type -- read at every node

local DEPTH = node.depth
local UNSAID = true

---@alias lshape.visit fun(value: any, schema: lshape.schema, walk: table, depth: integer): any

---@type table<string, lshape.visit>
local handlers = {}

local M = { handlers = handlers, depth = DEPTH }

-- Wrappers and scalars, which most nodes are, are looked at here when only
-- whether is asked: a call each is what a walk costs.
local function quickly(value, schema, walk, depth)
  local kind = schema.kind
  while kind == "described" or kind == "optional" do
    if depth > DEPTH then
      return violation.too_deep
    elseif value == nil and kind == "optional" then
      return nil
    end
    schema, depth = schema.inner, depth + 1
    kind = schema.kind
  end
  if depth > DEPTH then
    return violation.too_deep
  elseif kind == "prim" then
    return type(value) ~= schema.prim and UNSAID or nil
  elseif kind == "integer" and type(value) == "number" and value % 1 == 0 then
    return nil
  end
  return handlers[kind](value, schema, walk, depth)
end

local function visit(value, schema, walk, depth)
  if not walk.exact then
    return quickly(value, schema, walk, depth)
  elseif depth > DEPTH then
    return violation.too_deep
  end
  local broken = sound.fault(schema)
  if broken then
    return { halts = true, broken = broken }
  end
  return handlers[schema.kind](value, schema, walk, depth)
end

local function unlike(walk, what, value)
  return walk.exact and violation.unlike(what, value) or UNSAID
end

function handlers.any() end

function handlers.prim(value, schema, walk)
  if type(value) ~= schema.prim then
    return unlike(walk, schema.prim, value)
  end
end

function handlers.integer(value, _, walk)
  if type(value) ~= "number" then
    return unlike(walk, "integer", value)
  end
  if value % 1 ~= 0 then
    return walk.exact and "expected integer, got " .. tostring(value) or UNSAID
  end
end

function handlers.optional(value, schema, walk, depth)
  if value ~= nil then
    return visit(value, schema.inner, walk, depth + 1)
  end
end

function handlers.described(value, schema, walk, depth)
  return visit(value, schema.inner, walk, depth + 1)
end

function handlers.bounded(value, schema, walk, depth)
  local why, at = visit(value, schema.inner, walk, depth + 1)
  if why then
    return why, at
  end
  if value ~= nil then
    return violation.of_bounds(value, schema)
  end
end

function handlers.array_of(value, schema, walk, depth)
  if type(value) ~= "table" then
    return unlike(walk, "table (array)", value)
  end
  local elem = schema.elem
  for i = 1, #value do
    local why, at = visit(value[i], elem, walk, depth + 1)
    if why then
      return why, violation.index(i, at)
    end
  end
end

function handlers.tuple(value, schema, walk, depth)
  if type(value) ~= "table" then
    return unlike(walk, "table (tuple)", value)
  end
  local items = schema.items
  for i = 1, #items do
    if value[i] == nil then
      local missing = "missing tuple element (expected %d elements)"
      return missing:format(#items), violation.index(i)
    end
    local why, at = visit(value[i], items[i], walk, depth + 1)
    if why then
      return why, violation.index(i, at)
    end
  end
  if #value > #items then
    return ("tuple has more than %d elements"):format(#items), violation.index(#items + 1)
  end
end

-- The fields in the order of a walk: sorted names when it is exact.
local function each_field(fields, walk)
  if not walk.exact then
    return next, fields
  end
  return violation.sorted(fields)
end

-- Whether a walk ends at this reason, or goes on to the next field.
local function ends(why, walk)
  return walk.exact or why == violation.too_deep
end

local function check_extra(value, fields, walk)
  for key in each_field(value, walk) do
    if fields[key] == nil then
      return "unexpected field", violation.key(key)
    end
  end
end

function handlers.shape(value, schema, walk, depth)
  if type(value) ~= "table" then
    return unlike(walk, "table", value)
  end
  local fields, look, failed = schema.fields, walk.exact and visit or quickly, nil
  for name, field in each_field(fields, walk) do
    local why, at = look(value[name], field, walk, depth + 1)
    if why and ends(why, walk) then
      return why, violation.field(name, at)
    end
    failed = failed or why
  end
  if not failed and not schema.open then
    return check_extra(value, fields, walk)
  end
  return failed
end

function handlers.map_of(value, schema, walk, depth)
  if type(value) ~= "table" then
    return unlike(walk, "table (map)", value)
  end
  local look, failed = walk.exact and visit or quickly, nil
  for key, element in each_field(value, walk) do
    local why, at = look(key, schema.key, walk, depth + 1)
    if why and ends(why, walk) then
      return why, violation.map_key(key, at)
    end
    failed = failed or why
    why, at = look(element, schema.val, walk, depth + 1)
    if why and ends(why, walk) then
      return why, violation.index(key, at)
    end
    failed = failed or why
  end
  return failed
end

function handlers.one_of(value, schema, walk)
  local values = schema.values
  for i = 1, #values do
    if values[i] == value then
      return nil
    end
  end
  return walk.exact and violation.not_among(values, value) or UNSAID
end

function handlers.any_of(value, schema, walk, depth)
  local variants, failed = schema.variants, walk.exact and {}
  local look = walk.exact and visit or quickly
  for i = 1, #variants do
    local why, at = look(value, variants[i], walk, depth + 1)
    if not why or type(why) == "table" and why.halts then
      return why, at
    end
    if failed then
      failed[i] = { why = why, at = at }
    end
  end
  return failed or UNSAID
end

function handlers.discriminated(value, schema, walk, depth)
  if type(value) ~= "table" then
    return unlike(walk, "table", value)
  end
  local tag = value[schema.tag]
  if tag == nil then
    return ("missing discriminant field '%s'"):format(schema.tag)
  end
  local variant = schema.variants[tag]
  if not variant then
    return walk.exact and violation.no_variant(schema, tag) or UNSAID
  end
  return visit(value, variant, walk, depth + 1)
end

function handlers.pattern(value, schema, walk)
  if type(value) ~= "string" then
    return unlike(walk, "string (pattern)", value)
  end
  if not value:find(schema.pattern) then
    return walk.exact and violation.no_match(schema.pattern, value) or UNSAID
  end
end

function handlers.ref(value, schema, walk, depth)
  local target = rawget(walk.registry or walk.default_registry(), schema.name)
  if target == nil then
    return ("unresolved ref '%s'"):format(schema.name)
  end
  return visit(value, target, walk, depth + 1)
end

M.visit = visit

return M
