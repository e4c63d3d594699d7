-- What a case makes of whatever is raised in it: always a failure, all of it text.

local new_suite = require("spec.suite").new

-- The result of one case with this body.
local function case(body)
  local suite = new_suite()
  suite.words.it("runs", body)
  return suite.run()[1]
end

-- Wants a body to fail its case with exactly these words.
local function fails(text, body)
  local result = case(body)
  assert.equal("failed", result.status)
  assert.equal(text, result.message)
  return result
end

local function told_by(fn)
  return setmetatable({}, { __tostring = fn })
end

describe("a raised value", function()
  it("is shown by its content when it has no text of its own", function()
    fails('raised { code = 3, why = "x" }', function() error({ code = 3, why = "x" }) end)
    fails("raised false", function() error(false) end)
    fails("mine", function() error(told_by(function() return "mine" end)) end)
  end)

  it("fails the case when its text cannot be made", function()
    fails("a table whose __tostring raises no",
      function() error(told_by(function() error("no", 0) end)) end)
    fails("a table whose __tostring answers a number",
      function() error(told_by(function() return 5 end)) end)
    fails("a table whose __tostring answers a table",
      function() error(told_by(function() return {} end)) end)
  end)

  it("is no pending and no assertion because it looks like one", function()
    fails("raised { pending = 3 }", function() error({ pending = 3 }) end)
    fails('raised { pending = "later" }', function() error({ pending = "later" }) end)
    fails('raised { assertion = "x", message = { 1 } }',
      function() error({ assertion = "x", message = { 1 } }) end)
    fails("raised { message = true, reason = 1 }",
      function() error({ reason = 1, message = true }) end)
  end)

  it("is legible in the report", function()
    assert.matches([[: a\255b$]], case(function() error("a\255b") end).message)
  end)
end)

describe("a pending case", function()
  it("has a reason that is a text", function()
    local suite = new_suite()
    suite.words.it("runs", function() suite.words.pending({}) end)
    local result = suite.run()[1]
    assert.equal("pending", result.status)
    assert.matches("^table: ", result.message)
  end)

  it("fails when a hook behind it does", function()
    local suite = new_suite()
    suite.words.after_each(function() error("left over", 0) end)
    suite.words.it("runs", function() suite.words.pending("later") end)
    local result = suite.run()[1]
    assert.equal("failed", result.status)
    assert.equal("after_each: left over", result.message)
  end)
end)

describe("a failure", function()
  it("shows whatever the case has stubbed", function()
    local function broken() error("stubbed", 0) end
    for _, at in ipairs({
      { debug, "traceback" }, { debug, "getinfo" }, { string, "gmatch" }, { string, "match" },
      { string, "find" }, { string, "format" }, { table, "remove" }, { table, "concat" },
      { table, "insert" }, { math, "floor" }, { _G, "tostring" }, { _G, "pcall" }, { _G, "xpcall" },
      { _G, "error" }, { _G, "type" }, { _G, "ipairs" }, { _G, "getmetatable" },
      { std.time, "monotonic" }, { std.task, "scope" }, { std.task, "unjoined" },
    }) do
      local result = case(function()
        require("spec.doubles").stub(at[1], at[2], broken)
        local x = nil
        return x.field
      end)
      assert.equal("failed", result.status, at[2])
      assert.matches("attempt to index", result.message, at[2])
    end
  end)

  it("of an assertion shows whatever the case has stubbed", function()
    local function broken() error("stubbed", 0) end
    local equal, stub_in = require("spec.assertions").equal, require("spec.doubles").stub
    local result = case(function()
      for _, name in ipairs({ "format", "find", "gsub", "sub", "byte", "match" }) do
        stub_in(string, name, broken)
      end
      stub_in(table, "concat", broken)
      stub_in(table, "sort", broken)
      equal({ a = 1 }, "\255")
    end)
    assert.equal([[equal: want { a = 1 }, got "\255"]], result.message)
  end)

  it("is where the case stands when a tail call has lost its line", function()
    local line
    local suite = new_suite()
    line = debug.getinfo(1).currentline + 1
    suite.words.it("runs", function()
      return assert.equal(1, 2)
    end)
    local result = suite.run()[1]
    assert.equal("equal: want 1, got 2", result.message)
    assert.equal(line, result.line)
    assert.matches("spec_failure_spec.lua", result.file)
    assert.equal("", result.traceback)
  end)

  it("of a shape shows the line of the case and none of the shapes'", function()
    local line
    local result = case(function()
      line = debug.getinfo(1).currentline + 1
      require("lshape").check.assert(5, require("lshape").t.string)
    end)
    assert.equal(line, result.line)
    assert.matches("^\t[^\n]*spec_failure_spec.lua:" .. line .. ":[^\n]*$", result.traceback)
  end)

  it("of the gate shows the line of the case", function()
    local check, gate = require("lshape.check"), require("lshape.gate")
    local T, line = require("lshape").t, nil
    stub(check, "is_dev_mode", function() return true end)
    local api = { f = { args = { { T.number, "a number" } }, returns = "nil" } }
    local module = gate({ f = function() end, shapes = { api = api } }, "m")
    local result = case(function()
      line = debug.getinfo(1).currentline + 1
      module.f("x")
    end)
    assert.equal(line, result.line)
    assert.matches("^\t[^\n]*spec_failure_spec.lua:" .. line .. ":[^\n]*$", result.traceback)
  end)
end)

describe("a word in a tail call", function()
  it("stands where its function does, else where its block does", function()
    local suite, first = new_suite(), nil
    suite.words.describe("a", function()
      first = debug.getinfo(1).currentline + 1
      return suite.words.it("is", function() end)
    end)
    local second = debug.getinfo(1).currentline + 1
    suite.words.describe("b", function()
      return suite.words.pending("comes")
    end)
    local cases = suite.plan()
    assert.same({ first, second }, { cases[1].line, cases[2].line })
  end)
end)
