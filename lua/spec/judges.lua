--- spec.judges: what each assertion holds its arguments against.
--
-- all holds a judge by the name of its assertion. Its of(...) answers whether it
-- holds, a function that says what is wrong (says(true): with what holds and was
-- not to), and what the assertion answers. What passes costs no words. Nothing
-- here raises but for a mistake in the call of an assertion.
--
-- Example:
--
--    local judges = require("spec.judges")
--    local holds, says = judges.all.equal.of(1, 2)
--    print(holds, says(false)) --> false  want 1, got 2

local diff = require("spec.diff")
local doubles = require("spec.doubles")
local place = require("spec.place")
local show = require("spec.show").show
local text_of = require("spec.show").text

local getmetatable, ipairs, select, type = getmetatable, ipairs, select, type
local format, gmatch, gsub, lower = string.format, string.gmatch, string.gsub, string.lower
local abs, concat, getinfo = math.abs, table.concat, debug.getinfo

---@class spec.judge
---@field name string the assertion
---@field of fun(...): boolean, (fun(turned: boolean): string), any
---@field takes? integer how many arguments it judges; nil: all it gets
---@field one_way? boolean it cannot be turned round

local M = {
  ---@type table<string, spec.judge>
  all = {},
}

place.hide()

local bare = {} -- judges by their name without the words in front

local fillers = { is = true, are = true, was = true, has = true, have = true, does = true }
local nots = { ["not"] = true, no = true }
local other_names = {
  equals = "equal", match = "matches", errors = "error", error_matches = "error",
}

--- Splits a name as it was said: whether it is turned round, and what is left
--- without the words that mean nothing.
---@param name any
---@return boolean turned, string rest
function M.read(name)
  local turned, rest = false, {}
  for word in gmatch(lower(text_of(name)), "[^_]+") do
    if #rest == 0 and nots[word] then
      turned = not turned
    elseif #rest > 0 or not fillers[word] then
      rest[#rest + 1] = word
    end
  end
  return turned, concat(rest, "_")
end

--- The judge that a name means which read has left, or nil.
---@param rest string
---@return spec.judge?
function M.named(rest)
  return bare[other_names[rest] or rest]
end

local function add(name, judge)
  judge.name = name
  M.all[name] = judge
  local _, rest = M.read(name)
  bare[rest] = judge
end

local function mistake(name, text, ...)
  place.mistake("assert." .. name .. ": " .. text, ...)
end

-- A judge of one value; wanted says what is wanted of it.
local function of_one(holds, wanted)
  return {
    takes = 1,
    of = function(got)
      return holds(got), function(turned)
        if turned or not wanted then
          return "got " .. show(got)
        end
        return format("want %s, got %s", wanted, show(got))
      end
    end,
  }
end

local function exactly(value)
  return of_one(function(got) return got == value end, text_of(value))
end

add("is_true", exactly(true))
add("is_false", exactly(false))
add("is_nil", exactly(nil))
add("truthy", of_one(function(got) return got and true or false end))
add("falsy", of_one(function(got) return not got end))

for _, kind in ipairs({ "string", "number", "boolean", "table", "function", "userdata" }) do
  add("is_" .. kind, of_one(function(got) return type(got) == kind end, "a " .. kind))
end

add("equal", {
  takes = 2,
  of = function(want, got)
    return want == got, function(turned)
      if turned then
        return "want another value than " .. show(want)
      end
      return diff.differences(want, got)[1] or "want the very value, got one like it"
    end
  end,
})

-- Differences as lines, those of texts moved in below their path.
local function listed_differences(all)
  if #all == 1 then
    return all[1]
  end
  local lines = {}
  for i, at in ipairs(all) do
    lines[i] = "\n  " .. gsub(at, "\n", "\n  ")
  end
  return concat(lines)
end

add("same", {
  takes = 2,
  of = function(want, got)
    local all = diff.differences(want, got)
    return #all == 0, function(turned)
      return turned and "want another content than " .. show(want) or listed_differences(all)
    end
  end,
})

add("matches", {
  takes = 2,
  of = function(pattern, got)
    if type(pattern) ~= "string" then
      mistake("matches", "argument 1: got %s, want a pattern", type(pattern))
    end
    return type(got) == "string" and diff.fits(got, pattern), function(turned)
      return format("want %s%s, got %s", turned and "no " or "", show(pattern), show(got))
    end
  end,
})

add("near", {
  takes = 3,
  of = function(want, got, within)
    if type(want) ~= "number" or type(within) ~= "number" then
      mistake("near", "got %s and %s, want a number and how far it may be away", type(want),
        type(within))
    end
    return type(got) == "number" and abs(want - got) <= within, function(turned)
      return format("want %s%s ± %s, got %s", turned and "none of " or "", text_of(want),
        text_of(within), show(got))
    end
  end,
})

-- How what was raised differs from what was wanted, nil when it does not.
local function difference(wanted, failure)
  if type(wanted) == "table" then
    local all = diff.differences(wanted, failure.raised)
    return all[1] and listed_differences(all)
  elseif wanted ~= nil and not diff.fits(failure.message, wanted) then
    return format("want %s, got %s", show(wanted), show(failure.message))
  end
end

-- What fn raised, with the words of a failure when it is not what was wanted.
local function raised_by(name, fn, wanted)
  local meta = getmetatable(fn)
  if type(fn) ~= "function" and not (type(meta) == "table" and meta.__call) then
    mistake(name, "argument 1: got %s, want a function", type(fn))
  end
  if wanted ~= nil and type(wanted) ~= "string" and type(wanted) ~= "table" then
    mistake(name, "got %s, want the text or the table that is raised", type(wanted))
  end
  local failure = place.attempt(fn)
  if not failure then
    return nil, "nothing was raised, want " .. (wanted == nil and "an error" or show(wanted))
  end
  return failure, difference(wanted, failure)
end

add("has_error", {
  of = function(fn, wanted)
    local failure, wrong = raised_by("has_error", fn, wanted)
    return not wrong, function(turned)
      return turned and "raised " .. show(failure.message) .. "\n" .. failure.traceback or wrong
    end, failure and failure.raised
  end,
})

add("errors_at_line", {
  one_way = true,
  of = function(fn, n, wanted)
    if type(fn) ~= "function" or type(n) ~= "number" then
      mistake("errors_at_line", "got %s and %s, want a function and the number of its line",
        type(fn), type(n))
    end
    local failure, wrong = raised_by("errors_at_line", fn, wanted)
    local info = getinfo(fn)
    local line = info.linedefined + n
    if not wrong and (failure.file ~= info.short_src or failure.line ~= line) then
      wrong = format("want it at %s:%d, got %s:%s: %s", info.short_src, line,
        text_of(failure.file), text_of(failure.line), failure.message)
    end
    return not wrong, function() return wrong end, failure and failure.raised
  end,
})

local function calls_of(name, spy)
  if not doubles.is_spy(spy) then
    mistake(name, "argument 1: got %s, want a spy (what spy or stub answered)", type(spy))
  end
  return spy.calls
end

local function times(n)
  return n == 1 and "1 call" or n .. " calls"
end

local function listed(args)
  local texts = {}
  for i = 1, args.n do
    texts[i] = show(args[i])
  end
  return "(" .. concat(texts, ", ") .. ")"
end

local function all_listed(calls)
  local texts = {}
  for i, args in ipairs(calls) do
    texts[i] = i < 8 and listed(args) or i == 8 and "…" or nil
  end
  return #texts == 0 and "no call" or concat(texts, " ")
end

add("called", {
  takes = 2,
  of = function(spy, wanted)
    local calls = calls_of("called", spy)
    if wanted ~= nil and type(wanted) ~= "number" then
      mistake("called", "argument 2: got %s, want how many times", type(wanted))
    end
    return wanted == nil and #calls > 0 or #calls == wanted, function(turned)
      if turned then
        return "got " .. all_listed(calls)
      end
      return format("want %s, got %s", wanted and times(wanted) or "a call", times(#calls))
    end
  end,
})

local function has_call(calls, wanted)
  for _, args in ipairs(calls) do
    if #diff.differences(wanted, args) == 0 then
      return true
    end
  end
  return false
end

add("called_with", {
  of = function(spy, ...)
    local calls, wanted = calls_of("called_with", spy), { n = select("#", ...), ... }
    return has_call(calls, wanted), function(turned)
      if turned then
        return "got " .. listed(wanted)
      end
      return format("want %s, got %s", listed(wanted), all_listed(calls))
    end
  end,
})

return M
