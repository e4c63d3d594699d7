--- spec.assertions: what assert can say in a spec file.
--
--    equal(want, got)             ==
--    same(want, got)              the same content, tables looked into
--    is_true is_false is_nil      exactly that value
--    truthy(got) falsy(got)       what if takes, or does not take, for true
--    is_string is_number is_boolean is_table is_function is_userdata   of that type
--    matches(pattern, got)        a text that holds it, or fits the Lua pattern
--    near(want, got, within)      numbers at most that far apart
--    has_error(fn, wanted?)       fn raises; answers what it raised. wanted is a
--                                 text, as in matches, or a table, as in same
--    errors_at_line(fn, n, text?) fn raises at its n-th line; 0 is where it opens
--    called(spy, times?)          the spy was called, so many times
--    called_with(spy, …)          the spy was called with the same arguments
--
-- A name may be said as one likes to read it: the words is are was has have does
-- in front of it, joined by _ or by a dot, mean nothing, and not or no turns it
-- round: assert.are.equal, assert.is_not_nil, assert.has_no.error(fn). A plural
-- or a capital is the same word. assert.spy(s).was_not.called_with(…) names the spy first.
--
-- Those with a fixed number of arguments take a note as one more, which stands
-- before the words of a failure. assert(v, message) is the plain assert. Nothing
-- here counts assertions or goes on after one that failed.
--
-- Example:
--
--    assert.same({ 1, { a = 2 } }, std.json.decode('[1, { "a": 2 }]'))
--    assert.errors_at_line(function() std.time.sleep(-1) end, 0, "want seconds")

local judges = require("spec.judges")
local place = require("spec.place")
local show = require("spec.show")

local error, pairs, select, setmetatable = error, pairs, select, setmetatable
local find, concat, sort = string.find, table.concat, table.sort

local M = {}

place.hide()

-- The words of a failure: a note, the assertion, what is wrong.
local function worded(judge, turned, wrong, note)
  local text = (turned and "not " or "") .. judge.name .. ":"
  text = text .. (find(wrong, "^\n") and "" or " ") .. wrong
  return note ~= nil and show.text(note) .. ": " .. text or text
end

-- Judges the arguments, turned round when the name had a not.
local function apply(judge, turned, ...)
  local holds, says, answer = judge.of(...)
  if holds ~= turned then
    return answer
  end
  local note = judge.takes and select(judge.takes + 1, ...)
  place.failed(worded(judge, turned, says(turned), note))
end

for name, judge in pairs(judges.all) do
  M[name] = function(...)
    return apply(judge, false, ...)
  end
end

local function known()
  local names = {}
  for name in pairs(judges.all) do
    names[#names + 1] = name
  end
  sort(names)
  return concat(names, ", ")
end

local say

-- What stands behind the words said so far: a table of the words to come.
local function so_far(said)
  return setmetatable({}, {
    __index = function(_, word)
      return say(word, said)
    end,
  })
end

-- The assertion that a name says, or the table of what may follow. said holds
-- turned, the spy when one was named, and the name for mistakes.
function say(name, said)
  local full = said.name .. "." .. show.text(name)
  local turned, rest = judges.read(name)
  turned = turned ~= said.turned
  if rest == "" then
    return so_far({ turned = turned, spy = said.spy, name = full })
  elseif rest == "spy" or rest == "stub" then
    return function(spy)
      return so_far({ turned = turned, spy = spy, name = full })
    end
  end
  local judge = judges.named(rest)
  if not judge then
    place.mistake("%s: no such assertion (known: %s)", full, known())
  elseif turned and judge.one_way then
    place.mistake("%s: cannot be turned round", full)
  end
  return function(...)
    if said.spy ~= nil then
      return apply(judge, turned, said.spy, ...)
    end
    return apply(judge, turned, ...)
  end
end

return setmetatable(M, {
  __call = function(_, v, message, ...)
    if v then
      return v, message, ...
    end
    error(message == nil and "assertion failed!" or message, 2)
  end,
  __index = function(_, name)
    return say(name, { turned = false, name = "assert" })
  end,
})
