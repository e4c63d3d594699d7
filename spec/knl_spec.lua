-- What require("knl") offers beside sessions, devices and beats.

local knl = require("knl")

local function open()
  return knl.open{ store = "mem" }
end

describe("knl.new_beat_id", function()
  it("is fresh, and later ones sort behind", function()
    local last = ""
    for _ = 1, 50 do
      local id = knl.new_beat_id()
      assert.is_true(last < id, id)
      last = id
    end
  end)
end)

describe("knl.error", function()
  it("reads what the kernel raised", function()
    local s = open()
    local _, raised = pcall(s.append, s, { kind = "session_closed" })
    local e = knl.error(raised)
    assert.equal("validation", e.kind)
    assert.equal("append", e.method)
    assert.is_false(e.retryable)
    assert.matches("close", e.message)
    assert.equal(tostring(raised), tostring(e))
  end)

  it("reads what std raised", function()
    local _, raised = pcall(std.json.decode, "[")
    assert.equal("validation", knl.error(raised).kind)
  end)

  it("takes no text for a kernel error, and never raises", function()
    local e = knl.error("knl: append: busy: a text that reads like one")
    assert.is_nil(e.kind)
    assert.is_false(e.retryable)
    assert.equal("knl: append: busy: a text that reads like one", e.message)
    assert.equal("nil", knl.error(nil).message)
    assert.equal("5", knl.error(5).message)
  end)
end)

describe("knl.api", function()
  it("lists what a script can reach, with its arguments and its words", function()
    local api = knl.api()
    assert.matches("session:append(event) -> integer", api["session:append"].signature)
    assert.matches("Runs a command", api["std.sh.run"].doc)
    assert.truthy(api["knl.Outcome.match"])
    for place, entry in pairs(api) do
      assert.equal("string", type(entry.doc), place)
      assert.matches(place, entry.signature)
    end
  end)
end)

describe("knl.int", function()
  it("keeps the digits of integers that no number holds", function()
    local n = knl.int("9007199254740993")
    assert.equal("9007199254740993", tostring(n))
    assert.equal(n, knl.int("9007199254740993"))
    assert.equal("[9007199254740993]", std.json.encode({ n }))
    assert.equal(42, knl.int("42"))
    assert.equal(-7, knl.int("-7"))
  end)

  it("wants the digits of an integer", function()
    assert.errors_at_line(function() knl.int("1.5") end, 0,
      'knl.int: got "1.5", want the decimal digits of an integer')
    assert.errors_at_line(function() knl.int("") end, 0, 'got ""')
    assert.errors_at_line(function() knl.int(5) end, 0,
      "knl.int: argument 1 (digits): got 5, want a string")
  end)
end)

describe("knl.array", function()
  it("is a list, also when it is empty", function()
    assert.equal("[]", std.json.encode(knl.array()))
    local t = {}
    assert.equal(t, knl.array(t))
    assert.equal("[]", std.json.encode(t))
    assert.equal("[1]", std.json.encode(knl.array{ 1 }))
  end)

  it("wants a table", function()
    assert.errors_at_line(function() knl.array(5) end, 0,
      "knl.array: argument 1 (t): got 5, want a table")
  end)
end)

describe("knl.null", function()
  it("is a value, equal to itself, that keeps a place", function()
    assert.truthy(knl.null)
    assert.equal(knl.null, std.json.decode("null"))
    assert.equal('{"a":[null,1]}', std.json.encode({ a = { knl.null, 1 } }))
  end)
end)

describe("knl.version", function()
  it("is a text", function()
    assert.equal("string", type(knl.version))
  end)
end)
