--- policy.repeat_cap: the same call does not run over and over.
--
-- Stands around the handlers of a device's tools. The same call (tool and
-- arguments) that was made more than max times since the last success of a tool
-- named in resets is answered without running,
--
--    { ok = false, reason = "repeated", times, max, error }
--
-- It counts in the log, so a run that was killed and resumed goes on counting,
-- and looks back over the last within beats (50), which bounds what it costs.
-- Calls that never ran (their reply was cut, their beat ended, the process died)
-- do not count. A success is a result that the kernel recorded as ok and that
-- does not say ok = false itself.
--
-- It does not end the loop: policy.stagnation tells a loop that nothing moves.
--
-- Example:
--
--    local tools = policy.repeat_cap{ max = 2, resets = { "write", "sh" } }(session)(my_tools)

local canonical = require("policy.canonical")
local log = require("policy.log")
local shapes = require("policy.shapes")
local T = require("lshape").t
local toolset = require("policy.toolset")

local PLACE = "policy.repeat_cap"
local MAX = 2 -- times that a call may run
local WITHIN = 50 -- beats

local M = {}

M.shapes = {
  repeat_cap_opts = T.shape({
    max = T.integer:min(1):describe("times that the same call may run (2)"):is_optional(),
    resets = T.array_of(T.string:min_len(1))
      :describe("tools whose success begins the count anew"):is_optional(),
    within = T.integer:min(1):describe("beats to look back over (50)"):is_optional(),
  }, { open = false }),
}

M.api = {
  doc = "Answers calls that repeat too often without running them.",
  args = { { M.shapes.repeat_cap_opts, "how often", name = "opts", optional = true } },
  returns = T.fn,
  members = {
    bind = {
      doc = "Binds the cap to the session whose log it counts in; the answer takes tools.",
      args = { { shapes.session, "the session that the tools run in", name = "session" } },
      returns = T.fn,
    },
    wrap = {
      doc = "Answers the tools with their repetitions capped.",
      args = { { T.table, "name to entry", name = "tools" } },
      returns = T.table,
    },
  },
}

local function ran(result)
  return not (result.truncated or result.not_run or result.interrupted)
end

local function succeeded(result)
  local answer = result.result
  return result.ok == true and not (type(answer) == "table" and answer.ok == false)
end

-- Whether two maps of arguments differ in a plain value, which most do: seen
-- without rendering them.
local function plainly_differ(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return false
  end
  for key, value in pairs(a) do
    local kind = type(value)
    if (kind == "string" or kind == "number" or kind == "boolean") and b[key] ~= value then
      return true
    end
  end
  return false
end

-- A function that says whether another call's arguments are these.
local function same_as(args)
  local wanted
  return function(others)
    if plainly_differ(args, others) then
      return false
    end
    wanted = wanted or canonical.render(args)
    return canonical.render(others) == wanted
  end
end

-- Calls visit with the calls of a beat and what each answered when it last ran,
-- newest first, until it answers true.
local function each_call(record, visit)
  local results, seen = {}, {}
  for i = #record.events, 1, -1 do
    local event = record.events[i]
    local kind = event.kind
    local data = (kind == "tool_call" or kind == "tool_result") and log.data(event) or {}
    local id = data.call_id
    if type(id) == "string" and kind == "tool_result" then
      results[id] = data
    elseif type(id) == "string" and kind == "tool_call" and not seen[id] then
      seen[id] = true
      if visit(data, results[id] or {}) then
        return true
      end
    end
  end
end

-- How often the call was made before, since a reset.
local function times_before(resets, call, beats)
  local same, n = same_as(call.args), 0
  local function count(other, result)
    if other.call_id == call.id then
      n = 0 -- what was counted stands behind this call and runs beside it
    elseif resets[other.name] and succeeded(result) then
      return true
    elseif other.name == call.name and ran(result) and same(other.args) then
      n = n + 1
    end
  end
  for i = #beats, 1, -1 do
    if each_call(beats[i], count) then
      break
    end
  end
  return n
end

local function refusal(name, times, max)
  local said = ("this call of %s was made %d times with the same arguments, %d is the limit: "
    .. "its answer stands above, do something else"):format(name, times, max)
  return { ok = false, reason = "repeated", times = times, max = max, error = said }
end

local function capped(settings, session, name, handler)
  return function(args, ctx)
    local call = { id = ctx and ctx.call_id, name = name, args = args }
    local beats = log.last(PLACE, session, settings.within)
    local times = times_before(settings.resets, call, beats) + 1
    if times > settings.max then
      return refusal(name, times, settings.max)
    end
    return handler(args, ctx)
  end
end

local function set_of(list)
  local set = {}
  for _, name in ipairs(list) do
    set[name] = true
  end
  return set
end

---@class policy.repeat_cap.opts
---@field max? integer times that the same call may run (default 2)
---@field resets? string[] tools whose success begins the count anew
---@field within? integer beats to look back over (default 50)

--- Makes the function that binds the cap to a session.
---@param opts? policy.repeat_cap.opts
---@return fun(session: session): fun(tools: table<string, tool>): table<string, tool>
function M.new(opts)
  opts = shapes.check_opts(PLACE, opts == nil and {} or opts, M.shapes.repeat_cap_opts, {
    hints = shapes.hints("the session is an argument: policy.repeat_cap{ … }(session)(tools)"),
    opts = "{ max?, resets?, within? }",
  })
  local settings = {
    max = opts.max or MAX,
    within = opts.within or WITHIN,
    resets = set_of(opts.resets or {}),
  }
  return function(session)
    log.check_session(PLACE, session)
    return function(tools)
      return toolset.wrap(PLACE, tools, function(entry, name)
        return capped(settings, session, name, entry.handler)
      end)
    end
  end
end

return M
