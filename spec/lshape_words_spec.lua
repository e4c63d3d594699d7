-- require("lshape.words"): how what is wanted and what was given are called.

local words = require("lshape.words")
local options = require("lshape.options")
local T = require("lshape.t")

local function noun(wanted, schema)
  assert.equal(wanted, words.noun(schema))
  assert.equal(wanted, words.noun(schema:describe("d"):is_optional()))
end

describe("lshape.words.noun", function()
  it("names the type of a value", function()
    noun("a string", T.string)
    noun("a number", T.number)
    noun("a whole number", T.integer)
    noun("true or false", T.boolean)
    noun("a table", T.table)
    noun("a function", T.fn)
    noun("a function", options.callable)
    noun("anything", T.any)
    noun("a table", T.shape({}))
    noun("a table", T.map_of(T.string, T.any))
    noun("a table", T.ref("x"))
    noun("a list", T.array_of(T.any))
    noun("a list of 2", T.tuple({ T.any, T.any }))
    noun('a string that matches "^a"', T.pattern("^a"))
  end)

  it("names bounds", function()
    noun("a number >= 0", T.number:min(0))
    noun("a number <= 5", T.number:max(5))
    noun("a whole number from 1 to 3", T.integer:min(1):max(3))
    noun("a non-empty string", T.string:min_len(1))
    noun("a string of 2 bytes or more", T.string:min_len(2))
    noun("a string of at most 4 bytes", T.string:max_len(4))
    noun("a string of 1 to 4 bytes", T.string:min_len(1):max_len(4))
    noun("a non-empty list", T.array_of(T.any):min_len(1))
    noun("a list of at most 3 entries", T.array_of(T.any):max_len(3))
  end)

  it("names choices, each once", function()
    noun('one of "a", 2', T.one_of({ "a", 2 }))
    noun('"a"', T.literal("a"))
    noun("a string or a list", T.any_of({ T.string, T.array_of(T.any), T.array_of(T.string) }))
  end)
end)

describe("lshape.words.got", function()
  it("shows a value where a scalar is wanted, else its type", function()
    assert.equal("5", words.got(5, T.number))
    assert.equal('"5"', words.got("5", T.integer))
    assert.equal("number", words.got(5, T.string))
    assert.equal('""', words.got("", T.string))
    assert.equal("table", words.got({ 1 }, T.number))
    assert.equal("an empty table", words.got({}, T.string))
    assert.equal("false", words.got(false, T.fn))
    assert.equal("nil", words.got(nil, T.fn))
    assert.equal("5", words.got(5, T.boolean))
    assert.equal("5", words.got(5, T.literal("a")))
    assert.equal("function", words.got(print, T.literal("a")))
  end)
end)

describe("lshape.words.nearest", function()
  local function of(...)
    local known = {}
    for _, name in ipairs({ ... }) do
      known[name] = true
    end
    return known
  end

  it("is the name with the fewest edits, swapped letters being one", function()
    assert.equal("did you mean 'tail'?", words.nearest("tial", of("riax", "tail")))
    assert.equal("did you mean 'tail'?", words.nearest("tai", of("tall", "tail")))
    assert.equal("did you mean 'tail'?", words.nearest("taill", of("tail", "trailing")))
    assert.equal("did you mean 'tail'?", words.nearest("bail", of("tail", "b")))
    assert.equal("did you mean 'ab'?", words.nearest("ba", of("ab")))
  end)

  it("is the first of those that are equally near", function()
    assert.equal("did you mean 'cat'?", words.nearest("bat", of("hat", "cat")))
  end)

  it("is all of them when none is half like it", function()
    assert.equal("known: axy", words.nearest("abc", of("axy")))
    assert.equal("did you mean 'aby'?", words.nearest("abc", of("aby")))
    assert.equal("known: a, b", words.nearest("x", of("b", "a")))
    assert.equal("there are none", words.nearest("x", {}))
    assert.equal("known: a", words.nearest(1, of("a")))
  end)

  it("is not looked for when the key is longer than any name", function()
    assert.equal("did you mean '" .. ("x"):rep(39) .. "'?",
      words.nearest(("x"):rep(40), of(("x"):rep(39))))
    assert.equal("known: " .. ("x"):rep(40), words.nearest(("x"):rep(41), of(("x"):rep(40))))
  end)
end)
