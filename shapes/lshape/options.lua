--- lshape.options: the check of an options table.
--
--    check(where, opts, SHAPE, extra?)  answers opts, or raises what is wrong
--    fail(where, text, ...)             raises what a shape cannot say
--    callable                           a schema: a function or what can be called
--    is_callable(v)
--
-- SHAPE is the closed shape that a module publishes: names, types, bounds and
-- what is required are declared once. Both raise at the line that called the
-- module, in dev mode and without it, so neither may be tail-called from the
-- module's function. A table with an __index is refused: it would lend what was not
-- checked.
-- No number may be NaN or infinite. Defaults are the module's.
--
--    policy.window: unknown option 'tial' (did you mean 'tail'?)
--    policy.window fit: unknown option 'prot' (did you mean 'port'?)
--    policy.window: fit.reserve must be a whole number >= 0, got 1.5
--    policy.window: tail is required — beats to keep
--
-- Example:
--
--    function M.new(opts)
--      options.check("policy.window", opts, M.shapes.window_opts, {
--        hints = { session = "the session is the argument of the filter" },
--        opts = "{ tail?, fit? }",
--      })
--    end

local fault = require("lshape.fault")
local node = require("lshape.node")
local place = require("lshape.place")

local M = { callable = fault.callable, is_callable = fault.is_callable }

---@class lshape.options.extra
---@field hints? table<string, string> what to say of an option that is known to be wrong
---@field opts? string how the table looks, for who gives no table

--- Raises text as the mistake of whoever called the asking module.
---@param where string the function, as the script calls it
---@param text string
---@param ... any for string.format
function M.fail(where, text, ...)
  if select("#", ...) > 0 then
    text = text:format(...)
  end
  place.raise_outside(where .. ": " .. text)
end

--- Answers opts when it is what shape says, else raises at who called.
---@generic O
---@param where string the function, as the script calls it
---@param opts O
---@param shape lshape.schema a closed shape
---@param extra? lshape.options.extra
---@return O opts
function M.check(where, opts, shape, extra)
  if type(opts) ~= "table" then
    local form = extra and extra.opts and " " .. extra.opts or ""
    M.fail(where, "opts must be a table%s, got %s", form, type(opts))
  end
  local meta = getmetatable(opts)
  if type(meta) == "table" and rawget(meta, "__index") ~= nil then
    M.fail(where, "opts must be a plain table, got one with an __index")
  end
  local bare = node.bare(shape)
  local found = fault.in_fields(opts, bare, "", extra and extra.hints)
  if found then
    place.raise_outside(where .. found)
  end
  return opts
end

return M
