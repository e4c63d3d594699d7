--- lshape.shapes: what lshape exports, in the form of every module's shapes.
--
--    api        export of require("lshape") -> { doc, args, returns, members? }
--    objects    the methods of a schema
--    modules    the same for what is reached by require alone
--
-- lshape itself stands in no gate: its functions check what they are given, in
-- both modes. This is for knl types and for who looks things up.
--
-- Example:
--
--    print(require("lshape.shapes").api.t.members.one_of.doc)

local T = require("lshape.t")

local M = {}

local function arg(schema, desc, name, optional)
  return { schema, desc, name = name, optional = optional }
end

local function entry(doc, args, returns)
  return { doc = doc, args = args, returns = returns }
end

local schema = setmetatable({ kind = "prim", prim = "table", cats = "lshape.schema" },
  getmetatable(T.table)):describe("a schema")

-- A function of t: what it takes, and it answers a schema.
local function maker(doc, ...)
  return entry(doc, { ... }, "lshape.schema")
end

local function constant(doc)
  return { doc = doc, returns = "lshape.schema" }
end

local fields = arg(T.map_of(T.string, schema), "name to schema", "fields")
local open = T.boolean:describe("takes other fields (true)"):is_optional()
local shape_opts = arg(T.shape({ open = open }), "whether it is closed", "opts", true)

local constructors = {
  string = constant("A string."),
  number = constant("A number."),
  boolean = constant("True or false."),
  table = constant("A table."),
  fn = constant("A function."),
  any = constant("Anything, nil too."),
  integer = constant("A whole number."),
  shape = maker("A table with fields; open to others unless opts.open is false.",
    fields, shape_opts),
  partial = maker("A shape whose fields may all be left out.", fields, shape_opts),
  array_of = maker("A list of elem.", arg(schema, "of each element", "elem")),
  map_of = maker("A table whose keys are key and whose values are val.",
    arg(schema, "of each key", "key"), arg(schema, "of each value", "val")),
  one_of = maker("One of some strings, numbers and booleans.",
    arg(T.table, "the values", "values")),
  literal = maker("The one value v.", arg(T.any, "a string, number or boolean", "v")),
  any_of = maker("The first of variants that fits.",
    arg(T.array_of(schema), "two or more", "variants")),
  discriminated = maker("The shape of variants that the field tag names.",
    arg(T.string, "the field", "tag"),
    arg(T.map_of(T.string, schema), "value of tag to shape", "variants")),
  pattern = maker("A string in which the Lua pattern is found.",
    arg(T.string, "the pattern", "pat")),
  ref = maker("The schema that a registry holds under name.", arg(T.string, "its name", "name")),
  tuple = maker("A list of exactly these items.", arg(T.array_of(schema), "one or more", "items")),
}

local value = arg(T.any, "the value", "value", true)
local registry = arg(
  T.shape({ registry = T.map_of(T.string, schema):describe("what refs name"):is_optional() }),
  "the registry", "opts", true)
local assert_args = {
  value,
  arg(T.any_of({ T.string, schema }), "a schema, or its name in the registry", "schema_or_name"),
  arg(T.string, "what the value is, for the message", "hint", true),
  registry,
}

local checks = {
  check = entry("Whether value fits schema, and why not.",
    { value, arg(schema, "nil fits all", "schema", true), registry }, "boolean, string?"),
  assert = entry("Answers value, or raises why it does not fit at the line of the caller.",
    assert_args, "any"),
  assert_dev = entry("Asserts in dev mode; otherwise answers value unseen.", assert_args, "any"),
  is_dev_mode = entry("Whether the environment variable dev_env_var is exactly 1.", {}, "boolean"),
  dev_env_var = { doc = "The name of that variable.", returns = "string" },
  default_registry = {
    doc = "What refs name when no registry is passed; nil until a host binds it.",
    returns = "table<string, lshape.schema>|nil",
  },
}

local reflections = {
  fields = entry("The fields of a shape, sorted by name.",
    { arg(schema, "of kind shape", "shape") },
    "{ name: string, type: lshape.schema, optional: boolean, doc?: string }[]"),
  walk = entry("Calls visitor with a schema and then with its parts, depth first.",
    { arg(schema, "where to begin", "schema"), arg(T.fn, "called with each", "visitor") }, "nil"),
}

local prefix = arg(T.string, "in front of the names of refs", "prefix", true)

local writers = {
  type_of = entry("The type of a schema.",
    { arg(schema, "any schema", "schema"), prefix }, "string"),
  class_for = entry("A class with the fields of a shape.", {
    arg(T.string, "its name", "class_name"),
    arg(schema, "of kind shape", "shape"),
    prefix,
  }, "string"),
  gen = entry("A meta file with a class for each shape.",
    { arg(T.table, "name to schema", "shapes", true), prefix }, "string"),
}

M.api = {
  _VERSION = { doc = "The version of the library.", returns = "string" },
  t = { doc = "Constructors of schemas.", returns = "table", members = constructors },
  check = { doc = "Holds values against schemas.", returns = "table", members = checks },
  reflect = { doc = "Reads schemas.", returns = "table", members = reflections },
  luacats = {
    doc = "Writes schemas as LuaCATS annotations.",
    returns = "table",
    members = writers,
  },
}

local bound = arg(T.number, "the bound, itself allowed", "n")
local length = arg(T.integer:min(0), "bytes of a string or elements of a list", "n")

M.objects = {
  ["lshape.schema"] = {
    is_optional = maker("The same, and nil passes too."),
    describe = maker("The same, with a word on what the value is for.",
      arg(T.string, "the word", "doc")),
    min = maker("A number of n or more.", bound),
    max = maker("A number of n or less.", bound),
    min_len = maker("Of n or more.", length),
    max_len = maker("Of n or less.", length),
  },
}

local where = arg(T.string, "the function, as scripts call it", "where")
local extra = T.shape({
  hints = T.map_of(T.string, T.string)
    :describe("what to say of an option that is known to be wrong"):is_optional(),
  opts = T.string:describe("how the table looks, for who gives no table"):is_optional(),
})

M.modules = {
  ["lshape.options"] = {
    check = entry("Answers opts when it is what shape says, else raises at who called.", {
      where,
      arg(T.any, "the options", "opts", true),
      arg(schema, "a closed shape", "shape"),
      arg(extra, "hints", "extra", true),
    }, "table"),
    fail = entry("Raises text as the mistake of whoever called the asking module.", {
      where,
      arg(T.string, "what is wrong", "text"),
      arg(T.any, "for string.format", "...", true),
    }, "nil"),
    callable = constant("A function or what can be called, in a shape of options."),
    is_callable = entry("Whether v can be called.",
      { arg(T.any, "the value", "v", true) }, "boolean"),
  },
  ["lshape.gate"] = entry("Wraps the functions of a module that declares them, in dev mode.", {
    arg(T.table, "with shapes.api", "module"),
    arg(T.string, "as scripts write it", "name"),
  }, "table"),
}

return M
