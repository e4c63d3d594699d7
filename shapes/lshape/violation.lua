--- lshape.violation: how a failed check is put into words.
--
-- A failure is told from the inside out: a schema says why a value does not fit
-- and each schema around it puts its step in front of the path. compose joins
-- them. Nothing here decides whether a value fits, but for bounds.
--
-- Example:
--
--    violation.compose("$", "unexpected field", violation.field("a"))
--    --> shape violation at $.a: unexpected field

local M = {}

--- What stands for a reason when a check was nested too deep: no variant of an
--- any_of may pass over what halts.
M.too_deep = { halts = true }

local SHOWN = 80 -- bytes of a string in a message

--- The beginning of a long text, cut between characters.
---@param text string
---@return string
function M.shortened(text)
  if #text <= SHOWN then
    return text
  end
  local n = SHOWN
  while n > 0 and text:byte(n + 1) >= 0x80 and text:byte(n + 1) < 0xC0 do
    n = n - 1
  end
  return text:sub(1, n) .. "…"
end

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

local function escape(c)
  return escapes[c] or ("\\%03d"):format(c:byte())
end

--- A text on one line.
---@param text string
---@return string
function M.escaped(text)
  return (text:gsub("%c", escape))
end

--- A text as Lua writes it, on one line.
---@param text string
---@return string
function M.quoted(text)
  return '"' .. text:gsub('[%c"\\]', escape) .. '"'
end

--- A scalar as it is written; of anything else its type.
---@param v any
---@return string
function M.literal(v)
  if type(v) == "string" then
    return M.quoted(M.shortened(v))
  end
  if type(v) == "number" or type(v) == "boolean" then
    return tostring(v)
  end
  return type(v)
end

local literal = M.literal

local ranks = { string = 1, number = 2, boolean = 3 }

local function before(a, b)
  local rank_a, rank_b = ranks[type(a)] or 4, ranks[type(b)] or 4
  if rank_a ~= rank_b then
    return rank_a < rank_b
  end
  if rank_a <= 2 then
    return a < b
  end
  return tostring(a) < tostring(b)
end

--- Walks a table in the order of its keys: strings, numbers, the others.
---@param t table
---@return fun(): any, any
function M.sorted(t)
  local keys, i = {}, 0
  for key in next, t do
    keys[#keys + 1] = key
  end
  table.sort(keys, before)
  return function()
    i = i + 1
    return keys[i], t[keys[i]]
  end
end

--- The path of a value from where the check began.
---@param at? string
---@return string
function M.path(at)
  return "$" .. (at or "")
end

local function text_of(key)
  return type(key) == "string" and M.escaped(M.shortened(key)) or literal(key)
end

--- The step to a field.
---@param name string
---@param at? string the path from there
---@return string
function M.field(name, at)
  return "." .. text_of(name) .. (at or "")
end

--- The step to an element of a list, or to a value of a map.
---@param key any
---@param at? string
---@return string
function M.index(key, at)
  return "[" .. text_of(key) .. "]" .. (at or "")
end

--- The step to a key of a map.
---@param key any
---@param at? string
---@return string
function M.map_key(key, at)
  return "[key=" .. text_of(key) .. "]" .. (at or "")
end

--- The step to a key that a closed shape does not know.
---@param key any
---@return string
function M.key(key)
  return type(key) == "string" and M.field(key) or M.index(key)
end

--- The words for a value of another type.
---@param what string
---@param value any
---@return string
function M.unlike(what, value)
  return "expected " .. what .. ", got " .. type(value)
end

--- The words for a value that no literal equals.
---@param values any[]
---@param value any
---@return string
function M.not_among(values, value)
  local texts = {}
  for i, v in ipairs(values) do
    texts[i] = literal(v)
  end
  local got = text_of(value)
  return ("expected one of [%s], got %s"):format(table.concat(texts, ", "), got)
end

--- The words for a tag that names no variant.
---@param schema lshape.schema of kind discriminated
---@param tag any
---@return string
function M.no_variant(schema, tag)
  local texts = {}
  for key in M.sorted(schema.variants) do
    texts[#texts + 1] = literal(key)
  end
  local known = table.concat(texts, ", ")
  return ("discriminant '%s' = %s not in [%s]"):format(schema.tag, literal(tag), known)
end

--- The words for a string in which a pattern is not found.
---@param pattern string
---@param value string
---@return string
function M.no_match(pattern, value)
  return ("string %s does not match pattern %s"):format(literal(value), literal(pattern))
end

local function of_range(value, min, max)
  if type(value) ~= "number" then
    return "min/max bound applies to number, got " .. type(value)
  end
  if min and not (value >= min) then
    return ("%s is below min %s"):format(tostring(value), tostring(min))
  end
  if max and not (value <= max) then
    return ("%s is above max %s"):format(tostring(value), tostring(max))
  end
end

local function of_length(value, min_len, max_len)
  if type(value) ~= "string" and type(value) ~= "table" then
    return "min_len/max_len bound applies to string or table, got " .. type(value)
  end
  local n = #value
  if min_len and n < min_len then
    return ("length %d is below min_len %d"):format(n, min_len)
  end
  if max_len and n > max_len then
    return ("length %d is above max_len %d"):format(n, max_len)
  end
end

--- Why a value is out of bounds, nil when it is not. NaN is out of any.
---@param value any
---@param schema lshape.schema of kind bounded
---@return string?
function M.of_bounds(value, schema)
  local min, max = rawget(schema, "min"), rawget(schema, "max")
  local why = (min or max) and of_range(value, min, max)
  if why then
    return why
  end
  local min_len, max_len = rawget(schema, "min_len"), rawget(schema, "max_len")
  return (min_len or max_len) and of_length(value, min_len, max_len) or nil
end

--- The whole reason: why is a text, or the failures of the variants of an any_of.
---@param root string the path at which the check began
---@param why string|{ why: any, at?: string }[]
---@param at? string the path from there
---@return string
function M.compose(root, why, at)
  local path = root .. (at or "")
  local head = "shape violation at " .. path .. ": "
  if type(why) == "string" then
    return head .. why
  end
  local lines = { head .. "no variant matched" }
  for i, variant in ipairs(why) do
    local reason = M.compose(path, variant.why, variant.at):gsub("\n", "\n  ")
    lines[i + 1] = ("  variant %d: "):format(i) .. reason
  end
  return table.concat(lines, "\n")
end

--- A reason with what the value was.
---@param why string
---@param hint? string
---@return string
function M.with_hint(why, hint)
  if hint == nil or hint == "" then
    return why
  end
  return ("%s (ctx: %s)"):format(why, tostring(hint))
end

return M
