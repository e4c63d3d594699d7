--- spec: the vocabulary of spec files.
--
-- A file named *_spec.lua describes behaviour; knl spec runs it in a VM of its
-- own with these words as globals:
--
--    describe(name, fn)     a block of cases; blocks nest
--    it(name, fn)           a case; its name is a sentence that is true
--    before_each(fn)        runs before each case of the block and of those in it
--    after_each(fn)         runs after each, also when the case failed
--    pending(name, fn?)     a case to come; inside a case: pending(why) ends it
--    tags(name, …)          marks the block, or the file, for a choice of cases;
--                           #name in the name of a block or case does so too
--    assert.<word>(…)       see spec.assertions; assert(v, message) as ever
--    spy(fn?)               a function that remembers its calls
--    stub(t, key, fn?)      a spy in place of t[key] until the case ends
--
-- A case that fails does not stop the others, nor does a block whose body
-- raises. Cases may sleep and use std.task; a case ends after its tasks, and what
-- one of them raises fails it. Two cases of one name in one block are a mistake.
-- It does not run files and prints nothing: the host calls start, plan and what
-- plan answers.
--
-- Example:
--
--    describe("a stack", function()
--      it("gives back what was put last", function()
--        local stack = { 1 }
--        stack[#stack + 1] = 2
--        assert.equal(2, table.remove(stack))
--      end)
--    end)

local assertions = require("spec.assertions")
local doubles = require("spec.doubles")
local gate = require("lshape.gate")
local place = require("spec.place")
local shapes = require("spec.shapes")
local std = require("std")
local suite = require("spec.suite")

---@class spec.choice
---@field text? string in the full name of a case, as it stands or as a Lua pattern
---@field tags? string[] one of them marks the case
---@field skip_tags? string[] none of them does
---@field shuffle? integer the seed of another order

---@class spec.case
---@field name string the names of its blocks and its own, joined by blanks
---@field path string[] the same, apart
---@field file string
---@field line integer
---@field tags string[]

---@class spec.result
---@field name string the names of its blocks and its own, joined by blanks
---@field path string[] the same, apart
---@field status "passed"|"failed"|"pending"
---@field message? string why it failed, or is pending
---@field traceback? string
---@field file string where it failed, else where it stands
---@field line integer
---@field ms integer milliseconds it took

local M = { assert = assertions, spy = doubles.spy, stub = doubles.stub, shapes = shapes }

place.hide()

local current = suite.new()

for name in pairs(current.words) do
  M[name] = function(...)
    return current.words[name](...)
  end
end

local words = { "assert", "spy", "stub" }
for name in pairs(current.words) do
  words[#words + 1] = name
end

-- What a task raised that the file itself spawned, outside of its cases.
local function task_failed(raised, trace, name)
  current.broken(("task %q of the file runs"):format(name), place.failure_of(raised, trace))
end

--- Begins a file: forgets what was described before and puts the words into
--- globals.
---@param globals table
function M.start(globals)
  current = suite.new()
  std.task.unjoined(task_failed)
  for _, name in ipairs(words) do
    globals[name] = M[name]
  end
end

--- The chosen cases that were described since start, and what runs the next of
--- them each time it is called.
---@param choice? string|spec.choice which of them; a string is the text
---@return spec.case[] cases, fun(): spec.result? next_result
function M.plan(choice)
  return current.plan(choice)
end

--- Runs the chosen cases in their order.
---@param choice? string|spec.choice which of them; a string is the text
---@return spec.result[]
function M.run(choice)
  return current.run(choice)
end

--- How many cases were described since start.
---@return integer
function M.count()
  return current.count()
end

return gate(M, "spec")
