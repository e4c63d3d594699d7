-- What a failure shows of the values that differ.

local diff = require("spec.diff")
local show = require("spec.show")

-- The one difference of two values.
local function one(want, got)
  local all = diff.differences(want, got)
  assert.equal(1, #all)
  return all[1]
end

describe("a difference of tables", function()
  it("is named by its path, each one", function()
    assert.same({ ".a[2].b: want 1, got 2", '["odd key"]: want true, got nil' },
      diff.differences({ a = { 0, { b = 1 } }, ["odd key"] = true }, { a = { 0, { b = 2 } } }))
  end)

  it("is counted behind the twelfth", function()
    local want = {}
    for i = 1, 20 do
      want[i] = i
    end
    local all = diff.differences(want, {})
    assert.equal(13, #all)
    assert.equal("[12]: want 12, got nil", all[12])
    assert.equal("and 8 more", all[13])
  end)

  it("ends where tables contain themselves", function()
    local a, b = { n = 1 }, { n = 2 }
    a.self, b.self = a, b
    assert.same({ ".n: want 1, got 2" }, diff.differences(a, b))
  end)

  it("ends where they do so at another distance", function()
    local two, three = {}, {}
    two.next = { next = two }
    three.next = { next = { next = three } }
    assert.same(two, three)
    three.next.next.n = 1
    assert.equal(".next.next.n: want nil, got 1", diff.differences(two, three)[1])
  end)

  it("is found as deep as it lies, by the ends of its path", function()
    local function deep(v)
      for _ = 1, 5000 do
        v = { v }
      end
      return v
    end
    assert.same(deep(1), deep(1))
    local ends = ("[1]"):rep(12)
    assert.equal(ends .. "…" .. ends .. ": want 1, got 2", one(deep(1), deep(2)))
  end)
end)

describe("a difference of texts", function()
  it("is the whole of short ones", function()
    assert.equal('want "a\\nb", got 5', one("a\nb", 5))
    assert.equal('want "a", got "b"', one("a", "b"))
  end)

  it("is what stands around the first byte, between characters", function()
    local half = ("é"):rep(100)
    local want, got = half .. "x" .. half, half .. "y" .. half
    assert.equal(('from byte 201: want …"%sx%s"…, got …"%sy%s"…'):format(
      ("é"):rep(12), ("é"):rep(36), ("é"):rep(12), ("é"):rep(36)), one(want, got))
    assert.equal(('from byte 201: want …"%s", got …"%s!"'):format(("a"):rep(24), ("a"):rep(24)),
      one(("a"):rep(200), ("a"):rep(200) .. "!"))
  end)

  it("is a line", function()
    assert.equal('line 2: want "two", got "2"', one("one\ntwo\nthree", "one\n2\nthree"))
    assert.equal('line 2: want no such line, got ""', one("a", "a\n"))
    assert.equal('line 2: want "b", got no such line', one("a\nb\nc", "a\nc"))
  end)

  it("is the lines between what both begin and end with", function()
    assert.equal(table.concat({
      "from line 2 on (- want, + got):",
      '  - 2: "two"',
      '  - 3: "three"',
      '  + 2: "2"',
      '  + 3: "3"',
      '  + 4: "more"',
    }, "\n"), one("one\ntwo\nthree\nfour", "one\n2\n3\nmore\nfour"))
    assert.equal(table.concat({
      "from line 1 on (- want, + got):",
      '  + 1: "y"',
      '  + 2: "y"',
    }, "\n"), one("x", "y\ny\nx"))
  end)

  it("shows eight lines of each", function()
    local text = one(("a\n"):rep(20), ("b\n"):rep(20))
    assert.matches('  - 8: "a"\n  - … 12 more lines\n  + 1: "b"', text)
  end)

  it("is moved in below the path it has", function()
    local raised = assert.has_error(function()
      assert.same({ a = "1\n2\n3", b = 1 }, { a = "1\nx\ny\n3", b = 2 })
    end)
    assert.equal(table.concat({
      "same:",
      "  .a: from line 2 on (- want, + got):",
      '    - 2: "2"',
      '    + 2: "x"',
      '    + 3: "y"',
      "  .b: want 1, got 2",
    }, "\n"), raised.message)
  end)
end)

describe("a value", function()
  it("is written on one line, keys sorted, cut between characters", function()
    assert.equal('{ "x", { b = 1 }, [7] = true, a = "\\n\\"", ["b c"] = {} }',
      show.show({ "x", { b = 1 }, [7] = true, a = '\n"', ["b c"] = {} }))
    local t = {}
    t.t = t
    assert.equal("{ t = { itself } }", show.show(t))
    assert.equal('"' .. ("é"):rep(119) .. "…", show.show(("é"):rep(500)))
    assert.equal("null", show.show(std.json.decode("null")))
  end)

  it("is legible: bytes that are no character are escapes", function()
    assert.equal([["a\255b"]], show.show("a\255b"))
    assert.equal([["\195"]], show.show("\195"))
    assert.equal([["\237\160\128\192\128\244\144\128\128"]],
      show.show("\237\160\128\192\128\244\144\128\128"))
    assert.equal('"é€𝄞"', show.show("é€𝄞"))
  end)

  it("is shown whatever its __tostring does", function()
    local function odd(fn)
      return setmetatable({}, { __tostring = fn })
    end
    assert.equal("a table whose __tostring raises x",
      show.text(odd(function() error("x", 0) end)))
    assert.equal("a table whose __tostring raises a table",
      show.text(odd(function() error({}) end)))
    assert.equal("a table whose __tostring answers a number",
      show.text(odd(function() return 5 end)))
  end)
end)
