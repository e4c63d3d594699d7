-- The vocabulary itself. A suite inside a case is one of its own.

local new_suite = require("spec.suite").new
local show = require("spec.show")

-- Runs what body describes in a suite of its own.
local function run(body, choice)
  local suite = new_suite()
  body(suite.words)
  return suite.run(choice)
end

-- The one case that body describes.
local function one(body)
  local results = run(body)
  assert.equal(1, #results)
  return results[1]
end

local function nothing() end

-- Wants an assertion to fail with exactly these words.
local function fails(text, fn)
  local raised = assert.has_error(fn)
  assert.equal(text, raised.message)
end

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
    assert.same({ "broken was described", "broken is described", "runs all the same" }, names(results))
    assert.equal("failed", results[2].status)
    assert.matches("spec_spec.lua:%d+: no further", results[2].message)
    assert.equal("passed", results[3].status)
  end)

  it("refuses what is no name and no function, at the caller's line", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.describe(nil, nothing) end, 0, "describe: got nil, want a name (a string)")
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

  it("wants a name and a function", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.it(5, nothing) end, 0, "it: got number, want a name (a string)")
    assert.errors_at_line(function() w.it("x") end, 0, "it: got nil, want a function; pending(name) is a case to come")
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
    assert.errors_at_line(function() w.before_each() end, 0, "before_each: got nil, want a function")
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
    assert.errors_at_line(function() w.after_each("x") end, 0, "after_each: got string, want a function")
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
    assert.errors_at_line(function() w.pending("x", 1) end, 0, "pending: got number, want a function or nothing")
  end)
end)

describe("tags", function()
  local function body(w)
    w.describe("disk", function()
      w.tags("slow", "disk")
      w.describe("deep", function()
        w.it("a", nothing)
      end)
    end)
    w.describe("net", function()
      w.tags "slow"
      w.it("b", nothing)
    end)
    w.it("c", nothing)
  end

  it("choose the cases of their block and of the blocks in it", function()
    assert.same({ "disk deep a", "net b" }, names(run(body, { tags = { "slow" } })))
    assert.same({ "disk deep a" }, names(run(body, { tags = { "disk" } })))
    assert.same({ "net b" }, names(run(body, { tags = { "slow" }, skip_tags = { "disk" } })))
    assert.same({ "c" }, names(run(body, { skip_tags = { "slow" } })))
    assert.same({}, run(body, { tags = { "none" } }))
  end)

  it("stand beside a text that the full name contains", function()
    assert.same({ "disk deep a" }, names(run(body, "deep a")))
    assert.same({ "net b" }, names(run(body, { text = "net" })))
    assert.equal(3, #run(body, ""))
  end)

  it("are strings, and the choice has no other keys", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.tags("a", 2) end, 0, "tags: got number, want names (strings)")
    assert.has_error(function() run(body, { tag = { "slow" } }) end, 'unknown option "tag" (known: skip_tags, tags, text)')
  end)
end)

describe("spy", function()
  it("remembers its calls and answers what its function answers", function()
    local double = spy(function(a, b) return b, a end)
    local x, y = double(1, nil)
    assert.is_nil(x)
    assert.equal(1, y)
    double()
    assert.same({ { n = 2, 1 }, { n = 0 } }, double.calls)
  end)

  it("answers nothing without a function, and may stand where a function may", function()
    local double = spy()
    assert.equal(0, select("#", double()))
    pcall(double, "x")
    assert.equal("x", double.calls[2][1])
  end)

  it("wants a function", function()
    assert.errors_at_line(function() spy(5) end, 0, "spy: got number, want a function or nothing")
  end)
end)

describe("stub", function()
  local t = { f = function() return "real" end }

  it("stands in for a field", function()
    local double = stub(t, "f", function() return "stub" end)
    assert.equal("stub", t.f(1))
    assert.equal(1, #double.calls)
  end)

  it("is gone when the case ends", function()
    assert.equal("real", t.f())
  end)

  it("stacks, and the first value comes back", function()
    local u = { g = 1 }
    one(function(w)
      w.it("stubs twice", function()
        stub(u, "g")
        stub(u, "g")
        error("and fails")
      end)
    end)
    assert.equal(1, u.g)
  end)

  it("refuses what is no table, no field, no function", function()
    assert.errors_at_line(function() stub(nil, "f") end, 0, "stub: argument 1: got nil, want a table")
    assert.errors_at_line(function() stub(t, "ff") end, 0, 'stub: the table has no "ff", nothing to stand in for')
    assert.errors_at_line(function() stub(t, "f", 1) end, 0, "stub: argument 3: got number, want a function or nothing")
  end)
end)

describe("assert", function()
  it("stays the plain assert", function()
    local a, b, c = assert(1, nil, 3)
    assert.same({ 1, nil, 3 }, { a, b, c })
    local here = debug.getinfo(1).currentline
    assert.errors_at_line(function() assert(false, "why") end, 0, ("spec_spec.lua:%d: why"):format(here + 1))
    assert.errors_at_line(function() assert(nil) end, 0, "assertion failed!")
    local t = {}
    assert.equal(t, assert.has_error(function() assert(false, t) end))
  end)

  it("names its words when one is unknown", function()
    assert.errors_at_line(function() assert.equals(1, 1) end, 0, "assert.equals: no such assertion (known: equal, ")
  end)
end)

describe("assert.equal", function()
  it("wants the very value", function()
    assert.equal(1, 1)
    assert.equal("a", "a")
    fails('equal: want 1, got "1"', function() assert.equal(1, "1") end)
    fails("equal: want nil, got false", function() assert.equal(nil, false) end)
    fails("equal: want the very value, got one like it", function() assert.equal({}, {}) end)
  end)

  it("puts a note in front", function()
    fails("count: equal: want 1, got 2", function() assert.equal(1, 2, "count") end)
  end)

  it("shows the line where long texts differ", function()
    fails('equal: line 2: want "two", got "2"', function() assert.equal("one\ntwo\nthree", "one\n2\nthree") end)
    fails('equal: line 2: want the end, got ""', function() assert.equal("a", "a\n") end)
  end)
end)

describe("assert.same", function()
  it("looks into tables, whatever their metatables are", function()
    assert.same({ 1, { a = { true } } }, { 1, { a = { true } } })
    assert.same({}, std.json.decode("[]"))
    assert.same(0 / 0, 0 / 0)
    local a, b = {}, {}
    a.self, b.self = a, b
    assert.same(a, b)
  end)

  it("names every place that differs", function()
    fails("same: .a[2].b: want 1, got 2", function()
      assert.same({ a = { 0, { b = 1 } } }, { a = { 0, { b = 2 } } })
    end)
    fails('same: \n  [1]: want "x", got nil\n  .k: want nil, got { 1 }\n  ["odd key"]: want true, got false', function()
      assert.same({ "x", ["odd key"] = true }, { k = { 1 }, ["odd key"] = false })
    end)
  end)

  it("shows twelve places and counts the rest", function()
    local want = {}
    for i = 1, 20 do
      want[i] = i
    end
    local raised = assert.has_error(function() assert.same(want, {}) end)
    assert.matches("[12]: want 12, got nil\n  and 8 more", raised.message)
  end)

  it("writes values on one line, keys sorted, cut between characters", function()
    assert.equal('{ "x", { b = 1 }, [7] = true, a = "\\n\\"", ["b c"] = {} }',
      show.show({ "x", { b = 1 }, [7] = true, a = '\n"', ["b c"] = {} }))
    local t = {}
    t.t = t
    assert.equal("{ t = { itself } }", show.show(t))
    assert.equal('"' .. ("é"):rep(119) .. "…", show.show(("é"):rep(500)))
    assert.equal("null", show.show(std.json.decode("null")))
  end)
end)

describe("assert.is_true", function()
  it("wants true and nothing like it", function()
    assert.is_true(true)
    fails("is_true: want true, got 1", function() assert.is_true(1) end)
    fails("so: is_true: want true, got nil", function() assert.is_true(nil, "so") end)
  end)
end)

describe("assert.is_false", function()
  it("wants false and nothing like it", function()
    assert.is_false(false)
    fails("is_false: want false, got nil", function() assert.is_false(nil) end)
  end)
end)

describe("assert.is_nil", function()
  it("wants nil", function()
    assert.is_nil(nil)
    fails("is_nil: want nil, got false", function() assert.is_nil(false) end)
  end)
end)

describe("assert.truthy", function()
  it("wants neither nil nor false", function()
    assert.truthy(0)
    assert.truthy("")
    fails("truthy: got nil", function() assert.truthy(nil) end)
    fails("truthy: got false", function() assert.truthy(false) end)
  end)
end)

describe("assert.matches", function()
  it("takes a text as it stands and a pattern", function()
    assert.matches("a.c", "abc")
    assert.matches("f(x) [", "call f(x) [1]")
    fails('matches: want "x", got "abc"', function() assert.matches("x", "abc") end)
    fails('matches: want "x", got 5', function() assert.matches("x", 5) end)
    fails('matches: want "[", got "abc"', function() assert.matches("[", "abc") end)
  end)

  it("wants a pattern", function()
    assert.errors_at_line(function() assert.matches(nil, "abc") end, 0, "assert.matches: argument 1: got nil, want a pattern")
  end)
end)

describe("assert.near", function()
  it("wants a number that is not too far away", function()
    assert.near(1, 1.5, 0.5)
    fails("near: want 1 ± 0.5, got 1.6", function() assert.near(1, 1.6, 0.5) end)
    fails("near: want 1 ± 0.5, got nan", function() assert.near(1, 0 / 0, 0.5) end)
    fails('near: want 1 ± 0.5, got "1"', function() assert.near(1, "1", 0.5) end)
  end)

  it("wants to know how far", function()
    assert.errors_at_line(function() assert.near(1, 1) end, 0, "assert.near: got number and nil, want a number and how far")
  end)
end)

describe("assert.has_error", function()
  it("answers what was raised", function()
    local t = {}
    assert.equal(t, assert.has_error(function() error(t) end))
    assert.equal("validation", assert.has_error(function() std.json.decode("[") end, "1:2").kind)
    assert.is_nil(assert.has_error(function() error() end))
  end)

  it("fails when nothing is raised, or something else", function()
    fails("has_error: nothing was raised, want an error", function() assert.has_error(nothing) end)
    fails('has_error: nothing was raised, want "x"', function() assert.has_error(nothing, "x") end)
    fails('has_error: want "x", got "abc"', function() assert.has_error(function() error("abc", 0) end, "x") end)
  end)

  it("wants a function", function()
    assert.errors_at_line(function() assert.has_error("x") end, 0, "assert.has_error: argument 1: got string, want a function")
  end)
end)

describe("assert.errors_at_line", function()
  it("wants the error at a line of the function", function()
    assert.errors_at_line(function()
      local x = nil
      return x.field
    end, 2, "attempt to index")
    assert.errors_at_line(function() std.time.sleep("x") end, 0, "std.time.sleep: argument 1")
  end)

  it("says where the error was", function()
    local here = debug.getinfo(1).currentline
    local raised = assert.has_error(function()
      assert.errors_at_line(function() error("e") end, 3)
    end)
    assert.matches(("errors_at_line: want it at .*spec_spec.lua:%d, got .*spec_spec.lua:%d: "):format(here + 5, here + 2), raised.message)
  end)

  it("wants a function and a number", function()
    assert.errors_at_line(function() assert.errors_at_line(nothing) end, 0, "errors_at_line: got function and nil")
  end)
end)
