-- The words that judge. What is turned round, and the many ways to say a name,
-- stand once, under assert.

local function nothing() end

-- Wants an assertion to fail with exactly these words.
local function fails(text, fn)
  local raised = assert.has_error(fn)
  assert.equal(text, raised.message)
end

describe("assert", function()
  it("stays the plain assert", function()
    local a, b, c = assert(1, nil, 3)
    assert.same({ 1, nil, 3 }, { a, b, c })
    local here = debug.getinfo(1).currentline
    assert.errors_at_line(function() assert(false, "why") end, 0,
      ("spec_assert_spec.lua:%d: why"):format(here + 1))
    assert.errors_at_line(function() assert(nil) end, 0, "assertion failed!")
    local t = {}
    assert.equal(t, assert.has_error(function() assert(false, t) end))
  end)

  it("may be read as one likes: words in front mean nothing", function()
    assert.are.equal(1, 1)
    assert.are_equal(1, 1)
    assert.equals(1, 1)
    assert.is.near(1, 1.1, 0.2)
    assert.is["true"](true)
    assert.is_truthy(1)
    assert.is.True(true)
    assert.is_Nil(nil)
    assert.error_matches(function() error("x1") end, "x%d")
    assert.has.errors(function() error("x") end, "x")
    assert.does.match("b", "abc")
    fails("equal: want 1, got 2", function() assert.are.equal(1, 2) end)
  end)

  it("is turned round by not and no", function()
    assert.is_not_nil(false)
    assert.is_not.equal(1, 2)
    assert.are_not.same({ 1 }, { 2 })
    assert.has_no.errors(nothing)
    assert.has_no_error(nothing)
    assert["not"].is_nil(1)
    assert.is_not_true(1)
    assert.is_not.is_not.equal(1, 1)
    fails("not is_nil: got nil", function() assert.is_not_nil(nil) end)
    fails("not equal: want another value than 1", function() assert.are_not.equal(1, 1) end)
    fails("not same: want another content than { 1 }",
      function() assert.are_not.same({ 1 }, { 1 }) end)
    fails("why: not truthy: got 1", function() assert.is_not.truthy(1, "why") end)
    fails('not matches: want no "b", got "abc"',
      function() assert.does_not.match("b", "abc") end)
    fails("not near: want none of 1 ± 1, got 2", function() assert.is_not.near(1, 2, 1) end)
    fails("not is_string: got \"x\"", function() assert.is_not_string("x") end)
  end)

  it("shows what was raised where nothing was to be", function()
    local here = debug.getinfo(1).currentline
    local raised = assert.has_error(function()
      assert.has_no.errors(function() error("oops") end)
    end)
    local wanted = '^not has_error: raised "[^\n]*spec_assert_spec.lua:%d: oops"\n'
    assert.matches(wanted:format(here + 2), raised.message)
  end)

  it("names its words when one is unknown", function()
    assert.errors_at_line(function() assert.eqals(1, 1) end, 0,
      "assert.eqals: no such assertion (known: called, ")
    assert.errors_at_line(function() assert.are.eqals(1, 1) end, 0,
      "assert.are.eqals: no such assertion")
    assert.errors_at_line(function() assert.has_no.errors_at_line(nothing, 0) end, 0,
      "assert.has_no.errors_at_line: cannot be turned round")
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
    fails(table.concat({
      "same:",
      '  [1]: want "x", got nil',
      "  .k: want nil, got { 1 }",
      '  ["odd key"]: want true, got false',
    }, "\n"), function()
      assert.same({ "x", ["odd key"] = true }, { k = { 1 }, ["odd key"] = false })
    end)
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

describe("assert.falsy", function()
  it("wants nil or false", function()
    assert.falsy(nil)
    assert.falsy(false)
    fails("falsy: got 0", function() assert.falsy(0) end)
    fails('falsy: got ""', function() assert.falsy("") end)
  end)
end)

describe("assert.is_string", function()
  it("wants a string", function()
    assert.is_string("")
    fails("is_string: want a string, got 5", function() assert.is_string(5) end)
    fails("so: is_string: want a string, got nil", function() assert.is_string(nil, "so") end)
  end)
end)

describe("assert.is_number", function()
  it("wants a number", function()
    assert.is_number(0 / 0)
    fails("is_number: want a number, got true", function() assert.is_number(true) end)
    fails("so: is_number: want a number, got nil", function() assert.is_number(nil, "so") end)
  end)
end)

describe("assert.is_boolean", function()
  it("wants a boolean", function()
    assert.is_boolean(false)
    fails("is_boolean: want a boolean, got 5", function() assert.is_boolean(5) end)
    fails("so: is_boolean: want a boolean, got nil", function() assert.is_boolean(nil, "so") end)
  end)
end)

describe("assert.is_table", function()
  it("wants a table", function()
    assert.is_table({})
    fails("is_table: want a table, got 5", function() assert.is_table(5) end)
    fails("so: is_table: want a table, got nil", function() assert.is_table(nil, "so") end)
  end)
end)

describe("assert.is_function", function()
  it("wants a function", function()
    assert.is_function(nothing)
    fails("is_function: want a function, got 5", function() assert.is_function(5) end)
    fails("so: is_function: want a function, got nil", function() assert.is_function(nil, "so") end)
  end)
end)

describe("assert.is_userdata", function()
  it("wants a userdata", function()
    std.task.scope(assert.is_userdata)
    fails("is_userdata: want a userdata, got 5", function() assert.is_userdata(5) end)
    fails("so: is_userdata: want a userdata, got nil", function() assert.is_userdata(nil, "so") end)
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

  it("takes a table for the content of what is raised", function()
    assert.has_error(function() error({ code = 1, at = { 2 } }) end, { code = 1, at = { 2 } })
    assert.has_no.error(function() error({ code = 1 }) end, { code = 2 })
    fails("has_error: .code: want 1, got 2",
      function() assert.has_error(function() error({ code = 2 }) end, { code = 1 }) end)
    fails('has_error: want { code = 1 }, got "x"',
      function() assert.has_error(function() error("x", 0) end, { code = 1 }) end)
    fails("has_error: nothing was raised, want { code = 1 }",
      function() assert.has_error(nothing, { code = 1 }) end)
  end)

  it("holds a text against the content of a table that has none of its own", function()
    assert.has_error(function() error({ assertion = true }) end, "{ assertion = true }")
    fails('has_error: want "x", got "raised { assertion = true }"',
      function() assert.has_error(function() error({ assertion = true }) end, "x") end)
  end)

  it("wants a function, and a text or a table", function()
    local has_error = require("spec.judges").all.has_error.of
    assert.errors_at_line(function() has_error(nothing, 5) end, 0,
      "assert.has_error: got number, want the text or the table that is raised")
    assert.errors_at_line(function() has_error(nothing, false) end, 0,
      "assert.has_error: got boolean, want the text or the table that is raised")
    assert.errors_at_line(function() assert.has.error("x") end, 0,
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
    local wanted = "errors_at_line: want it at .*_spec.lua:%d, got .*_spec.lua:%d: "
    assert.matches(wanted:format(here + 5, here + 2), raised.message)
  end)

  it("wants a function and a number", function()
    assert.errors_at_line(function() assert.errors_at_line(nothing) end, 0,
      "errors_at_line: got function and nil")
  end)
end)
