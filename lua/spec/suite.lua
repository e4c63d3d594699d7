--- spec.suite: the tree of blocks and cases that a spec file describes, and its
--- run.
--
-- new answers an empty suite: its words describe, run runs what they described.
-- It knows no assertion; what ends a case is what it raises. It does not
-- reorder cases and runs one at a time.
--
-- Example:
--
--    local suite = require("spec.suite").new()
--    suite.words.it("is so", function() assert(1 + 1 == 2) end)
--    print(suite.run()[1].status) --> passed

local doubles = require("spec.doubles")
local place = require("spec.place")
local std = require("std")

local M = {}

place.hide()

-- A mistake in the use of a word.
local function want(ok, word, got, wanted)
  if not ok then
    local file, line = place.outside()
    error(("%s:%d: %s: got %s, want %s"):format(file, line, word, type(got), wanted), 0)
  end
end

-- Only pending may be said while a case runs.
local function describing(self, word)
  if self.running then
    local file, line = place.outside()
    local wanted = "called inside a case, want it in a block or at the top of the file"
    error(("%s:%d: %s: %s"):format(file, line, word, wanted), 0)
  end
end

local function path_of(of, name)
  local path = { name }
  while of.parent do
    table.insert(path, 1, of.name)
    of = of.parent
  end
  return path
end

local function add(self, name, fn)
  local file, line = place.outside()
  local path = path_of(self.block, name)
  local case = {
    name = table.concat(path, " "),
    path = path,
    block = self.block,
    fn = fn,
    file = file,
    line = line,
  }
  self.cases[#self.cases + 1] = case
  return case
end

local function block_in(parent, name)
  return { name = name, parent = parent, before = {}, after = {}, tags = {} }
end

local words = {}

function words.describe(self, name, fn)
  describing(self, "describe")
  want(type(name) == "string", "describe", name, "a name (a string)")
  want(type(fn) == "function", "describe", fn, "a function")
  local outer = self.block
  self.block = block_in(outer, name)
  local failure = place.attempt(fn)
  if failure then
    add(self, "is described").broken = failure
  end
  self.block = outer
end

function words.it(self, name, fn)
  describing(self, "it")
  want(type(name) == "string", "it", name, "a name (a string)")
  want(type(fn) == "function", "it", fn, "a function; pending(name) is a case to come")
  add(self, name, fn)
end

function words.pending(self, name, fn)
  if self.running then
    error({ pending = name or "" }, 0)
  end
  want(type(name) == "string", "pending", name, "a name (a string)")
  want(fn == nil or type(fn) == "function", "pending", fn, "a function or nothing")
  add(self, name).pending = true
end

function words.before_each(self, fn)
  describing(self, "before_each")
  want(type(fn) == "function", "before_each", fn, "a function")
  table.insert(self.block.before, fn)
end

-- The last added runs first.
function words.after_each(self, fn)
  describing(self, "after_each")
  want(type(fn) == "function", "after_each", fn, "a function")
  table.insert(self.block.after, 1, fn)
end

function words.tags(self, ...)
  describing(self, "tags")
  for i = 1, select("#", ...) do
    local name = select(i, ...)
    want(type(name) == "string", "tags", name, "names (strings)")
    self.block.tags[name] = true
  end
end

local function tagged(case, names)
  for _, name in ipairs(names or {}) do
    local of = case.block
    while of do
      if of.tags[name] then
        return true
      end
      of = of.parent
    end
  end
  return false
end

local function chosen(case, choice)
  if choice.text and not case.name:find(choice.text, 1, true) then
    return false
  end
  return (not choice.tags or tagged(case, choice.tags)) and not tagged(case, choice.skip_tags)
end

local choice_keys = { text = true, tags = true, skip_tags = true }

local function choice_of(given)
  if given == nil or type(given) == "string" then
    return { text = given }
  end
  for key in pairs(given) do
    if not choice_keys[key] then
      error(("spec.run: unknown option %q (known: skip_tags, tags, text)"):format(tostring(key)), 0)
    end
  end
  return given
end

-- The blocks around a case, outermost first.
local function blocks_of(case)
  local list, of = {}, case.block
  while of do
    table.insert(list, 1, of)
    of = of.parent
  end
  return list
end

local function run_all(hooks, what)
  for _, hook in ipairs(hooks) do
    local failure = place.attempt(hook)
    if failure then
      failure.message = what .. ": " .. failure.message
      return failure
    end
  end
end

-- Runs the hooks and the body; the hooks behind are those of the blocks whose
-- hooks before have begun.
local function perform(case)
  local failure
  local entered = {}
  for _, of in ipairs(blocks_of(case)) do
    table.insert(entered, 1, of)
    failure = run_all(of.before, "before_each")
    if failure then
      break
    end
  end
  failure = failure or place.attempt(case.fn)
  for _, of in ipairs(entered) do
    local late = run_all(of.after, "after_each")
    if late and failure then
      failure.message = failure.message .. "\n" .. late.message
    end
    failure = failure or late
  end
  return failure
end

local function run_case(self, case)
  if not case.fn then
    return case.broken
  end
  local failure
  self.running = case
  std.task.scope("case", function(scope)
    failure = perform(case)
    if failure then
      scope:cancel()
    end
  end)
  doubles.restore()
  self.running = nil
  return failure
end

local function result_of(self, case)
  local began = std.time.monotonic()
  local failure = run_case(self, case)
  local result = {
    name = case.name,
    path = case.path,
    status = "passed",
    file = case.file,
    line = case.line,
    ms = math.floor((std.time.monotonic() - began) * 1000),
  }
  if case.pending or failure and failure.pending then
    result.status = "pending"
    result.message = failure and failure.pending ~= "" and failure.pending or nil
  elseif failure then
    result.status, result.message, result.traceback = "failed", failure.message, failure.traceback
    result.file, result.line = failure.file or case.file, failure.line or case.line
  end
  return result
end

local function run(self, choice)
  local by = choice_of(choice)
  local results = {}
  for _, case in ipairs(self.cases) do
    if chosen(case, by) then
      results[#results + 1] = result_of(self, case)
    end
  end
  return results
end

---@class suite
---@field words table<string, function> describe it before_each after_each pending tags
---@field run fun(choice?: string|spec.choice): spec.result[] runs the chosen cases in order

--- An empty suite.
---@return suite
function M.new()
  local self = { block = block_in(nil, ""), cases = {} }
  local suite = { words = {} }
  for name, word in pairs(words) do
    suite.words[name] = function(...)
      return word(self, ...)
    end
  end
  function suite.run(choice)
    return run(self, choice)
  end
  return suite
end

return M
