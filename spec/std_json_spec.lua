-- std.json: text and values, lossless or refused.

local knl = require("knl")
local json = std.json

describe("std.json.encode", function()
  it("is canonical: keys sorted, no blanks, whole numbers without a point", function()
    assert.equal('{"a":[true,null,"x"],"b":1,"c":{}}',
      json.encode({ c = {}, b = 1.0, a = { true, knl.null, "x" } }))
    assert.equal("9007199254740992", json.encode(2 ^ 53))
    assert.equal("1000000000000000000", json.encode(1e18))
    assert.equal("0.1", json.encode(0.1))
    assert.equal("1e+300", json.encode(1e300))
    assert.equal("0", json.encode(-0))
    assert.equal("null", json.encode(nil))
  end)

  it("keeps apart the empty list and the empty record", function()
    assert.equal("{}", json.encode({}))
    assert.equal("[]", json.encode(knl.array()))
    assert.equal("[[],{}]", json.encode(json.decode("[[],{}]")))
  end)

  it("writes one member a line when told", function()
    assert.equal('{\n  "a": [\n    1\n  ],\n  "b": {}\n}',
      json.encode({ a = { 1 }, b = {} }, { pretty = true }))
    assert.equal("[1]", json.encode({ 1 }, { pretty = false }))
  end)

  it("mends text that is no UTF-8 and escapes what must be", function()
    assert.equal('"a\239\191\189"', json.encode("a\255"))
    assert.equal([["\"\\\n\u0001é"]], json.encode('"\\\n\1é'))
  end)

  it("refuses what JSON cannot say, naming the path", function()
    local cyclic, deep = {}, {}
    cyclic.me = cyclic
    for _ = 1, 200 do
      deep = { deep }
    end
    for text, value in pairs{
      ["value: got NaN, want a finite number"] = 0 / 0,
      ["value.a: got minus infinity"] = { a = -math.huge },
      ["value.items[2].x: got a function, want a JSON value"] = { items = { 1, { x = print } } },
      ["value: got a userdata"] = knl.device{},
      ["value.me: got a table that contains itself"] = cyclic,
      ['value: got key "x" beside a list of 2'] = { 1, 2, x = 1 },
      ["value: got a list with nothing at 2"] = { 1, nil, 3 },
      ["value: got key true, want text keys"] = { [true] = 1 },
      ["value: got key 1.5"] = { [1.5] = 1 },
      ["nested deeper than 128 tables"] = deep,
    } do
      assert.errors_at_line(function() json.encode(value) end, 0, text)
    end
    assert.errors_at_line(function() json.encode() end, 0,
      "std.json.encode: got no argument, want a value")
    assert.errors_at_line(function() json.encode({}, { prety = true }) end, 0,
      '"prety" (did you mean "pretty"?)')
    assert.errors_at_line(function() json.encode({}, { pretty = 1 }) end, 0,
      'option "pretty": got 1, want true or false')
  end)
end)

describe("std.json.decode", function()
  it("gives values that are written back byte for byte", function()
    for _, text in ipairs{
      '{"big":12345678901234567890,"empty":[],"list":[null,{},null],"small":0.1}',
      "9007199254740993", "-9007199254740993", '"\\u0000é"', "[[[[[]]]]]", "true", "null", '""',
    } do
      assert.equal(text, json.encode(json.decode(text)))
    end
  end)

  it("keeps null as a value and lists long", function()
    local list = json.decode("[null, 1, null]")
    assert.equal(3, #list)
    assert.equal(knl.null, list[1])
  end)

  it("keeps the digits of large integers, and refuses to count with them", function()
    local n = json.decode("9007199254740993")
    assert.equal("9007199254740993", tostring(n))
    assert.is_true(n < json.decode("9007199254740995"))
    assert.equal("id 9007199254740993", "id " .. n)
    assert.errors_at_line(function() return n + 1 - 1 end, 0,
      "got arithmetic, which would lose digits")
  end)

  it("refuses what is no JSON, with line and column", function()
    for text, bad in pairs{
      ['1:8: key "a" stands twice'] = '{"a":1,"a":2}',
      ["2:8: got 't', want a JSON value"] = '{\n  "a": tru\n}',
      ["1:3: got the end of the text"] = "[1",
      ["1:3"] = "1 2",
      ["1:1"] = "",
      ["1:2"] = "[,]",
      ["want a number without leading zeros"] = "01",
      ["number 1e999 is larger than a Lua number holds"] = "1e999",
    } do
      assert.equal("validation", assert.has_error(function() json.decode(bad) end, text).kind)
    end
    assert.errors_at_line(function() json.decode(5) end, 0,
      "std.json.decode: argument 1 (text): got 5, want a string")
    assert.errors_at_line(function() json.decode() end, 0, "got nil, want a string")
  end)
end)
