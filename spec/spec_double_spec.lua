-- Spies, stubs, and the words that judge them.

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

  it("remembers a call that raised", function()
    local double = spy(function() error("no") end)
    assert.has_error(function() double(1) end, "no")
    assert.called_with(double, 1)
  end)

  it("forgets its calls when it is told to", function()
    local double = spy()
    double(1)
    double.clear()
    assert.spy(double).was_not.called()
    double(2)
    assert.same({ { n = 1, 2 } }, double.calls)
  end)

  it("wants a function", function()
    assert.has_error(function() spy("x") end, "string")
    local plain = require("spec.doubles").spy
    assert.errors_at_line(function() plain(5) end, 0, "spy: got number, want a function or nothing")
    assert.errors_at_line(function() plain(false) end, 0, "spy: got boolean, want a function")
  end)
end)

describe("stub", function()
  local t = { f = function() return "real" end }

  it("stands in for a field", function()
    local double = stub(t, "f", function() return "stub" end)
    assert.equal("stub", t.f(1))
    assert.called(double, 1)
  end)

  it("is gone when the case ends", function()
    assert.equal("real", t.f())
  end)

  it("only listens with the function that stood there", function()
    local double = stub(t, "f", t.f)
    assert.equal("real", t.f("x"))
    assert.called_with(double, "x")
  end)

  it("stacks, and the first value comes back, also after a failure", function()
    local u = { g = 1 }
    local suite = require("spec.suite").new()
    suite.words.it("stubs twice", function()
      stub(u, "g")
      stub(u, "g")
      error("and fails")
    end)
    local double = stub(t, "f")
    assert.equal("failed", suite.run()[1].status)
    assert.equal(1, u.g)
    assert.equal(double, t.f) -- what the case around had stubbed still stands
  end)

  it("puts nothing back where the field was inherited", function()
    local child = setmetatable({}, { __index = t })
    local suite = require("spec.suite").new()
    suite.words.it("stubs", function()
      stub(child, "f")
      assert.is_nil(child.f())
    end)
    assert.equal("passed", suite.run()[1].status)
    assert.is_nil(rawget(child, "f"))
    assert.equal("real", child.f())
  end)

  it("turns dev mode on and off for the length of a case", function()
    local check = require("lshape.check")
    local suite = require("spec.suite").new()
    local before, within = check.is_dev_mode(), nil
    suite.words.it("stubs", function()
      stub(check, "is_dev_mode", function() return not before end)
      within = check.is_dev_mode()
    end)
    suite.run()
    assert.equal(not before, within)
    assert.equal(before, check.is_dev_mode())
  end)

  it("refuses what is no table, no field, no function", function()
    local plain = require("spec.doubles").stub
    assert.errors_at_line(function() plain(nil, "f") end, 0,
      "stub: argument 1: got nil, want a table")
    assert.errors_at_line(function() stub(t, "ff") end, 0,
      'stub: the table has no "ff", nothing to stand in for')
    assert.errors_at_line(function() stub(t) end, 0, 'stub: the table has no "nil"')
    assert.errors_at_line(function() plain(t, "f", 1) end, 0,
      "stub: argument 3: got number, want a function or nothing")
    assert.errors_at_line(function() plain(t, "f", false) end, 0,
      "stub: argument 3: got boolean, want a function or nothing")
  end)
end)

describe("assert.called", function()
  it("wants a call, or exactly so many", function()
    local double = spy()
    fails("called: want a call, got 0 calls", function() assert.called(double) end)
    assert.called(double, 0)
    double(1, "a")
    assert.called(double)
    assert.spy(double).was.called()
    assert.spy(double).was.called(1)
    fails("called: want 2 calls, got 1 call", function() assert.called(double, 2) end)
    fails("why: called: want 2 calls, got 1 call", function() assert.called(double, 2, "why") end)
    fails('not called: got (1, "a")', function() assert.spy(double).was_not.called() end)
  end)

  it("wants a spy and a number", function()
    local called = require("spec.judges").all.called.of
    assert.errors_at_line(function() called(print) end, 0,
      "assert.called: argument 1: got function, want a spy (what spy or stub answered)")
    assert.errors_at_line(function() called(spy(), "1") end, 0,
      "assert.called: argument 2: got string, want how many times")
    assert.errors_at_line(function() assert.spy({}).was.called() end, 0,
      "assert.called: argument 1: got table, want a spy")
    assert.errors_at_line(function() assert.spy(nil).was.called() end, 0,
      "assert.called: argument 1: got nil, want a spy")
  end)
end)

describe("assert.called_with", function()
  it("wants a call with the same arguments, as many of them", function()
    local double = spy()
    fails("called_with: want (1), got no call", function() assert.called_with(double, 1) end)
    double(1, nil)
    double({ a = { 2 } })
    assert.called_with(double, 1, nil)
    assert.called_with(double, { a = { 2 } })
    assert.spy(double).was_not.called_with(1)
    fails("called_with: want (1), got (1, nil) ({ a = { 2 } })",
      function() assert.spy(double).was.called_with(1) end)
    fails("not called_with: got (1, nil)",
      function() assert.stub(double).was_not_called_with(1, nil) end)
  end)

  it("shows seven calls", function()
    local double = spy()
    for i = 1, 9 do
      double(i)
    end
    fails("called_with: want (), got (1) (2) (3) (4) (5) (6) (7) …",
      function() assert.called_with(double) end)
  end)
end)
