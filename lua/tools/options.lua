--- tools.options: the check of an options table.
--
-- check(place, options, known) raises at the line of whoever called the factory
-- when options holds an unknown key or a value of another type. It fills in no
-- defaults.
--
-- Example:
--
--    function M.new(options)
--      check("tools.sh", options, { timeout = "number", cwd = "string" })
--    end

-- Edits between a and b.
local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local above = row[j]
      row[j] = math.min(above + 1, row[j - 1] + 1, diagonal + cost)
      diagonal = above
    end
  end
  return row[#b]
end

-- The nearest of the names, or all of them.
local function suggest(word, names)
  table.sort(names)
  local best, least = nil, math.floor(#word / 2) + 1
  for _, name in ipairs(names) do
    local d = distance(word, name)
    if d < least then
      best, least = name, d
    end
  end
  return best and ("did you mean %q?"):format(best) or "known: " .. table.concat(names, ", ")
end

local function keys(t)
  local names = {}
  for name in pairs(t) do
    names[#names + 1] = name
  end
  return names
end

-- Raises at whoever called the factory that called check or words.
local function refuse(place, text, ...)
  error(place .. ": " .. text:format(...), 4)
end

local M = {}

--- Raises when options is not a table of known keys.
---@param place string the factory, as the script calls it
---@param options table
---@param known table<string, string> key to type
function M.check(place, options, known)
  if type(options) ~= "table" then
    refuse(place, "got %s, want a table of options", type(options))
  end
  for key, value in pairs(options) do
    local want, name = known[key], tostring(key)
    if not want then
      refuse(place, "unknown option %q (%s)", name, suggest(name, keys(known)))
    end
    if type(value) ~= want then
      refuse(place, "option %q: got %s, want a %s", name, type(value), want)
    end
  end
end

--- Raises when a list option holds anything but strings out of choices.
---@param place string
---@param key string
---@param list string[]
---@param choices? table<string, any> nil: any string
function M.words(place, key, list, choices)
  for k in pairs(list) do
    if type(k) ~= "number" then
      refuse(place, "option %q: got the key %q, want a list", key, tostring(k))
    end
  end
  if #list == 0 then
    refuse(place, "option %q: got an empty list, want a word or more", key)
  end
  for i, word in ipairs(list) do
    if type(word) ~= "string" or word == "" then
      refuse(place, "option %q: [%d]: got %s, want a string", key, i, type(word))
    end
    if choices and not choices[word] then
      refuse(place, "option %q: got %q (%s)", key, word, suggest(word, keys(choices)))
    end
  end
end

return M
