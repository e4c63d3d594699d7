--- policy.require_args: a call without its required arguments does not run.
--
-- Stands around the handlers of tools whose input_schema says what is required.
-- When one of those arguments is missing the model reads, in place of the
-- handler's result,
--
--    { ok = false, reason = "argument_missing", missing, error }
--
-- A tool that requires nothing is handed back as it is. It is the outermost of
-- the wrappers: what stands inside it may count on the arguments. It looks at
-- nothing but presence; strict = true in a tool's entry validates the rest.
--
-- Example:
--
--    tools = policy.require_args()(policy.result_cap{ room = room }(tools))

local options = require("lshape.options")
local shapes = require("policy.shapes")
local T = require("lshape").t
local toolset = require("policy.toolset")

local PLACE = "policy.require_args"
local WANT = "must be a list of names"

local M = {}

M.shapes = {
  require_args_opts = T.shape({}, { open = false }),
}

M.api = {
  doc = "Refuses calls whose required arguments are missing before the handler.",
  args = { { M.shapes.require_args_opts, "nothing so far", name = "opts", optional = true } },
  returns = T.fn,
  members = {
    bind = {
      doc = "Answers the tools with their required arguments asked for.",
      args = { { T.table, "name to entry", name = "tools" } },
      returns = T.table,
    },
  },
}

-- A copy of what the tool's schema requires.
local function required(name, entry)
  local schema = entry.input_schema
  local list = type(schema) == "table" and schema.required or nil
  local names = {}
  if list ~= nil and type(list) ~= "table" then
    options.fail(PLACE, "tool %q: input_schema.required %s, got %s", name, WANT, type(list))
  end
  local n = 0
  for i, word in pairs(list or {}) do
    n = n + 1
    if type(i) ~= "number" or type(word) ~= "string" then
      options.fail(PLACE, "tool %q: input_schema.required %s, got %s at [%s]", name, WANT,
        type(word), tostring(i))
    end
    names[i] = word
  end
  for i = 1, n do
    if names[i] == nil then
      options.fail(PLACE, "tool %q: input_schema.required %s, got a hole at [%d]", name, WANT, i)
    end
  end
  return names
end

local function missing_from(args, names)
  local missing = {}
  for _, name in ipairs(names) do
    if type(args) ~= "table" or args[name] == nil then
      missing[#missing + 1] = name
    end
  end
  return missing
end

local function guarded(name, entry)
  local names = required(name, entry)
  if #names == 0 then
    return nil
  end
  return function(args, ctx)
    local missing = missing_from(args, names)
    if #missing == 0 then
      return entry.handler(args, ctx)
    end
    local said = ("%s needs %s, missing: %s"):format(name, table.concat(names, ", "),
      table.concat(missing, ", "))
    return { ok = false, reason = "argument_missing", missing = missing, error = said }
  end
end

--- Makes the function that guards tools.
---@param opts? {}
---@return fun(tools: table<string, tool>): table<string, tool>
function M.new(opts)
  shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.require_args_opts, {
    hints = shapes.hints("require_args looks at a call, not at a session"),
  })
  return function(tools)
    return toolset.wrap(PLACE, tools, function(entry, name)
      return guarded(name, entry)
    end)
  end
end

return M
