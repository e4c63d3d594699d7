--- spec.choice: which of the described cases are run, and in which order.
--
-- of(cases, choice) answers the chosen ones. A tag stands in a call of tags, or
-- in a name as #tag. A text chooses the cases whose full name holds it as it
-- stands, or fits it as a Lua pattern. shuffle is a seed: the same one gives the
-- same order on every machine. Nothing here runs a case.
--
-- Example:
--
--    local chosen = require("spec.choice").of(cases, { tags = { "slow" } })

local diff = require("spec.diff")
local options = require("lshape.options")
local shapes = require("spec.shapes")

local M = {}

--- The tags of a case: its own and those of the blocks around it, sorted.
---@param case table
---@return string[]
function M.tags_of(case)
  local set, list = {}, {}
  for tag in case.name:gmatch("#([%w_-]+)") do
    set[tag] = true
  end
  local of = case.block
  while of do
    for tag in pairs(of.tags) do
      set[tag] = true
    end
    of = of.parent
  end
  for tag in pairs(set) do
    list[#list + 1] = tag
  end
  table.sort(list)
  return list
end

local function any(list, of)
  for _, v in ipairs(list) do
    for _, w in ipairs(of) do
      if v == w then
        return true
      end
    end
  end
  return false
end

local function chosen(case, by)
  if by.text and not diff.fits(case.name, by.text) then
    return false
  end
  local tags = M.tags_of(case)
  return (not by.tags or any(by.tags, tags)) and not any(by.skip_tags or {}, tags)
end

-- Numbers below a bound, the same for a seed everywhere (a Lehmer generator).
local function numbers(seed)
  local state = seed % 2147483646 + 1
  return function(bound)
    state = state * 16807 % 2147483647
    return state % bound
  end
end

local function shuffle(list, seed)
  local below = numbers(seed)
  for i = #list, 2, -1 do
    local j = below(i) + 1
    list[i], list[j] = list[j], list[i]
  end
end

--- The chosen cases, in the order in which they are to run.
---@param cases table[]
---@param choice? string|spec.choice a string is the text
---@return table[]
function M.of(cases, choice)
  local by = type(choice) == "string" and { text = choice } or choice or {}
  options.check("spec.plan", by, shapes.choice)
  local list = {}
  for _, case in ipairs(cases) do
    if chosen(case, by) then
      list[#list + 1] = case
    end
  end
  if by.shuffle then
    shuffle(list, by.shuffle)
  end
  return list
end

return M
