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
--    tags(name, …)          marks the block, or the file, for a choice of cases
--    assert.<word>(…)       see spec.assertions; assert(v, message) as ever
--    spy(fn?)               a function that remembers its calls
--    stub(t, key, fn?)      a spy in place of t[key] until the case ends
--
-- A case that fails does not stop the others, nor does a block whose body
-- raises. Cases may sleep and use std.task; a case ends after its tasks.
-- It does not run files and prints nothing: the host calls start and run.
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
local suite = require("spec.suite")

local M = {}

local current = suite.new()

--- Begins a file: forgets what was described before and puts the words into
--- globals.
---@param globals table
function M.start(globals)
  current = suite.new()
  globals.assert = assertions
  globals.spy, globals.stub = doubles.spy, doubles.stub
  for name, word in pairs(current.words) do
    globals[name] = word
  end
end

---@class spec.choice
---@field text? string in the full name of a case
---@field tags? string[] one of them marks it
---@field skip_tags? string[] none of them does

---@class spec.result
---@field name string the names of its blocks and its own, joined by blanks
---@field path string[] the same, apart
---@field status "passed"|"failed"|"pending"
---@field message? string why it failed, or is pending
---@field traceback? string
---@field file string where it failed, else where it stands
---@field line integer
---@field ms integer milliseconds it took

--- Runs the cases that were described since start, in their order.
---@param choice? string|spec.choice which of them; a string is the text
---@return spec.result[]
function M.run(choice)
  return current.run(choice)
end

return M
