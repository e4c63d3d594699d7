-- Waits overlap, and a scope returns what its body returns.
local task = require("std.task")
local order = {}
local a, b = task.scope(function(s)
  s:spawn(function() repeat task.sleep(1) until #order == 2; order[#order + 1] = "slow" end)
  s:spawn(function() task.sleep(1); order[#order + 1] = "fast" end)
  order[#order + 1] = "body"
  return 1, 2
end)
assert(a == 1 and b == 2 and table.concat(order, ",") == "body,fast,slow", table.concat(order, ","))
---
-- join answers the values or raises the very error; std is global and required.
assert(require("std").task == std.task)
local t = {}
std.task.scope("named", function(s)
  local h = s:spawn(function() return 1, nil, 3 end)
  assert(select("#", h:join()) == 3 and select(3, std.task.join(h)) == 3)
  local bad = s:spawn(function() error(t) end, { name = "bad" })
  local ok, e = pcall(function() return bad:join() end)
  assert(not ok and e == t)
  assert(tostring(bad) == 'task "bad"')
end)
---
-- An error of the body cancels the siblings and is raised again.
local cancelled
local ok, e = pcall(std.task.scope, function(s)
  s:spawn(function()
    local ok, e = pcall(std.task.sleep, 60000)
    cancelled = tostring(e)
  end)
  std.task.yield()
  error("body failed", 0)
end)
assert(e == "body failed" and cancelled:find("task cancelled"), cancelled)
---
local ok, e = pcall(std.task.scope, function(s)
  local h = s:spawn(function() std.task.sleep(60000) end)
  h:cancel()
  h:join()
end)
assert(not ok and tostring(e):find("task cancelled") and e.kind == "cancelled", tostring(e))
---
-- scope:cancel, checkpoint, cancelled, current.
assert(std.task.current() == nil and std.task.cancelled() == false)
std.task.checkpoint()
local seen = {}
std.task.scope(function(s)
  s:spawn(function()
    local me = std.task.current()
    assert(me.name == "worker" and me.cancelled == false and me.id > 0)
    while not std.task.cancelled() do std.task.yield() end
    seen.flag = std.task.current().cancelled
    seen.ok, seen.err = pcall(std.task.checkpoint)
  end, { name = "worker" })
  std.task.yield()
  s:cancel()
end)
assert(seen.flag == true and seen.ok == false and tostring(seen.err):find("task cancelled"))
---
-- with_timeout: in time, too late but polite, and never.
assert(std.task.with_timeout(5000, function(scope)
  local h = scope:spawn(function() return "child" end)
  return h:join()
end) == "child")
local noticed
local ok, e = pcall(std.task.with_timeout, 200, function()
  local ok, e = pcall(std.task.sleep, 60000)
  noticed = tostring(e)
end)
assert(not ok and tostring(e):find("exceeded 200 ms") and e.kind == "timeout", tostring(e))
assert(noticed:find("task cancelled"))
local n = 0
local ok, e = pcall(std.task.with_timeout, 5, function()
  while true do pcall(function() n = n + 1 end) end
end, { grace_ms = 5 })
assert(not ok and tostring(e):find("exceeded"), tostring(e))
assert(n > 0)
---
-- An abort takes the tasks that were spawned inside with it.
local ok, e = pcall(std.task.with_timeout, 5, function(scope)
  scope:spawn(function() while true do pcall(std.task.yield) end end)
  std.task.spawn(function() while true do pcall(std.task.sleep, 1) end end)
  while true do pcall(std.task.yield) end
end, { grace_ms = 5 })
assert(not ok and tostring(e):find("exceeded"), tostring(e))
---
-- An error of fn is its own when it is in time.
local ok, e = pcall(std.task.with_timeout, 60000, function() error("own", 0) end)
assert(not ok and e == "own")
---
-- spawn without a scope ends with the innermost one.
local done = false
std.task.scope(function() std.task.spawn(function() std.task.sleep(2); done = true end) end)
assert(done)
---
-- Tasks in coroutines and coroutines in tasks.
local co = coroutine.wrap(function()
  local v = std.task.scope(function(s)
    local h = s:spawn(function()
      local inner = coroutine.wrap(function() std.task.sleep(1); coroutine.yield("inner") end)
      return inner()
    end)
    coroutine.yield("paused")
    return h:join()
  end)
  return v
end)
assert(co() == "paused" and co() == "inner")
---
std.task.scope(function(s)
  s:spawn(function()
    error("in the child") --> error: in the child
  end):join()
end)
---
std.task.sleep(-1) --> error: std.task.sleep: argument 1 (ms): got -1, want milliseconds (a number)
---
std.task.spawn(function() end, { nmae = "x" }) --> error: std.task.spawn: unknown option "nmae" (did you mean "name"?)
---
std.task.spawn(function() end, { name = 3 }) --> error: std.task.spawn: option "name": got 3, want a string
---
std.task.spawn("x") --> error: std.task.spawn: argument 1 (fn): got "x", want a function
---
std.task.join({}) --> error: std.task.join: argument 1 (task): got a table, want a task (what spawn returned)
---
local late
std.task.scope(function(s) late = s end)
late:spawn(function() end) --> error: scope:spawn: scope "scope" has ended
---
local h = std.task.spawn(function() end)
h.name = 1 --> error: task: field "name" cannot be set, a task is read-only
---
local h = std.task.spawn(function() end)
h.join() --> error: task:join: got nil as receiver, want a task (call it with a colon)
---
local h = std.task.spawn(function() end)
h:jion() --> error: attempt to call "jion", which is not a function (did you mean "join"?)
---
local me
std.task.scope(function(s)
  me = s:spawn(function()
    std.task.yield()
    me:join() --> error: task:join: "task 2" cannot be joined here, it waits for the running task
  end)
  me:join()
end)
---
-- Tasks that would wait for each other do not: the last of the ring is told.
local ok, why = pcall(std.task.scope, function(scope)
  local a, b, c
  a = scope:spawn(function() std.task.sleep(5) return b:join() end)
  b = scope:spawn(function() std.task.sleep(5) return c:join() end)
  c = scope:spawn(function() std.task.sleep(20) return a:join() end)
  return a:join()
end)
assert(not ok and tostring(why):find("cannot be joined here, it waits for the running task", 1, true), why)
---
-- A task that waits for one whose child waits for it is told, too.
local ok, why = pcall(std.task.scope, function(scope)
  local a
  local b = scope:spawn(function()
    std.task.scope(function(inner)
      local child = inner:spawn(function() std.task.sleep(20) return a:join() end)
      return child:join()
    end)
  end)
  a = scope:spawn(function() return b:join() end)
  return a:join()
end)
assert(not ok and tostring(why):find("cannot be joined here", 1, true), why)
