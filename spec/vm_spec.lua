-- The Lua of the host: 5.1 with goto, and what the host makes right in it.

local knl = require("knl")

describe("pcall", function()
  it("leaves the variables of live functions shared", function()
    local x = 1
    local function read() return x end
    pcall(error, "e")
    x = 2
    assert.equal(2, read())
  end)

  it("passes values and errors as they are", function()
    local t = {}
    assert.same({ true, 1, nil, 3 }, { pcall(function(...) return ... end, 1, nil, 3) })
    local ok, raised = pcall(error, t)
    assert.is_false(ok)
    assert.equal(t, raised)
    assert.equal(2, select("#", pcall(error)))
  end)

  it("is an ordinary error for a recursion without end", function()
    local function f() return 1 + f() end
    assert.has_error(f, "stack overflow")
  end)
end)

describe("xpcall", function()
  it("gives the handler the frames of the error, and a closure its own variables", function()
    local kept
    local function broken()
      local mine = "mine"
      kept = function() return mine end
      error("e")
    end
    local ok, trace = xpcall(broken, debug.traceback)
    assert.is_false(ok)
    assert.matches("vm_spec.lua:%d+: e\nstack traceback:", trace)
    assert.matches("\n\t[^\n]*vm_spec.lua:%d+: in function[^\n]*\n\t%[Go%]: in function 'xpcall'",
      trace)
    local function clobber(...) return select("#", ...) end
    clobber(1, 2, 3, 4)
    assert.equal("mine", kept())
  end)
end)

describe("error", function()
  it("honours its level", function()
    local function at_caller() error("m", 2) end
    assert.errors_at_line(function()
      local x = 1
      at_caller()
      return x
    end, 2, "m")
    assert.equal("m", assert.has_error(function() error("m", 0) end))
  end)

  it("raises any value", function()
    assert.equal(5, assert.has_error(function() error(5, 0) end))
    assert.is_nil(assert.has_error(function() error(nil) end))
  end)
end)

describe("a coroutine", function()
  it("yields under pcall, in a metamethod and in a comparator", function()
    local seen = {}
    local co = coroutine.wrap(function()
      pcall(function() coroutine.yield("pcall") end)
      local t = setmetatable({}, { __index = function(_, key) return coroutine.yield(key) end })
      seen[#seen + 1] = t.key
      table.sort({ 2, 1 }, function(a, b)
        coroutine.yield("sort")
        return a < b
      end)
      return "end"
    end)
    assert.same({ "pcall", "key", "sort", "end" }, { co(), co(), co("value"), co() })
    assert.same({ "value" }, seen)
  end)

  it("waits in the host as plain code does", function()
    local co = coroutine.wrap(function()
      std.time.sleep(0.001)
      coroutine.yield(knl.open{ store = "mem" }:len())
    end)
    assert.equal(1, co())
  end)

  it("that raises gives the error to who resumed it", function()
    local t = {}
    local ok, raised = coroutine.resume(coroutine.create(function() error(t) end))
    assert.is_false(ok)
    assert.equal(t, raised)
    assert.has_error(function() coroutine.yield(1) end, "attempt to yield from outside a coroutine")
  end)
end)

describe("numbers", function()
  it("are read as Lua reads them", function()
    assert.equal(1000, tonumber("1e3"))
    assert.equal(-16, tonumber("-0x10"))
    assert.equal(255, tonumber("ff", 16))
    assert.is_nil(tonumber("inf"))
    assert.is_nil(tonumber("1_000"))
    assert.equal(1 / 0, math.huge)
  end)

  it("print whole when they are whole", function()
    assert.equal("1000000000000", tostring(1e12))
    assert.equal("1.5", tostring(1.5))
    assert.has_error(function() return ("%d"):format(3.7) end, "3.7")
  end)
end)

describe("an assignment of several places", function()
  it("evaluates everything before it sets the first", function()
    local a, b = 1, 2
    a, b = b, a
    assert.same({ 2, 1 }, { a, b })
    local n, t = 0, { 7 }
    n, t[1] = t[1], n + 1
    assert.same({ 7, { 1 } }, { n, t })
    local i, u = 3, {}
    i, u[i] = i + 1, "at 3"
    assert.same({ 4, "at 3" }, { i, u[3] })
  end)
end)

describe("goto", function()
  it("continues a loop", function()
    local odd = {}
    for i = 1, 5 do
      if i % 2 == 0 then
        goto continue
      end
      odd[#odd + 1] = i
      ::continue::
    end
    assert.same({ 1, 3, 5 }, odd)
  end)
end)

describe("what reaches past the host", function()
  it("is not there", function()
    for _, name in ipairs{ "dofile", "loadfile", "module", "newproxy" } do
      assert.is_nil(_G[name], name)
    end
    for _, name in ipairs{ "execute", "remove", "rename", "tmpname", "setlocale" } do
      assert.is_nil(os[name], name)
    end
    for name in pairs(io) do assert.equal("write", name) end
    assert.is_nil(package.loadlib)
    assert.is_nil(debug.sethook)
  end)

  it("io.write takes what has a text, and nothing else", function()
    assert.is_true(io.write("", ""))
    assert.errors_at_line(function() io.write("", {}) end, 0,
      "io.write: argument 2: got a table, want a string or a number")
    assert.errors_at_line(function() io.write(nil) end, 0, "got nil, want a string or a number")
  end)

  it("os.exit says how a script ends instead", function()
    assert.has_error(function() os.exit(1) end, "return from the script")
  end)
end)

describe("require", function()
  it("runs a module once and answers it again", function()
    assert.equal(require("tools"), require("tools"))
    assert.equal(require("std").json, std.json)
    assert.equal(require("knl"), knl)
  end)

  it("names where it looked and what is near", function()
    assert.errors_at_line(function() require("tols") end, 0,
      'module "tols" not found (did you mean "tools"?)')
    assert.errors_at_line(function() require("../x") end, 0,
      'got "../x", want words joined by dots')
    assert.errors_at_line(function() require(5) end, 0, "got 5, want the name of a module")
  end)
end)

describe("an error of the host", function()
  it("is a value with four fields that reads as its text", function()
    local raised = assert.has_error(function() std.json.decode("[") end)
    assert.same({ "validation", "std.json.decode", false },
      { raised.kind, raised.method, raised.retryable })
    assert.equal("std.json.decode: " .. raised.message, tostring(raised))
    assert.matches("^got: std.json.decode: ", "got: " .. raised)
    assert.equal("error", getmetatable(raised))
    assert.errors_at_line(function() raised.kind = "x" end, 0, 'field "kind" cannot be set')
  end)

  it("passes through pcall, tasks and callbacks as the same value", function()
    local function raise() std.json.decode("[") end
    local _, first = pcall(raise)
    local _, again = pcall(function() error(first) end)
    assert.equal(first, again)
    local h = std.task.spawn(function() error(first) end)
    assert.equal(first, assert.has_error(function() h:join() end))
  end)
end)
