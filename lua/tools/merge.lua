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
  for i = 1, select("#", ...) do
    local set = select(i, ...)
    if type(set) ~= "table" then
      error(("tools.merge: argument %d: got %s, want a table of tools"):format(i, type(set)), 2)
    end
    for name, entry in pairs(set) do
      if type(name) ~= "string" then
        error(("tools.merge: argument %d: got the key %s, want the name of a tool"):format(i, tostring(name)), 2)
      end
      if from[name] then
        error(("tools.merge: tool %q stands in arguments %d and %d, want it in one"):format(name, from[name], i), 2)
      end
      merged[name], from[name] = entry, i
    end
  end
  return merged
end
