--- tools.merge: one set of tools out of several.
--
-- A name that stands in two of them is refused: which of the two a model calls
-- would depend on the order of a line. Entries are taken as they are.
--
-- Example:
--
--    local set = tools.merge(tools.sh{}, { now = { handler = std.time.now } })

local T = require("lshape.t")
local options = require("lshape.options")

local M = { shapes = {} }

M.api = {
  doc = "Makes one set of several; a name that stands in two is refused.",
  args = { { T.table, "sets of tools", name = "...", optional = true } },
  returns = "table<string, knl.tool_entry>",
}

local function refuse(text, ...)
  options.fail("tools.merge", text, ...)
end

--- Answers the tools of all sets.
---@param ... table<string, tool>
---@return table<string, tool>
function M.new(...)
  local merged, from = {}, {}
  for i = 1, select("#", ...) do
    local set = (select(i, ...))
    if type(set) ~= "table" then
      refuse("argument %d must be a table of tools, got %s", i, type(set))
    end
    for name, entry in pairs(set) do
      if type(name) ~= "string" then
        refuse("argument %d must have the names of tools as keys, got %s", i, tostring(name))
      end
      if from[name] then
        refuse("tool %q stands in arguments %d and %d, want it in one", name, from[name], i)
      end
      merged[name], from[name] = entry, i
    end
  end
  return merged
end

return M
