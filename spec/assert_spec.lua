-- The words that judge: assertions, spies and stubs.

local show = require("spec.show")

local function nothing() end

-- Wants an assertion to fail with exactly these words.
local function fails(text, fn)
  local raised = assert.has_error(fn)
  assert.equal(text, raised.message)
end

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
    local suite = require("spec.suite").new()
    suite.words.it("stubs twice", function()
      stub(u, "g")
      stub(u, "g")
      error("and fails")
    end)
    assert.equal("failed", suite.run()[1].status)
    assert.equal(1, u.g)
  end)

  it("refuses what is no table, no field, no function", function()
    assert.errors_at_line(function() stub(nil, "f") end, 0,
      "stub: argument 1: got nil, want a table")
    assert.errors_at_line(function() stub(t, "ff") end, 0,
      'stub: the table has no "ff", nothing to stand in for')
    assert.errors_at_line(function() stub(t, "f", 1) end, 0,
      "stub: argument 3: got number, want a function or nothing")
  end)
end)

describe("assert", function()
  it("stays the plain assert", function()
    local a, b, c = assert(1, nil, 3)
    assert.same({ 1, nil, 3 }, { a, b, c })
    local here = debug.getinfo(1).currentline
    assert.errors_at_line(function() assert(false, "why") end, 0,
      ("assert_spec.lua:%d: why"):format(here + 1))
    assert.errors_at_line(function() assert(nil) end, 0, "assertion failed!")
    local t = {}
    assert.equal(t, assert.has_error(function() assert(false, t) end))
  end)

  it("names its words when one is unknown", function()
    assert.errors_at_line(function() assert.equals(1, 1) end, 0,
      "assert.equals: no such assertion (known: equal, ")
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
    fails('equal: line 2: want "two", got "2"',
      function() assert.equal("one\ntwo\nthree", "one\n2\nthree") end)
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
    assert.errors_at_line(function() assert.matches(nil, "abc") end, 0,
      "assert.matches: argument 1: got nil, want a pattern")
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
    assert.errors_at_line(function() assert.near(1, 1) end, 0,
      "assert.near: got number and nil, want a number and how far")
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
    fails('has_error: want "x", got "abc"',
      function() assert.has_error(function() error("abc", 0) end, "x") end)
  end)

  it("wants a function", function()
    assert.errors_at_line(function() assert.has_error("x") end, 0,
      "assert.has_error: argument 1: got string, want a function")
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
    assert.matches(("errors_at_line: want it at .*assert_spec.lua:%d, got .*assert_spec.lua:%d: "):format(here + 5, here + 2), raised.message)
  end)

  it("wants a function and a number", function()
    assert.errors_at_line(function() assert.errors_at_line(nothing) end, 0,
      "errors_at_line: got function and nil")
  end)
end)
