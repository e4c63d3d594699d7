-- Which cases are run: tags, a text, another order; and the words of the host.

local new_suite = require("spec.suite").new
local spec = require("spec")

local function nothing() end

local function names(results)
  local out = {}
  for i, r in ipairs(results) do
    out[i] = r.name
  end
  return out
end

-- The names of the cases of body that a choice runs.
local function chosen(body, choice)
  local suite = new_suite()
  body(suite.words)
  return names(suite.run(choice))
end

local function tagged(w)
  w.describe("disk", function()
    w.tags("slow", "disk")
    w.describe("deep", function()
      w.it("a", nothing)
    end)
  end)
  w.describe("net #slow", function()
    w.it("b #first", nothing)
    w.it("c", nothing)
  end)
  w.it("d", nothing)
end

describe("tags", function()
  it("choose the cases of their block and of the blocks in it", function()
    assert.same({ "disk deep a", "net #slow b #first", "net #slow c" },
      chosen(tagged, { tags = { "slow" } }))
    assert.same({ "disk deep a" }, chosen(tagged, { tags = { "disk" } }))
    assert.same({ "d" }, chosen(tagged, { skip_tags = { "slow" } }))
    assert.same({}, chosen(tagged, { tags = { "none" } }))
  end)

  it("stand in a name behind a #", function()
    assert.same({ "net #slow b #first" }, chosen(tagged, { tags = { "first" } }))
    assert.same({ "net #slow b #first", "net #slow c" },
      chosen(tagged, { tags = { "slow" }, skip_tags = { "disk" } }))
  end)

  it("choose with more than one where one fits", function()
    assert.same({ "disk deep a", "net #slow b #first" },
      chosen(tagged, { tags = { "disk", "first" } }))
  end)

  it("mark the whole file at its top", function()
    assert.same({ "x" }, chosen(function(w)
      w.tags("all")
      w.it("x", nothing)
    end, { tags = { "all" } }))
  end)

  it("are strings", function()
    local w = new_suite().words
    assert.errors_at_line(function() w.tags("a", 2) end, 0,
      "tags: got number, want names (strings)")
    assert.errors_at_line(function() w.tags(nil) end, 0, "tags: got nil, want names (strings)")
  end)
end)

-- These begin a file of their own in the vocabulary that runs this one, which
-- has described all it will.
describe("spec.start", function()
  it("forgets what was described and puts the words into a table", function()
    local words = {}
    spec.start(words)
    words.it("old", nothing)
    spec.start(words)
    words.it("new", nothing)
    assert.same({ "new" }, names(spec.run()))
    for _, word in ipairs({ "describe", "before_each", "after_each", "pending", "tags", "spy" }) do
      assert.is_function(words[word], word)
    end
    assert.equal(assert, words.assert)
  end)
end)

describe("spec.run", function()
  local words

  before_each(function()
    words = {}
    spec.start(words)
    tagged(words)
  end)

  it("runs all in their order, or what the full name holds or fits", function()
    assert.equal(4, #spec.run())
    assert.same({ "disk deep a" }, names(spec.run("deep a")))
    assert.same({ "disk deep a" }, names(spec.run({ text = "k.*a$" })))
    assert.same({}, spec.run("[")) -- no pattern, and in no name
    assert.equal(4, #spec.run(""))
  end)

  it("runs them in another order for a seed, the same one for the same", function()
    local order = names(spec.run({ shuffle = 3 }))
    assert.same(order, names(spec.run({ shuffle = 3 })))
    assert.is_not.same(order, names(spec.run({ shuffle = 4 })))
    assert.is_not.same(order, names(spec.run()))
    table.sort(order)
    assert.same({ "d", "disk deep a", "net #slow b #first", "net #slow c" }, order)
  end)

  it("refuses a choice that is none", function()
    assert.errors_at_line(function() spec.run({ tag = { "slow" } }) end, 0,
      "spec.plan: unknown option 'tag' (did you mean 'tags'?)")
    assert.errors_at_line(function() spec.run(5) end, 0,
      "spec.plan: opts must be a table, got number")
    assert.errors_at_line(function() spec.run({ text = false }) end, 0,
      "spec.plan: text must be a string, got false")
    assert.has_error(function() spec.run({ shuffle = 1.5 }) end, "whole number")
    assert.has_error(function() spec.run({ shuffle = -1 }) end, ">= 0")
    assert.has_error(function() spec.run({ tags = "slow" }) end, "tags must be")
    assert.has_error(function() spec.run({ skip_tags = { 1 } }) end, "skip_tags")
  end)
end)

describe("spec.plan", function()
  it("answers the chosen cases and what runs the next of them", function()
    local words, ran = {}, {}
    spec.start(words)
    words.describe("block #tag", function()
      words.it("one", function() ran[#ran + 1] = 1 end)
      words.it("two", function() ran[#ran + 1] = 2 end)
    end)
    local cases, next_result = spec.plan("block")
    assert.same({}, ran)
    assert.same({ "block #tag one", "block #tag two" }, names(cases))
    assert.same({ "tag" }, cases[1].tags)
    assert.equal(cases[1].line + 1, cases[2].line)
    assert.matches("spec_choice_spec.lua", cases[1].file)
    assert.equal("block #tag one", next_result().name)
    assert.same({ 1 }, ran)
    assert.equal("passed", next_result().status)
    assert.is_nil(next_result())
  end)
end)

describe("spec.count", function()
  it("is how many were described, chosen or not", function()
    local words = {}
    spec.start(words)
    assert.equal(0, spec.count())
    tagged(words)
    spec.run("none")
    assert.equal(4, spec.count())
  end)
end)

describe("spec.shapes", function()
  it("declares every word, and the assertions as members of assert", function()
    local declared, exported = {}, {}
    for name, entry in pairs(spec.shapes.api) do
      declared[name] = true
      assert.is_string(entry.doc, name)
    end
    for name in pairs(spec) do
      exported[name] = true
    end
    assert.same(exported, declared)
    local members, words = spec.shapes.api.assert.members, {}
    for name in pairs(spec.assert) do
      words[name] = true
      assert.is_table(members[name], name)
    end
    for name in pairs(members) do
      assert.is_true(words[name], name)
    end
  end)

  it("is the gate of the words in dev mode, and of none without it", function()
    local dev = require("lshape.check").is_dev_mode()
    assert.errors_at_line(function() spec.it(5, nothing) end, 0, dev
      and "shape violation at $: expected string, got number (ctx: spec.it arg 1"
      or "it: got number, want a name (a string)")
    assert.errors_at_line(function() assert.near("1", 1, 0) end, 0, dev
      and "spec.assert.near arg 1"
      or "assert.near: got string and number, want a number")
  end)
end)
