-- supervisor.child: a function on a child session with a budget of its own.

local knl = require("knl")
local ports = require("ports")
local supervisor = require("supervisor")
local task = std.task

local function open(amount)
  return knl.open{ store = "mem", budget = { amount = amount or 10, tag = "beats" } }
end

local function budget(amount, refund)
  return { budget = { amount = amount, refund = refund } }
end

local function ending(s)
  local last = s:view("tail", { n = 1 })[1]
  return { last.kind, last.data.reason, last.data.detail }
end

local function count(...)
  return select("#", ...), { ... }
end

describe("supervisor.child", function()
  it("answers every value of its function, nils and their count included", function()
    local function body() return 1, nil, 3, nil end
    local n, values = count(supervisor.child(open(), budget(1), body))
    assert.equal(4, n)
    assert.same({ 1, nil, 3 }, values)
    assert.equal(0, (count(supervisor.child(open(), budget(1), function() end))))
  end)

  it("hands its function a session of its own, below the parent and with its owner", function()
    local up = knl.open{ store = "mem", owner = "ada", budget = { amount = 5 } }
    local id, owner = supervisor.child(up, budget(2), function(c) return c:id(), c:owner() end)
    assert.equal("ada", owner)
    assert.is_false(id == up:id())
    local row = knl.views.tree(up)[2]
    assert.same({ id, up:id() }, { row.session, row.parent })
  end)

  it("closes the child with scope_exit when its function returns", function()
    local seen
    supervisor.child(open(), budget(1), function(c) seen = c end)
    assert.same({ "session_closed", "scope_exit" }, ending(seen))
  end)

  it("closes the child also when its function answers an Outcome that is not ok", function()
    local seen
    local stopped = knl.Outcome.stopped("budget", "beats")
    local got = supervisor.child(open(), budget(1), function(c) seen = c return stopped end)
    assert.equal(stopped, got)
    assert.same({ "session_closed", "scope_exit" }, ending(seen))
  end)

  it("raises the very value that its function raised and closes the child with error", function()
    local seen
    local function raising(v)
      return assert.has_error(function()
        supervisor.child(open(), budget(1), function(c) seen = c error(v, 0) end)
      end)
    end
    local t = setmetatable({}, { __tostring = function() return "my words" end })
    assert.equal(t, raising(t))
    assert.equal("error", ending(seen)[2])
    assert.matches("my words$", ending(seen)[3])
    assert.equal("a text", raising("a text"))
    assert.same({ "session_closed", "error", "a text" }, ending(seen))
    assert.equal(false, raising(false))
  end)

  it("raises what its function raised behind nil and err of its own", function()
    local v, err = supervisor.child(open(), budget(1), function() return nil, "mine" end)
    assert.is_nil(v)
    assert.equal("mine", err)
  end)

  it("leaves a child alone that its function has closed", function()
    local seen
    supervisor.child(open(), budget(1), function(c) seen = c c:close("done", "early") end)
    assert.same({ "session_closed", "done", "early" }, ending(seen))
    assert.equal(1, #seen:scan{ kinds = { "session_closed" } })
  end)

  it("answers nil and a refusal when the parent has too little, and records it", function()
    local up, ran = open(10), false
    local v, err = supervisor.child(up, budget(11), function() ran = true end)
    assert.is_nil(v)
    assert.is_false(ran)
    assert.same({ "refused", "open", false }, { err.kind, err.method, err.retryable })
    assert.matches("has 10 left, want 11", err.message)
    assert.equal(10, up:remaining())
    assert.equal(1, #knl.views.tree(up))
    local refused = up:view("tail", { n = 1 })[1]
    assert.same({ "budget_refused", 11, 10 },
      { refused.kind, refused.data.amount, refused.data.remaining })
  end)

  it("answers nil and why when the parent has ended, is fenced or has no budget", function()
    local ended, stale, poor = open(), open(), knl.open{ store = "mem" }
    ended:close()
    knl.resume{ session = stale:id(), store = "mem" }
    for kind, up in pairs{ closed = ended, fenced = stale, validation = poor } do
      local v, err = supervisor.child(up, budget(1), function() end)
      assert.is_nil(v)
      assert.equal(kind, err.kind)
    end
  end)

  it("answers nil and an error for a table that only looks like a session", function()
    local fake = setmetatable({}, { __index = function() return function() end end })
    local v, err = supervisor.child(fake, budget(1), function() end)
    assert.is_nil(v)
    assert.is_false(err.retryable)
    assert.matches("parent", err.message)
  end)

  it("moves the budget in one record on each ledger, the tag the parent's unless given", function()
    local up = open(10)
    local function granted(tag)
      local opts = { budget = { amount = 3, tag = tag } }
      return supervisor.child(up, opts, function(c)
        local grant = c:scan{ kinds = { "budget_granted" } }[1]
        return { grant.data.amount, grant.data.tag, c:remaining() }
      end)
    end
    assert.same({ 3, "beats", 3 }, granted())
    assert.same({ 3, "pages", 3 }, granted("pages"))
    assert.equal(4, up:remaining())
    local moves = {}
    for _, ev in ipairs(up:scan{ kinds = { "budget_reserved" } }) do
      moves[#moves + 1] = ev.data.amount
    end
    assert.same({ 3, 3 }, moves)
  end)

  it("takes anything that can be called for its function", function()
    local callable = setmetatable({}, { __call = function(_, c) return c:remaining() end })
    assert.equal(2, supervisor.child(open(), budget(2), callable))
  end)

  it("lets the child beat on its own units", function()
    local up = open(10)
    local device = knl.device{ llm = ports.script{ { text = "found" } }:open() }
    local text = supervisor.child(up, budget(4, true), function(c)
      c:append{ kind = "msg_user", data = { content = "look" } }
      return knl.beat(c, device).out.content[1].text
    end)
    assert.equal("found", text)
    assert.equal(9, up:remaining())
  end)

  it("nests, and a grandchild pays from its parent", function()
    local up = open(10)
    local left = supervisor.child(up, budget(6), function(c)
      supervisor.child(c, budget(4), function(g) g:spend(1) end)
      local _, err = supervisor.child(c, budget(3), function() end)
      assert.equal("refused", err.kind)
      return c:remaining()
    end)
    assert.equal(2, left)
    assert.equal(3, #knl.views.tree(up))
  end)

  it("closes the child of a task that was cancelled, whatever its function made of it", function()
    for _, body in ipairs{
      function() std.time.sleep(3600) end,
      function() pcall(std.time.sleep, 3600) return "kept" end,
    } do
      local up, seen = open(10), nil
      local h = task.spawn(function()
        return supervisor.child(up, budget(4, true), function(c)
          seen = c
          return body()
        end)
      end)
      repeat task.sleep(1) until seen
      h:cancel()
      pcall(h.join, h)
      assert.equal("session_closed", ending(seen)[1])
      assert.equal(10, up:remaining())
    end
  end)

  it("closes the child of a task that was aborted, and fences what would still write", function()
    local up, seen = open(10), nil
    assert.has_error(function()
      task.with_timeout(100, function()
        supervisor.child(up, budget(4, true), function(c)
          seen = c
          while true do
            pcall(task.sleep, 3600000)
          end
        end)
      end, { grace_ms = 1 })
    end, "exceeded")
    assert.same({ "session_closed", "error", "aborted" }, ending(seen))
    assert.equal(10, up:remaining())
    local late = assert.has_error(function() seen:append{ kind = "late" } end)
    assert.equal("fenced", knl.error(late).kind)
  end)

  it("closes a child whose parent's function raises inside it", function()
    local seen
    assert.has_error(function()
      knl.session({ store = "mem", budget = { amount = 5 } }, function(s)
        supervisor.child(s, budget(2), function(c)
          seen = c
          s:close("early")
          error("behind it")
        end)
      end)
    end, "behind it")
    assert.equal("session_closed", ending(seen)[1])
  end)

  it("raises that it was fenced when another driver took the child over meanwhile", function()
    local raised = assert.has_error(function()
      supervisor.child(open(), budget(1), function(c)
        knl.resume{ session = c:id(), store = c }
        return "unsaid"
      end)
    end)
    assert.equal("fenced", knl.error(raised).kind)
  end)
end)
