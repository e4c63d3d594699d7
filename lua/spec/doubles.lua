--- spec.doubles: functions that remember their calls.
--
-- spy(fn?) answers a callable table that calls fn; its field calls lists the
-- arguments of each call, with their count as n. stub(t, key, fn?) puts a spy
-- in the place of t[key] until the case ends. Neither expects anything by
-- itself: assert on calls.
--
-- Example:
--
--    local log = stub(std.log, "warn")
--    std.log.warn("careful")
--    assert.equal("careful", log.calls[1][1])

local place = require("spec.place")

local M = {}

local stubbed = {} -- what stands replaced, in order

place.hide()

local function callable(v)
  local meta = getmetatable(v)
  return type(v) == "function" or type(meta) == "table" and meta.__call ~= nil
end

---@class spy
---@field calls { n: integer, [integer]: any }[] the arguments of each call
---@operator call: any

--- A function that remembers its calls and answers what fn answers.
---@param fn? function
---@return spy
function M.spy(fn)
  if fn ~= nil and not callable(fn) then
    error(("spy: got %s, want a function or nothing"):format(type(fn)), 2)
  end
  local calls = {}
  return setmetatable({ calls = calls }, {
    __call = function(_, ...)
      calls[#calls + 1] = { n = select("#", ...), ... }
      if fn then
        return fn(...)
      end
    end,
  })
end

--- Puts a spy in the place of t[key] until the case ends.
---@param t table
---@param key any
---@param fn? function what the spy calls; nothing: it answers nothing
---@return spy
function M.stub(t, key, fn)
  if type(t) ~= "table" then
    error(("stub: argument 1: got %s, want a table"):format(type(t)), 2)
  end
  if t[key] == nil then
    error(("stub: the table has no %q, nothing to stand in for"):format(tostring(key)), 2)
  end
  if fn ~= nil and not callable(fn) then
    error(("stub: argument 3: got %s, want a function or nothing"):format(type(fn)), 2)
  end
  local double = M.spy(fn)
  stubbed[#stubbed + 1] = { t = t, key = key, value = t[key] }
  t[key] = double
  return double
end

--- Puts back what was stubbed, the last first.
function M.restore()
  for i = #stubbed, 1, -1 do
    local s = stubbed[i]
    s.t[s.key] = s.value
    stubbed[i] = nil
  end
end

return M
