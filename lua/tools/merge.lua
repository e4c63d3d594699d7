--- tools.merge: one set of tools out of several.
--
-- A name that stands in two of them is refused: which of the two a model calls
-- would depend on the order of a line. Entries are taken as they are.
--
-- Example:
--
--    local set = tools.merge(tools.sh{}, { now = { handler = std.time.now } })

--- Answers the tools of all sets.
---@param ... table<string, tool>
---@return table<string, tool>
return function(...)
  local merged, from = {}, {}
  local function refuse(text, ...)
    error("tools.merge: " .. text:format(...), 3)
  end
  for i = 1, select("#", ...) do
    local set = select(i, ...)
    if type(set) ~= "table" then
      refuse("argument %d: got %s, want a table of tools", i, type(set))
    end
    for name, entry in pairs(set) do
      if type(name) ~= "string" then
        refuse("argument %d: got the key %s, want the name of a tool", i, tostring(name))
      end
      if from[name] then
        refuse("tool %q stands in arguments %d and %d, want it in one", name, from[name], i)
      end
      merged[name], from[name] = entry, i
    end
  end
  return merged
end
