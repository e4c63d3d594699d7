-- The words that describe: blocks, cases, hooks. A suite inside a case is one of
-- its own.

local new_suite = require("spec.suite").new

-- Runs what body describes in a suite of its own.
local function run(body)
  local suite = new_suite()
  body(suite.words)
  return suite.run()
end

-- The one case that body describes.
local function one(body)
  local results = run(body)
  assert.equal(1, #results)
  return results[1]
end

local function nothing() end

local function names(results)
  local out = {}
  for i, r in ipairs(results) do
    out[i] = r.name
  end
  return out
end

describe("describe", function()
  it("gives its name to the cases in it, outermost first", function()
    local results = run(function(w)
      w.describe("a stack", function()
        w.describe("when empty", function()
          w.it("has no top", nothing)
        end)
      end)
      w.it("stands alone", nothing)
    end)
    assert.same({ "a stack when empty has no top", "stands alone" }, names(results))
    assert.same({ "a stack", "when empty", "has no top" }, results[1].path)
  end)

  it("turns an error of its body into a failed case and goes on", function()
    local results = run(function(w)
      w.describe("broken", function()
        w.it("was described", nothing)
        error("no further")
      end)
      w.it("runs all the same", nothing)
    end)
    assert.same({ "broken was described", "broken is described", "runs all the same" },
      names(results))
    assert.equal("failed", results[2].status)
    assert.matches("spec_spec.lua:%d+: no further", results[2].message)
    assert.equal("passed", results[3].status)
  end)

  it("refuses what is no name and no function, at the caller's line", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.describe(nil, nothing) end, 0,
      "describe: got nil, want a name (a string)")
    assert.errors_at_line(function()
      w.describe("x")
    end, 1, "describe: got nil, want a function")
  end)

  it("is refused inside a case", function()
    local result = one(function(w)
      w.it("nests", function()
        w.describe("x", nothing)
      end)
    end)
    assert.matches("describe: called inside a case", result.message)
  end)
end)

describe("it", function()
  it("passes when nothing was raised", function()
    local result = one(function(w)
      w.it("is fine", nothing)
    end)
    assert.equal("passed", result.status)
    assert.is_nil(result.message)
    assert.equal("number", type(result.ms))
  end)

  it("fails where its assertion stands, with a traceback of the case alone", function()
    local line
    local result = one(function(w)
      w.it("is wrong", function()
        line = debug.getinfo(1).currentline + 1
        assert.equal(1, 2)
      end)
    end)
    assert.equal("failed", result.status)
    assert.equal("equal: want 1, got 2", result.message)
    assert.equal(line, result.line)
    assert.matches("spec_spec.lua", result.file)
    assert.matches("^\t[^\n]*spec_spec.lua:" .. line .. ":[^\n]*$", result.traceback)
  end)

  it("fails where the host raised", function()
    local result = one(function(w)
      w.it("sleeps", function()
        std.time.sleep(-1)
      end)
    end)
    assert.matches("std.time.sleep: argument 1", result.message)
    assert.matches("spec_spec.lua", result.file)
  end)

  it("does not stop the others", function()
    local results = run(function(w)
      w.it("a", function() error({}) end)
      w.it("b", function() error() end)
      w.it("c", nothing)
    end)
    assert.equal("failed", results[1].status)
    assert.equal("raised nil", results[2].message)
    assert.equal("passed", results[3].status)
  end)

  it("may sleep and join tasks, whose failures are its own", function()
    local result = one(function(w)
      w.it("waits", function()
        local task = std.task.spawn(function()
          std.task.sleep(1)
          assert.equal("a", "b")
        end)
        task:join()
      end)
    end)
    assert.equal('equal: want "a", got "b"', result.message)
  end)

  it("ends after its tasks, which a failure cancels", function()
    local ended
    local results = run(function(w)
      w.it("spawns", function()
        std.task.spawn(function()
          std.task.sleep(1)
          ended = true
        end)
      end)
      w.it("fails", function()
        std.task.spawn(std.task.sleep, { name = "waits for ever" })
        std.task.spawn(function() std.task.sleep(3600000) end)
        error("enough")
      end)
    end)
    assert.is_true(ended)
    assert.equal("passed", results[1].status)
    assert.matches("enough", results[2].message)
  end)

  it("has a name of its own in its block", function()
    local results = run(function(w)
      w.describe("a", function()
        w.it("is", nothing)
      end)
      w.describe("b", function()
        w.it("is", nothing)
        w.it("is", nothing)
        w.it("is not reached", nothing)
      end)
      w.pending("is")
    end)
    assert.same({ "a is", "b is", "b is described", "is" }, names(results))
    assert.matches('spec_spec.lua:%d+: it: "is" stands in this block already, at line %d+',
      results[3].message)
    local w = new_suite().words
    w.it("x", nothing)
    assert.errors_at_line(function() w.pending("x") end, 0,
      'pending: "x" stands in this block already, at line')
  end)

  it("wants a name and a function", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.it(5, nothing) end, 0,
      "it: got number, want a name (a string)")
    assert.errors_at_line(function() w.it("x") end, 0,
      "it: got nil, want a function; pending(name) is a case to come")
  end)
end)

describe("before_each", function()
  local order
  local function note(what)
    return function() order[#order + 1] = what end
  end

  it("runs the outer hooks first, and for every case anew", function()
    order = {}
    run(function(w)
      w.before_each(note("outer"))
      w.describe("block", function()
        w.before_each(note("inner"))
        w.it("one", note("one"))
        w.it("two", note("two"))
      end)
    end)
    assert.same({ "outer", "inner", "one", "outer", "inner", "two" }, order)
  end)

  it("fails the case when it raises, and the body does not run", function()
    order = {}
    local result = one(function(w)
      w.before_each(function() error("no setup") end)
      w.after_each(note("after"))
      w.it("case", note("body"))
    end)
    assert.matches("before_each: .*no setup", result.message)
    assert.same({ "after" }, order)
  end)

  it("wants a function", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.before_each() end, 0,
      "before_each: got nil, want a function")
  end)
end)

describe("after_each", function()
  it("runs the inner hooks first, and after a failure too", function()
    local order = {}
    local function note(what)
      return function() order[#order + 1] = what end
    end
    local result = one(function(w)
      w.after_each(note("outer"))
      w.describe("block", function()
        w.after_each(note("inner 1"))
        w.after_each(note("inner 2"))
        w.it("case", function() error("bad") end)
      end)
    end)
    assert.equal("failed", result.status)
    assert.same({ "inner 2", "inner 1", "outer" }, order)
  end)

  it("fails a case that passed, and adds to one that failed", function()
    local results = run(function(w)
      w.after_each(function() error("left over", 0) end)
      w.it("passes", nothing)
      w.it("fails", function() error("first", 0) end)
    end)
    assert.equal("after_each: left over", results[1].message)
    assert.equal("first\nafter_each: left over", results[2].message)
  end)

  it("wants a function", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.after_each("x") end, 0,
      "after_each: got string, want a function")
  end)
end)

describe("pending", function()
  it("is a case to come, with or without a body", function()
    local ran = false
    local results = run(function(w)
      w.pending("later")
      w.pending("later too", function() ran = true end)
    end)
    assert.equal("pending", results[1].status)
    assert.equal("pending", results[2].status)
    assert.is_false(ran)
  end)

  it("ends the case it is said in, with the reason", function()
    local ran = false
    local result = one(function(w)
      w.it("needs more", function()
        w.pending("no network here")
        ran = true
      end)
    end)
    assert.equal("pending", result.status)
    assert.equal("no network here", result.message)
    assert.is_false(ran)
  end)

  it("wants a name outside a case", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.pending() end, 0, "pending: got nil, want a name (a string)")
    assert.errors_at_line(function() w.pending("x", 1) end, 0,
      "pending: got number, want a function or nothing")
  end)
end)
