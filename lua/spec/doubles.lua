--- spec.doubles: functions that remember their calls.
--
-- spy(fn?) answers a callable table that calls fn; its field calls lists the
-- arguments of each call, with their count as n, and clear() forgets them.
-- stub(t, key, fn?) puts a spy in the place of t[key] until the case ends;
-- stub(t, key, t[key]) only listens. Neither expects anything by itself: see
-- called and called_with in spec.assertions.
--
-- Example:
--
--    local log = stub(std.log, "warn")
--    std.log.warn("careful")
--    assert.called_with(log, "careful")

local place = require("spec.place")

local getmetatable, rawget, rawset, select = getmetatable, rawget, rawset, select
local setmetatable, tostring, type = setmetatable, tostring, type

local M = {}

local stubbed = {} -- what stands replaced, in order
local spies = setmetatable({}, { __mode = "k" })

place.hide()

local function callable(v)
  local meta = getmetatable(v)
  return type(v) == "function" or type(meta) == "table" and meta.__call ~= nil
end

---@class spy
---@field calls { n: integer, [integer]: any }[] the arguments of each call
---@field clear fun() forgets the calls so far
---@operator call: any

--- A function that remembers its calls and answers what fn answers.
---@param fn? function
---@return spy
function M.spy(fn)
  if fn ~= nil and not callable(fn) then
    place.mistake("spy: got %s, want a function or nothing", type(fn))
  end
  local double = { calls = {} }
  function double.clear()
    double.calls = {}
  end
  spies[double] = true
  return setmetatable(double, {
    __call = function(_, ...)
      double.calls[#double.calls + 1] = { n = select("#", ...), ... }
      if fn then
        return fn(...)
      end
    end,
  })
end

--- Whether a value is a spy.
---@param v any
---@return boolean
function M.is_spy(v)
  return spies[v] == true
end

--- Puts a spy in the place of t[key] until the case ends.
---@param t table
---@param key any
---@param fn? function what the spy calls; nothing: it answers nothing
---@return spy
function M.stub(t, key, fn)
  if type(t) ~= "table" then
    place.mistake("stub: argument 1: got %s, want a table", type(t))
  end
  if key == nil or t[key] == nil then
    place.mistake("stub: the table has no %q, nothing to stand in for", tostring(key))
  end
  if fn ~= nil and not callable(fn) then
    place.mistake("stub: argument 3: got %s, want a function or nothing", type(fn))
  end
  local double = M.spy(fn)
  stubbed[#stubbed + 1] = { t = t, key = key, value = rawget(t, key) }
  rawset(t, key, double)
  return double
end

--- How many stubs stand: what restore takes to leave them.
---@return integer
function M.standing()
  return #stubbed
end

--- Puts back what was stubbed since count stubs stood, the last first.
---@param count? integer default: 0, all of them
function M.restore(count)
  for i = #stubbed, (count or 0) + 1, -1 do
    local s = stubbed[i]
    rawset(s.t, s.key, s.value)
    stubbed[i] = nil
  end
end

return M
