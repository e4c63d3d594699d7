--- spec.suite: the tree of blocks and cases that a spec file describes.
--
-- new answers an empty suite: its words describe, plan answers the cases that
-- were described and the function that runs the next one, run runs them all. It
-- knows no assertion; what ends a case is what it raises. Cases run one at a
-- time.
--
-- Example:
--
--    local suite = require("spec.suite").new()
--    suite.words.it("is so", function() assert(1 + 1 == 2) end)
--    print(suite.run()[1].status) --> passed

local choice = require("spec.choice")
local knl = require("knl")
local perform = require("spec.perform")
local place = require("spec.place")

local M = {}

place.hide()

-- A mistake in the use of a word.
local function want(ok, word, got, wanted)
  if not ok then
    place.mistake("%s: got %s, want %s", word, type(got), wanted)
  end
end

-- Only pending may be said while a case runs.
local function describing(self, word)
  if self.running then
    place.mistake("%s: called inside a case, want it in a block or at the top of the file", word)
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

-- Where a word was said; what a tail call has lost is where fn stands, else the
-- block.
local function place_of(self, fn)
  local file, line = place.outside()
  if file then
    return file, line
  elseif fn then
    local info = debug.getinfo(fn)
    return info.short_src, info.linedefined
  end
  return self.block.file, self.block.line
end

local function add(self, name, fn)
  local file, line = place_of(self, fn)
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

-- Two cases of one name could not be told apart in a report.
local function add_once(self, word, name, fn)
  local key = table.concat(path_of(self.block, name), "\0")
  local first = self.names[key]
  if first then
    place.mistake("%s: %q stands in this block already, at line %d", word, name, first.line)
  end
  self.names[key] = add(self, name, fn)
  return self.names[key]
end

local function new_block(self, name, fn)
  local file, line = place_of(self, fn)
  return {
    name = name,
    parent = self.block,
    file = file,
    line = line,
    before = {},
    after = {},
    tags = {},
  }
end

local words = {}

function words.describe(self, name, fn)
  describing(self, "describe")
  want(type(name) == "string", "describe", name, "a name (a string)")
  want(type(fn) == "function", "describe", fn, "a function")
  local outer = self.block
  self.block = new_block(self, name, fn)
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
  add_once(self, "it", name, fn)
end

function words.pending(self, name, fn)
  if self.running then
    place.pending(name)
  end
  want(type(name) == "string", "pending", name, "a name (a string)")
  want(fn == nil or type(fn) == "function", "pending", fn, "a function or nothing")
  add_once(self, "pending", name).pending = true
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

local function planned(case)
  return {
    name = case.name,
    path = case.path,
    file = case.file,
    line = case.line,
    tags = knl.array(choice.tags_of(case)),
  }
end

-- The chosen cases, and what runs the next of them each time it is called.
local function plan(self, by)
  local chosen = choice.of(self.cases, by)
  local list, at = knl.array(), 0
  for i, case in ipairs(chosen) do
    list[i] = planned(case)
  end
  return list, function()
    at = at + 1
    if not chosen[at] then
      return nil
    end
    self.running = true
    local result = perform.case(chosen[at])
    self.running = false
    return result
  end
end

---@class suite
---@field words table<string, function> describe it before_each after_each pending tags
---@field plan fun(choice?: string|spec.choice): spec.case[], fun(): spec.result?
---@field run fun(choice?: string|spec.choice): spec.result[]
---@field broken fun(name: string, failure: spec.failure) adds a case that has failed
---@field count fun(): integer how many cases were described

--- An empty suite.
---@return suite
function M.new()
  local top = { name = "", file = "", line = 0, before = {}, after = {}, tags = {} }
  local self = { block = top, cases = {}, names = {}, running = false }
  local suite = { words = {} }
  for name, word in pairs(words) do
    suite.words[name] = function(...)
      return word(self, ...)
    end
  end
  function suite.plan(by)
    return plan(self, by)
  end
  function suite.run(by)
    local _, next_result = plan(self, by)
    local results = {}
    for result in next_result do
      results[#results + 1] = result
    end
    return results
  end
  function suite.broken(name, failure)
    add(self, name).broken = failure
  end
  function suite.count()
    return #self.cases
  end
  return suite
end

return M
