--- spec.shapes: the shapes of the vocabulary, and what each of its words takes.
--
-- spec.init publishes this table as shapes; in dev mode its api is the gate of
-- the words. It declares and checks nothing.
--
-- Example:
--
--    print(require("spec").shapes.api.it.doc)

local T = require("lshape").t
local options = require("lshape.options")

local M = {}

local name = T.string:describe("a sentence that is true")
local note = T.any:describe("stands before the words of a failure")
local spy = T.table:describe("what spy or stub answered")

--- What spy and stub answer: it is called, too.
M.spy = T.shape({ calls = T.table:describe("the arguments of each call, with their count as n") })

--- Which cases are run.
M.choice = T.shape({
  text = T.string:describe("in the full name of a case, as it stands or as a Lua pattern")
    :is_optional(),
  tags = T.array_of(T.string):describe("one of them marks the case"):is_optional(),
  skip_tags = T.array_of(T.string):describe("none of them does"):is_optional(),
  shuffle = T.integer:min(0):describe("the seed of another order"):is_optional(),
}, { open = false })

--- A case that was described.
M.case = T.shape({
  name = T.string:describe("the names of its blocks and its own, joined by blanks"),
  path = T.array_of(T.string):describe("the same, apart"),
  file = T.string,
  line = T.integer,
  tags = T.array_of(T.string),
})

--- How a case went.
M.result = T.shape({
  name = T.string:describe("the names of its blocks and its own, joined by blanks"),
  path = T.array_of(T.string):describe("the same, apart"),
  status = T.one_of({ "passed", "failed", "pending" }),
  message = T.string:describe("why it failed, or is pending"):is_optional(),
  traceback = T.string:is_optional(),
  file = T.string:describe("where it failed, else where it stands"),
  line = T.integer,
  ms = T.integer:describe("milliseconds it took"),
})

local function arg(schema, desc, arg_name, optional)
  return { schema, desc, name = arg_name, optional = optional }
end

local function word(doc, args, returns)
  return { doc = doc, args = args, returns = returns or "nil" }
end

local got = arg(T.any, "the value", "got", true)
local noted = arg(note, "a note", "note", true)

local function of_one(doc)
  return word(doc, { got, noted })
end

local function of_two(doc)
  return word(doc, { arg(T.any, "what is wanted", "want", true), got, noted })
end

local wanted_error = arg(T.any_of({ T.string, T.table }),
  "a text: held as it stands, or fits as a Lua pattern; a table: the same content", "wanted", true)

local assertions = {
  equal = of_two("Wants got == want."),
  same = of_two("Wants the same content, tables looked into."),
  is_true = of_one("Wants true."),
  is_false = of_one("Wants false."),
  is_nil = of_one("Wants nil."),
  truthy = of_one("Wants neither nil nor false."),
  falsy = of_one("Wants nil or false."),
  is_string = of_one("Wants a string."),
  is_number = of_one("Wants a number."),
  is_boolean = of_one("Wants true or false."),
  is_table = of_one("Wants a table."),
  is_function = of_one("Wants a function."),
  is_userdata = of_one("Wants a userdata."),
  matches = word("Wants a text that holds pattern as it stands, or fits it as a Lua pattern.",
    { arg(T.string, "the pattern", "pattern"), got, noted }),
  near = word("Wants a number at most within away from want.", {
    arg(T.number, "what is wanted", "want"),
    got,
    arg(T.number, "how far it may be away", "within"),
    noted,
  }),
  has_error = word("Wants fn to raise, and what is wanted when that is given.",
    { arg(options.callable, "what raises", "fn"), wanted_error }, "any"),
  errors_at_line = word("Wants fn to raise at its n-th line; line 0 is where it opens.",
    { arg(T.fn, "what raises", "fn"), arg(T.integer, "the line", "n"), wanted_error }, "any"),
  called = word("Wants a call of the spy, or exactly so many.",
    { arg(spy, "the spy", "spy"), arg(T.integer:min(0), "how many", "times", true), noted }),
  called_with = word("Wants a call of the spy with the same arguments.",
    { arg(spy, "the spy", "spy"), arg(T.any, "the arguments", "...", true) }),
}

local body = arg(T.fn, "what describes it", "fn")
local hook = arg(options.callable, "what runs", "fn")

M.api = {
  describe = word("A block of cases; blocks nest.",
    { arg(name, "its name", "name"), body }),
  it = word("A case.", { arg(name, "its name", "name"), arg(T.fn, "its body", "fn") }),
  before_each = word("Runs before each case of the block and of those in it.", { hook }),
  after_each = word("Runs after each case of the block and of those in it, failed or not.",
    { hook }),
  pending = word("A case to come; inside a case it ends it, with the reason.", {
    arg(T.string, "its name, or the reason", "name", true),
    arg(T.fn, "the body it will have", "fn", true),
  }),
  tags = word("Marks the block, or the file, for a choice of cases.",
    { arg(T.string, "a tag", "...") }),
  spy = word("A function that remembers its calls and answers what fn answers.",
    { arg(options.callable, "what it calls", "fn", true) }, M.spy),
  stub = word("Puts a spy in the place of t[key] until the case ends.", {
    arg(T.table, "where it stands", "t"),
    arg(T.any, "the key", "key"),
    arg(options.callable, "what the spy calls", "fn", true),
  }, M.spy),
  assert = {
    doc = "The assertions; called, the plain assert.",
    args = { got, arg(T.any, "what is raised", "message", true) },
    returns = "any",
    members = assertions,
  },
  start = word("Begins a file: forgets what was described and puts the words into globals.",
    { arg(T.table, "where the words go", "globals") }),
  plan = word("The chosen cases, and what runs the next of them each time it is called.",
    { arg(T.any, "a text, or which cases", "choice", true) },
    "spec.case[], fun(): spec.result?"),
  run = word("Runs the chosen cases in their order.",
    { arg(T.any, "a text, or which cases", "choice", true) }, T.array_of(M.result)),
  count = word("How many cases were described.", {}, T.integer),
  shapes = { doc = "The shapes of the vocabulary.", args = {}, returns = "table" },
}

return M
