-- Tasks within a case: what they raise is the case's own, joined or not.

-- The result of one case with this body.
local function case(body)
  local suite = require("spec.suite").new()
  suite.words.it("runs", body)
  return suite.run()[1]
end

local function here()
  return debug.getinfo(2).currentline
end

describe("a task that nobody joined", function()
  it("fails the case where it failed", function()
    local line
    local result = case(function()
      std.task.spawn(function()
        std.task.sleep(1)
        line = here() + 1
        assert.equal("a", "b")
      end, { name = "late" })
    end)
    assert.equal("failed", result.status)
    assert.equal('task "late": equal: want "a", got "b"', result.message)
    assert.equal(line, result.line)
    assert.matches("spec_task_spec.lua", result.file)
    assert.matches('(spawned as "late" by)', result.traceback)
  end)

  it("fails it from a scope within, and from a task within", function()
    local result = case(function()
      std.task.scope(function(scope)
        scope:spawn(function() error({ code = 3 }) end, { name = "inner" })
      end)
    end)
    assert.equal('task "inner": raised { code = 3 }', result.message)
    result = case(function()
      local outer = std.task.spawn(function()
        std.task.spawn(function() error("deep", 0) end, { name = "deep" })
      end)
      outer:join()
    end)
    assert.equal('task "deep": deep', result.message)
  end)

  it("adds to a case that failed, and fails one that is pending", function()
    local function spawned()
      std.task.spawn(function() error("late", 0) end, { name = "t" })
      std.task.sleep(1)
    end
    local result = case(function()
      spawned()
      error("first", 0)
    end)
    assert.equal('first\ntask "t": late', result.message)
    result = case(function()
      spawned()
      pending("later")
    end)
    assert.equal("failed", result.status)
    assert.equal('task "t": late', result.message)
  end)

  it("may end the case as pending", function()
    local suite = require("spec.suite").new()
    suite.words.it("runs", function()
      std.task.spawn(function() suite.words.pending("no network") end)
    end)
    local result = suite.run()[1]
    assert.equal("pending", result.status)
    assert.equal("no network", result.message)
  end)

  it("is no failure when it was cancelled", function()
    local result = case(function()
      std.task.scope(function(scope)
        scope:spawn(function() std.task.sleep(3600000) end)
        std.task.yield()
        scope:cancel()
      end)
    end)
    assert.equal("passed", result.status)
  end)

  it("is no failure when it was joined", function()
    local result = case(function()
      local task = std.task.spawn(function() error("known") end)
      assert.is_false(pcall(std.task.join, task))
    end)
    assert.equal("passed", result.status)
  end)
end)

describe("std.task.unjoined", function()
  it("tells errors that nobody joined, and answers what was told before", function()
    local told
    local before = std.task.unjoined(function(raised, trace, name)
      told = { raised, trace, name }
    end)
    local raised = {}
    std.task.scope(function(scope)
      scope:spawn(function() error(raised) end, { name = "lost" })
    end)
    local mine = std.task.unjoined(before)
    assert.equal(raised, told[1])
    assert.matches("spec_task_spec.lua:%d+: in function", told[2])
    assert.equal("lost", told[3])
    assert.is_function(mine)
    assert.equal(before, std.task.unjoined(before))
  end)

  it("wants a function or nothing", function()
    assert.errors_at_line(function() std.task.unjoined(5) end, 0,
      "std.task.unjoined: argument 1 (fn): got 5, want a function")
    assert.errors_at_line(function() std.task.unjoined(false) end, 0,
      "std.task.unjoined: argument 1 (fn): got false, want a function")
  end)
end)
