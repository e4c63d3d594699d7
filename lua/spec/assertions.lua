--- spec.assertions: what assert can say in a spec file.
--
--    equal(want, got)            ==
--    same(want, got)             the same content, tables looked into
--    is_true is_false is_nil     exactly that value
--    truthy(got)                 neither nil nor false
--    matches(pattern, got)       a text that holds it, or fits the Lua pattern
--    near(want, got, within)     numbers at most that far apart
--    has_error(fn, text?)        fn raises; answers what it raised
--    errors_at_line(fn, n, text?) fn raises at its n-th line; 0 is where it opens
--
-- Each but the last two takes a note as one more argument, which stands before
-- the words of a failure. assert(v, message) is the plain assert. Nothing here
-- counts assertions or goes on after one that failed.
--
-- Example:
--
--    assert.same({ 1, { a = 2 } }, std.json.decode('[1, { "a": 2 }]'))
--    assert.errors_at_line(function() std.time.sleep(-1) end, 0, "want seconds")

local place = require("spec.place")
local show = require("spec.show")

local M = {}

place.hide()

local failure_meta = {
  __tostring = function(f)
    return ("%s:%d: %s"):format(f.file, f.line, f.message)
  end,
}

local function fail(note, text, ...)
  if select("#", ...) > 0 then
    text = text:format(...)
  end
  if note ~= nil then
    text = tostring(note) .. ": " .. text
  end
  local file, line = place.outside()
  local failure = { assertion = true, message = text, file = file, line = line }
  error(setmetatable(failure, failure_meta), 0)
end

-- A mistake in the spec itself.
local function misuse(text, ...)
  local file, line = place.outside()
  error(("%s:%d: assert."):format(file, line) .. text:format(...), 0)
end

--- Wants got == want.
---@param want any
---@param got any
---@param note? string
function M.equal(want, got, note)
  if want ~= got then
    local how = show.differences(want, got)[1] or "want the very value, got one like it"
    fail(note, "equal: %s", how)
  end
end

--- Wants the same content.
---@param want any
---@param got any
---@param note? string
function M.same(want, got, note)
  local all = show.differences(want, got)
  if #all > 0 then
    fail(note, "same: %s", #all == 1 and all[1] or "\n  " .. table.concat(all, "\n  "))
  end
end

local function exactly(word, value)
  return function(got, note)
    if got ~= value then
      fail(note, "%s: want %s, got %s", word, tostring(value), show.show(got))
    end
  end
end

--- Wants true.
M.is_true = exactly("is_true", true)
--- Wants false.
M.is_false = exactly("is_false", false)
--- Wants nil.
M.is_nil = exactly("is_nil", nil)

--- Wants neither nil nor false.
---@param got any
---@param note? string
function M.truthy(got, note)
  if not got then
    fail(note, "truthy: got %s", tostring(got))
  end
end

-- Whether text holds what is wanted, as it stands or as a pattern.
local function fits(text, wanted)
  if text:find(wanted, 1, true) then
    return true
  end
  local ok, at = pcall(string.find, text, wanted)
  return ok and at ~= nil
end

--- Wants a text that holds pattern as it stands, or fits it as a Lua pattern.
---@param pattern string
---@param got string
---@param note? string
function M.matches(pattern, got, note)
  if type(pattern) ~= "string" then
    misuse("matches: argument 1: got %s, want a pattern", type(pattern))
  end
  if type(got) ~= "string" or not fits(got, pattern) then
    fail(note, "matches: want %s, got %s", show.show(pattern), show.show(got))
  end
end

--- Wants a number at most within away from want.
---@param want number
---@param got number
---@param within number
---@param note? string
function M.near(want, got, within, note)
  if type(want) ~= "number" or type(within) ~= "number" then
    local got_types = type(want) .. " and " .. type(within)
    misuse("near: got %s, want a number and how far it may be away", got_types)
  end
  if type(got) ~= "number" or not (math.abs(want - got) <= within) then
    fail(note, "near: want %s ± %s, got %s", tostring(want), tostring(within), show.show(got))
  end
end

local function raised_by(word, fn, wanted)
  local meta = getmetatable(fn)
  if type(fn) ~= "function" and not (type(meta) == "table" and meta.__call) then
    misuse("%s: argument 1: got %s, want a function", word, type(fn))
  end
  local failure = place.attempt(fn)
  if not failure then
    fail(nil, "%s: nothing was raised, want %s", word, wanted and show.show(wanted) or "an error")
  end
  if wanted ~= nil and not fits(failure.message, wanted) then
    fail(nil, "%s: want %s, got %s", word, show.show(wanted), show.show(failure.message))
  end
  return failure
end

--- Wants fn to raise, with text in what it raises when text is given.
---@param fn fun()
---@param text? string held as it stands, or fits as a Lua pattern
---@return any raised
function M.has_error(fn, text)
  return raised_by("has_error", fn, text).raised
end

--- Wants fn to raise at its n-th line; line 0 is where the function opens.
---@param fn fun()
---@param n integer
---@param text? string held as it stands, or fits as a Lua pattern
---@return any raised
function M.errors_at_line(fn, n, text)
  if type(fn) ~= "function" or type(n) ~= "number" then
    local got_types = type(fn) .. " and " .. type(n)
    misuse("errors_at_line: got %s, want a function and the number of its line", got_types)
  end
  local failure = raised_by("errors_at_line", fn, text)
  local info = debug.getinfo(fn)
  if failure.file ~= info.short_src or failure.line ~= info.linedefined + n then
    fail(nil, "errors_at_line: want it at %s:%d, got %s:%s: %s", info.short_src,
      info.linedefined + n, tostring(failure.file), tostring(failure.line), failure.message)
  end
  return failure.raised
end

local function words()
  local names = {}
  for name in pairs(M) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, ", ")
end

return setmetatable(M, {
  __call = function(_, v, message, ...)
    if v then
      return v, message, ...
    end
    error(message == nil and "assertion failed!" or message, 2)
  end,
  __index = function(_, word)
    error(("assert.%s: no such assertion (known: %s)"):format(tostring(word), words()), 2)
  end,
})
