--- lshape.words: how a value and what is wanted of it are called.
--
--    noun(schema)          a whole number >= 1
--    got(value, schema)    0, "x", number
--    nearest(key, fields)  did you mean 'tail'?
--
-- These are the words of lshape.options, for who writes a script. A value is
-- shown where a scalar is wanted, else its type. Nothing here judges.
--
-- Example:
--
--    words.noun(T.integer:min(1):is_optional()) --> a whole number >= 1

local node = require("lshape.node")
local violation = require("lshape.violation")

local M = {}

local literal = violation.literal

local function ranged(what, around)
  local min, max = around.min, around.max
  if min and max then
    return ("%s from %s to %s"):format(what, tostring(min), tostring(max))
  end
  if min or max then
    return ("%s %s %s"):format(what, min and ">=" or "<=", tostring(min or max))
  end
  return what
end

local function sized(what, unit, around)
  local min, max = around.min_len, around.max_len
  if min and max then
    return ("a %s of %d to %d %s"):format(what, min, max, unit)
  end
  if max then
    return ("a %s of at most %d %s"):format(what, max, unit)
  end
  if min and min > 1 then
    return ("a %s of %d %s or more"):format(what, min, unit)
  end
  return (min == 1 and "a non-empty " or "a ") .. what
end

local prims = {
  string = function(around) return sized("string", "bytes", around) end,
  number = function(around) return ranged("a number", around) end,
  table = function(around) return sized("table", "entries", around) end,
  boolean = function() return "true or false" end,
}

local nouns = {}

function nouns.any()
  return "anything"
end

function nouns.prim(schema, around)
  local prim = prims[schema.prim]
  return prim and prim(around) or "a " .. schema.prim
end

function nouns.integer(_, around)
  return ranged("a whole number", around)
end

function nouns.array_of(_, around)
  return sized("list", "entries", around)
end

function nouns.tuple(schema)
  return ("a list of %d"):format(#schema.items)
end

function nouns.one_of(schema)
  local texts = {}
  for i, v in ipairs(schema.values) do
    texts[i] = literal(v)
  end
  return (#texts > 1 and "one of " or "") .. table.concat(texts, ", ")
end

function nouns.any_of(schema)
  if schema.callable then
    return "a function"
  end
  local texts, seen = {}, {}
  for _, variant in ipairs(schema.variants) do
    local text = M.noun(variant)
    if not seen[text] then
      texts[#texts + 1] = text
      seen[text] = true
    end
  end
  return table.concat(texts, " or ")
end

function nouns.pattern(schema)
  return "a string that matches " .. literal(schema.pattern)
end

--- What a schema wants, with its article.
---@param schema lshape.schema
---@return string
function M.noun(schema)
  local bare, around = node.bare(schema)
  local noun = nouns[bare.kind]
  return noun and noun(bare, around) or "a table"
end

-- Whether a value is shown rather than its type.
local function shown(value, schema)
  if value == nil or type(value) == "boolean" then
    return true
  end
  local bare = node.bare(schema)
  if bare.kind == "prim" then
    return bare.prim == "number" or bare.prim == "boolean" or bare.prim == type(value)
  end
  return bare.kind == "integer" or bare.kind == "one_of" or bare.kind == "pattern"
end

--- What was given instead.
---@param value any
---@param schema lshape.schema what was wanted
---@return string
function M.got(value, schema)
  if not shown(value, schema) then
    local empty = type(value) == "table" and next(value) == nil
    return empty and "an empty table" or type(value)
  end
  return value == nil and "nil" or literal(value)
end

-- Edits between a and b; two swapped letters are one edit.
local function distance(a, b)
  local before, prev = {}, {}
  for j = 0, #b do
    prev[j] = j
  end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = math.min(prev[j] + 1, row[j - 1] + 1, prev[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i - 1) == b:byte(j) and a:byte(i) == b:byte(j - 1) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, prev = prev, row
  end
  return prev[#b]
end

-- A name this long is not looked for among the known ones.
local LONGEST = 40

--- The known name that is nearest to a key, or all of them.
---@param key any
---@param known table<string, any>
---@return string
function M.nearest(key, known)
  local names, best = {}, nil
  local least = type(key) == "string" and #key <= LONGEST and math.floor(#key / 2) + 1 or 0
  for name in violation.sorted(known) do
    names[#names + 1] = name
    local d = least > 0 and distance(key, name) or least
    if d < least then
      best, least = name, d
    end
  end
  if best then
    return ("did you mean '%s'?"):format(best)
  end
  return #names > 0 and "known: " .. table.concat(names, ", ") or "there are none"
end

--- A key as an error shows it.
---@param key any
---@return string
function M.key(key)
  if type(key) ~= "string" then
    return violation.index(key)
  end
  return ("'%s'"):format(violation.escaped(violation.shortened(key)))
end

return M
