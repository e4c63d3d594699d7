--- lshape.gate: the check of a module's public functions in dev mode.
--
-- gate(M, name) asks once whether this is dev mode. If so it puts in the place
-- of each function that M.shapes.api declares one that holds the arguments
-- against their schemas and then calls it; a table of functions that declares
-- its members is treated alike. Otherwise M is left as it is, and costs nothing.
--
-- Two kinds of arguments are left to the function, which answers for them in
-- both modes and the same words: nil, and options, which are what a closed shape
-- is for (lshape.options). An argument named "..." stands for all that follow.
--
--    shape violation at $: expected number, got string (ctx: m.f arg 1 (a factor))
--
-- Example:
--
--    return gate(M, "policy")

local check = require("lshape.check")
local node = require("lshape.node")
local place = require("lshape.place")
local violation = require("lshape.violation")

-- Raises unless a value fits, at the line that called the function.
local function hold(value, arg, i, where)
  local ok, why = check.check(value, arg[1])
  if not ok then
    local hint = ("%s arg %d (%s)"):format(where, i, arg[2] or arg.name or "?")
    place.raise(violation.with_hint(why, hint))
  end
end

local function is_options(schema)
  local bare = node.bare(schema)
  return bare.kind == "shape" and not bare.open
end

-- The arguments to hold by position, and the one that stands for the rest.
local function held_of(args)
  local held, rest = {}, nil
  for i, arg in ipairs(args) do
    if arg.name == "..." then
      rest = arg
    elseif not is_options(arg[1]) then
      held[i] = arg
    end
  end
  return held, rest
end

local function gated(fn, entry, where)
  local held, rest = held_of(entry.args)
  local declared = #entry.args
  return function(...)
    for i = 1, select("#", ...) do
      local value = (select(i, ...))
      local arg = held[i] or i >= declared and rest or nil
      if arg and value ~= nil then
        hold(value, arg, i, where)
      end
    end
    return fn(...)
  end
end

local function wrap(t, entries, prefix)
  for name, entry in pairs(entries) do
    local export, where = t[name], prefix .. "." .. name
    if type(export) == "function" and entry.args then
      t[name] = gated(export, entry, where)
    elseif type(export) == "table" and entry.members then
      wrap(export, entry.members, where)
    end
  end
end

--- Wraps the functions of a module that declares them, in dev mode.
---@generic M: table
---@param module M with shapes.api
---@param name string as scripts write it
---@return M module
return function(module, name)
  if check.is_dev_mode() then
    wrap(module, module.shapes.api, name)
  end
  return module
end
