--- policy.toolset: tools with handlers that another handler stands around.
--
-- What a policy makes of a device's tools is a new map: each entry is copied
-- with every field it has (effects, timeout, strict …), only its handler is
-- another one. The map that was given, and its entries, stay as they are.
--
-- Example, as a policy uses it:
--
--    return toolset.wrap("policy.result_cap", tools, function(entry)
--      return function(args, ctx) return shorten(entry.handler(args, ctx)) end
--    end)

local options = require("lshape.options")

local M = {}

local function with_handler(entry, handler)
  local own = {}
  for key, value in pairs(entry) do
    own[key] = value
  end
  own.handler = handler
  return own
end

local function check(place, name, entry)
  if type(name) ~= "string" then
    options.fail(place, "tools must be a map from name to entry, got the key %s", tostring(name))
  end
  if type(entry) ~= "table" then
    options.fail(place, "tool %q must be a table with a handler, got %s", name, type(entry))
  end
  if not options.is_callable(entry.handler) then
    local got = type(entry.handler)
    options.fail(place, "tool %q has no handler, want a function, got %s", name, got)
  end
end

--- Answers tools with the handlers that around makes. An entry for which it
-- answers nil is handed on as it is.
---@param place string the policy, as the script calls it
---@param tools table<string, tool>
---@param around fun(entry: tool, name: string): function?
---@return table<string, tool>
function M.wrap(place, tools, around)
  if type(tools) ~= "table" then
    options.fail(place, "tools must be a map from name to entry, got %s", type(tools))
  end
  local wrapped = {}
  for name, entry in pairs(tools) do
    check(place, name, entry)
    local handler = around(entry, name)
    wrapped[name] = handler and with_handler(entry, handler) or entry
  end
  return wrapped
end

return M
