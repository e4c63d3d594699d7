-- std.task: tasks that end before the scope that spawned them.

local task = std.task

local function bad(text, fn)
  return assert.errors_at_line(fn, 0, text)
end

describe("std.task.scope", function()
  it("answers what its function answers, after its tasks", function()
    local order = {}
    local a, b, c = task.scope("named", function(scope)
      scope:spawn(function()
        task.sleep(2)
        order[#order + 1] = "task"
      end)
      order[#order + 1] = "body"
      return 1, nil, 3
    end)
    assert.same({ 1, nil, 3 }, { a, b, c })
    assert.same({ "body", "task" }, order)
  end)

  it("cancels its tasks when its function raises, and raises the same", function()
    local t, cancelled = {}, nil
    assert.equal(t, assert.has_error(function()
      task.scope(function(scope)
        scope:spawn(function()
          local _, err = pcall(task.sleep, 3600000)
          cancelled = err
        end)
        task.yield()
        error(t)
      end)
    end))
    assert.equal("cancelled", cancelled.kind)
    assert.matches("task cancelled", tostring(cancelled))
  end)

  it("wants a function", function()
    bad("std.task.scope: argument 1", function() task.scope() end)
    bad("std.task.scope: argument 2 (fn): got nil, want a function", function() task.scope("x") end)
  end)
end)

describe("std.task.spawn", function()
  it("starts a task of the innermost scope", function()
    local done = false
    task.scope(function()
      task.spawn(function()
        task.sleep(1)
        done = true
      end)
    end)
    assert.is_true(done)
  end)

  it("overlaps waits, pcall and coroutines included", function()
    local met = 0
    local function meet()
      local co = coroutine.wrap(function()
        return pcall(function()
          met = met + 1
          while met < 2 do
            task.sleep(1)
          end
        end)
      end)
      return co()
    end
    task.scope(function(scope)
      local a, b = scope:spawn(meet), scope:spawn(meet)
      assert.is_true(a:join())
      assert.is_true(b:join())
    end)
  end)

  it("is bounded in a scope", function()
    assert.has_error(function()
      task.scope(function(scope)
        for _ = 1, 5000 do
          scope:spawn(function() task.sleep(3600000) end)
        end
      end)
    end, "live tasks, at most that many")
  end)

  it("wants a function and known options", function()
    bad("std.task.spawn: argument 1 (fn): got nil, want a function", function() task.spawn() end)
    bad('unknown option "nam" (did you mean "name"?)',
      function() task.spawn(print, { nam = "x" }) end)
    bad('option "name": got 5, want a string', function() task.spawn(print, { name = 5 }) end)
  end)
end)

describe("std.task.join", function()
  it("answers every value of the task, again and again", function()
    local h = task.spawn(function() return 1, nil, 3 end)
    assert.equal(3, select("#", task.join(h)))
    assert.equal(3, select(3, task.join(h)))
  end)

  it("raises the very value that the task raised", function()
    local t = {}
    local h = task.spawn(function() error(t) end)
    assert.equal(t, assert.has_error(function() task.join(h) end))
  end)

  it("wants a task, and not one that waits for it", function()
    bad("std.task.join: argument 1 (task): got nil, want a task", function() task.join() end)
    bad("std.task.join: argument 1 (task): got a table, want a task", function() task.join({}) end)
    local h
    h = task.spawn(function() h:join() end, { name = "mirror" })
    assert.has_error(function() h:join() end, '"mirror" cannot be joined here')
  end)
end)

describe("std.task.cancel", function()
  it("ends the waits of a task", function()
    local h = task.spawn(function() task.sleep(3600000) end)
    task.yield()
    task.cancel(h)
    assert.equal("cancelled", assert.has_error(function() task.join(h) end, "task cancelled").kind)
  end)

  it("wants a task", function()
    bad("std.task.cancel: argument 1 (task): got 5, want a task", function() task.cancel(5) end)
  end)
end)

describe("scope:spawn", function()
  it("starts tasks in the order they were spawned", function()
    local order = {}
    task.scope(function(scope)
      for i = 1, 5 do
        scope:spawn(function() order[#order + 1] = i end)
      end
    end)
    assert.same({ 1, 2, 3, 4, 5 }, order)
  end)

  it("is over when the scope has ended", function()
    local kept
    task.scope(function(scope) kept = scope end)
    bad('scope "scope" has ended', function() kept:spawn(print) end)
    bad("as receiver, want a scope", function() kept.spawn(print) end)
  end)
end)

describe("scope:cancel", function()
  it("cancels every task of the scope and not the body", function()
    local n = 0
    task.scope(function(scope)
      for _ = 1, 3 do
        scope:spawn(function()
          if not pcall(task.sleep, 3600000) then
            n = n + 1
          end
        end)
      end
      task.yield()
      scope:cancel()
      task.checkpoint()
    end)
    assert.equal(3, n)
  end)
end)

describe("task:join", function()
  it("is std.task.join as a method", function()
    assert.equal(7, task.spawn(function() return 7 end):join())
    assert.equal('task "worker"', tostring(task.spawn(print,
      { name = "worker" }):join() or task.spawn(function() end, { name = "worker" })))
    bad("as receiver, want a task", function() task.spawn(function() end).join() end)
  end)
end)

describe("task:cancel", function()
  it("is std.task.cancel as a method, and may be said twice", function()
    local h = task.spawn(function() task.sleep(3600000) end)
    h:cancel()
    h:cancel()
    assert.has_error(function() h:join() end, "task cancelled")
  end)
end)

describe("std.task.with_timeout", function()
  it("answers what the function answers in time", function()
    local a, b = task.with_timeout(60000, function(scope)
      return 1, scope:spawn(function() return 2 end):join()
    end)
    assert.same({ 1, 2 }, { a, b })
  end)

  it("raises that the time was exceeded, with kind timeout", function()
    local raised = assert.has_error(function() task.with_timeout(5,
      function() task.sleep(3600000) end) end, "exceeded 5 ms")
    assert.equal("timeout", raised.kind)
  end)

  it("aborts what does not end in its grace", function()
    assert.has_error(function()
      task.with_timeout(1, function()
        while true do
          pcall(task.sleep, 3600000)
        end
      end, { grace_ms = 1 })
    end, "exceeded")
  end)

  it("raises what the function raises", function()
    assert.has_error(function() task.with_timeout(60000, function() error("mine", 0) end) end,
      "mine")
  end)

  it("wants milliseconds and a function", function()
    bad("std.task.with_timeout: argument 1 (ms): got -1, want milliseconds",
      function() task.with_timeout(-1, print) end)
    bad("argument 1 (ms): got NaN, want milliseconds",
      function() task.with_timeout(0 / 0, print) end)
    bad("std.task.with_timeout: argument 2 (fn): got nil, want a function",
      function() task.with_timeout(1) end)
    bad('unknown option "grace"', function() task.with_timeout(1, print, { grace = 1 }) end)
  end)
end)

describe("std.task.sleep", function()
  it("lets others run", function()
    local order = {}
    task.scope(function(scope)
      scope:spawn(function() order[#order + 1] = "other" end)
      task.sleep(1)
      order[#order + 1] = "sleeper"
    end)
    assert.same({ "other", "sleeper" }, order)
  end)

  it("wants milliseconds", function()
    bad("std.task.sleep: argument 1 (ms): got nil, want milliseconds", function() task.sleep() end)
    bad("got -1, want milliseconds", function() task.sleep(-1) end)
    bad('got "1", want milliseconds', function() task.sleep("1") end)
    bad("want milliseconds", function() task.sleep(math.huge) end)
  end)
end)

describe("std.task.yield", function()
  it("lets the tasks that are ready run first", function()
    local ran = false
    task.scope(function(scope)
      scope:spawn(function() ran = true end)
      task.yield()
      assert.is_true(ran)
    end)
  end)
end)

describe("std.task.checkpoint", function()
  it("raises in a cancelled task and does nothing in another", function()
    task.checkpoint()
    local h
    h = task.spawn(function()
      h:cancel()
      task.checkpoint()
    end)
    assert.equal("cancelled", assert.has_error(function() h:join() end, "task cancelled").kind)
  end)
end)

describe("std.task.cancelled", function()
  it("says whether the task was", function()
    assert.is_false(task.cancelled())
    local h
    h = task.spawn(function()
      local before = task.cancelled()
      h:cancel()
      return before, task.cancelled()
    end)
    assert.same({ false, true }, { h:join() })
  end)
end)

describe("std.task.current", function()
  it("is nil in the script and says the name in a task", function()
    assert.is_nil(task.current())
    local h = task.spawn(function() return task.current() end, { name = "worker" })
    local c = h:join()
    assert.same({ "worker", false, "number" }, { c.name, c.cancelled, type(c.id) })
  end)
end)
