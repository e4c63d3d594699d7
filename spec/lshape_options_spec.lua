-- require("lshape.options"): the check of an options table, the same in dev mode
-- and without it.

local options = require("lshape.options")
local T = require("lshape.t")

local SHAPE = T.shape({
  tail = T.integer:min(1):describe("beats to keep"),
  at = T.one_of({ "head", "tail" }):is_optional(),
  name = T.string:min_len(1):is_optional(),
  text = T.string:is_optional(),
  share = T.number:min(0):max(1):is_optional(),
  seconds = T.number:is_optional(),
  strict = T.boolean:is_optional(),
  when = options.callable:describe("asked at each beat"):is_optional(),
  kinds = T.array_of(T.string:min_len(1)):min_len(1):is_optional(),
  weights = T.map_of(T.string, T.number):is_optional(),
  content = T.any_of({ T.string, T.array_of(T.shape({ type = T.string })) }):is_optional(),
  either = T.any_of({ T.string, T.number }):is_optional(),
  id = T.pattern("^%w+$"):is_optional(),
  pair = T.tuple({ T.string, T.number }):is_optional(),
  anything = T.any:is_optional(),
  fit = T.shape({
    port = T.any:describe("the port that counts"),
    reserve = T.integer:min(0):is_optional(),
    conf = T.shape({ model = T.string:is_optional() }, { open = false }):is_optional(),
  }, { open = false }):is_optional(),
  open = T.shape({ known = T.string:is_optional() }):is_optional(),
}, { open = false })

-- Checks opts as a factory does; tail is given unless the case gives it.
local function factory(opts, extra)
  options.check("policy.window", opts, SHAPE, extra)
  return opts
end

local function with(fields)
  fields.tail = fields.tail or 1
  return fields
end

-- Wants the factory to raise exactly this, at the line of its caller.
local function refused(words, opts, extra)
  local raised = assert.errors_at_line(function()
    local _ = factory(opts, extra)
  end, 1, words)
  assert.equal(words, raised:match("^[^:]+:%d+: (.*)$"))
end

local function refuses(words, fields)
  refused("policy.window: " .. words, with(fields))
end

describe("lshape.options.check", function()
  it("answers the very options", function()
    local opts = { tail = 3, kinds = { "a" }, fit = { port = false, conf = {} } }
    assert.equal(opts, options.check("policy.window", opts, SHAPE))
    assert.equal(opts, factory(opts))
  end)

  it("reads past a description of the shape", function()
    local raised = assert.has_error(function() options.check("f", {}, SHAPE:describe("d")) end)
    assert.matches("f: tail is required", raised)
  end)

  it("wants a table", function()
    refused("policy.window: opts must be a table, got number", 5)
    refused("policy.window: opts must be a table, got nil", nil)
    refused("policy.window: opts must be a table, got boolean", false)
    refused("policy.window: opts must be a table, got userdata", require("knl").device{})
    refused("policy.window: opts must be a table { tail, fit? }, got string", "x",
      { opts = "{ tail, fit? }" })
  end)
end)

describe("lshape.options an unknown option", function()
  it("is told the nearest name", function()
    refused("policy.window: unknown option 'tial' (did you mean 'tail'?)", { tial = 1 })
    refuses("unknown option 'kind' (did you mean 'kinds'?)", { kind = { "a" } })
    refuses("unknown option 'stritc' (did you mean 'strict'?)", { stritc = true })
  end)

  it("is told all names when none is near", function()
    local Small = T.shape({ max = T.any, fit = T.any }, { open = false })
    local function small(opts)
      options.check("f", opts, Small)
    end
    assert.errors_at_line(function() small({ whatever = 1 }) end, 0,
      "f: unknown option 'whatever' (known: fit, max)")
    assert.errors_at_line(function() small({ [("x"):rep(5000)] = 1 }) end, 0,
      "f: unknown option '" .. ("x"):rep(80) .. "…' (known: fit, max)")
    local None = T.shape({}, { open = false })
    local function none(opts)
      options.check("f", opts, None)
    end
    assert.errors_at_line(function() none({ a = 1 }) end, 0,
      "f: unknown option 'a' (there are none)")
  end)

  it("is every key that is no string", function()
    local known = "%(known: "
    assert.has_error(function() factory(with({ "tail" })) end, "unknown option %[1%] " .. known)
    assert.has_error(function() factory(with({ [true] = 1 })) end,
      "unknown option %[true%] " .. known)
  end)

  it("is the first by name", function()
    refuses("unknown option 'nam' (did you mean 'name'?)", { teil = 1, nam = 1 })
  end)

  it("that is known to be wrong has its own hint", function()
    refused("policy.window: unknown option 'session' (the session is an argument: f(session))",
      with({ session = {} }), { hints = { session = "the session is an argument: f(session)" } })
  end)

  it("comes before every wrong value", function()
    refused("policy.window: unknown option 'fitt' (did you mean 'fit'?)", { fitt = 1 })
  end)

  it("in a nested table names the table", function()
    refused("policy.window fit: unknown option 'prot' (did you mean 'port'?)",
      with({ fit = { prot = 1 } }))
    refused("policy.window fit.conf: unknown option 'modle' (did you mean 'model'?)",
      with({ fit = { port = 1, conf = { modle = "m" } } }))
    assert.truthy(factory(with({ open = { any = 1 } })))
  end)

  it("is not lent by a metatable", function()
    refused("policy.window: opts must be a plain table, got one with an __index",
      setmetatable({ tail = 1 }, { __index = { keep_seed = "yes" } }))
    assert.truthy(factory(setmetatable({ tail = 1 }, { __jsontype = "object" })))
  end)
end)

describe("lshape.options a required option", function()
  it("is told what it is for", function()
    refused("policy.window: tail is required — beats to keep", {})
    refuses("fit.port is required — the port that counts", { fit = {} })
  end)

  it("is required also when it may be anything", function()
    assert.truthy(factory(with({ fit = { port = false } })))
  end)
end)

describe("lshape.options a wrong value", function()
  it("where a whole number is wanted", function()
    refused("policy.window: tail must be a whole number >= 1, got 0", { tail = 0 })
    refused("policy.window: tail must be a whole number >= 1, got 2.5", { tail = 2.5 })
    refused("policy.window: tail must be a whole number >= 1, got nan", { tail = 0 / 0 })
    refused("policy.window: tail must be a whole number >= 1, got inf", { tail = math.huge })
    refused('policy.window: tail must be a whole number >= 1, got "3"', { tail = "3" })
    refused("policy.window: tail must be a whole number >= 1, got false", { tail = false })
    refused("policy.window: tail must be a whole number >= 1, got table", { tail = { 1 } })
    refuses("fit.reserve must be a whole number >= 0, got 1.5",
      { fit = { port = 1, reserve = 1.5 } })
  end)

  it("where a number is wanted", function()
    refuses("share must be a number from 0 to 1, got 2", { share = 2 })
    refuses("share must be a number from 0 to 1, got true", { share = true })
    refuses('seconds must be a number, got "1"', { seconds = "1" })
    refuses("seconds must be a finite number, got nan", { seconds = 0 / 0 })
    refuses("seconds must be a finite number, got inf", { seconds = math.huge })
    refuses("share must be a finite number from 0 to 1, got -inf", { share = -math.huge })
  end)

  it("where a string is wanted", function()
    refuses("text must be a string, got number", { text = 5 })
    refuses("text must be a string, got false", { text = false })
    refuses('name must be a non-empty string, got ""', { name = "" })
    refuses("name must be a non-empty string, got number", { name = 5 })
    refuses('id must be a string that matches "^%w+$", got "a b"', { id = "a b" })
    refuses('id must be a string that matches "^%w+$", got 5', { id = 5 })
    assert.truthy(factory(with({ text = "", id = "ab" })))
  end)

  it("where one of some words is wanted", function()
    refuses('at must be one of "head", "tail", got "x"', { at = "x" })
    refuses('at must be one of "head", "tail", got 1', { at = 1 })
    refuses('at must be one of "head", "tail", got table', { at = { 1 } })
  end)

  it("where true or false is wanted", function()
    refuses("strict must be true or false, got 3", { strict = 3 })
    refuses('strict must be true or false, got "yes"', { strict = "yes" })
    assert.truthy(factory(with({ strict = false })))
  end)

  it("where a function is wanted", function()
    refuses("when must be a function, got false", { when = false })
    refuses("when must be a function, got string", { when = "f" })
    refuses("when must be a function, got table", { when = { 1 } })
    assert.truthy(factory(with({ when = print })))
    assert.truthy(factory(with({ when = setmetatable({}, { __call = print }) })))
  end)

  it("where a list is wanted", function()
    refuses("kinds must be a non-empty list, got an empty table", { kinds = {} })
    refuses("kinds must be a non-empty list, got string", { kinds = "a" })
    refuses('kinds must be a non-empty list, got a table with the key "read"',
      { kinds = { "a", read = true } })
    refuses("kinds must be a non-empty list, got a list with a hole at 2",
      { kinds = { "a", nil, "c" } })
    refuses("kinds must be a non-empty list, got a list with a hole at 1", { kinds = { [2] = "a" } })
    refuses("kinds[2] must be a non-empty string, got number", { kinds = { "a", 5 } })
    refuses('kinds[1] must be a non-empty string, got ""', { kinds = { "" } })
  end)

  it("where a map is wanted", function()
    refuses("weights must be a table, got number", { weights = 1 })
    refuses('weights.b must be a number, got "x"', { weights = { a = 1, b = "x" } })
    refuses("the key of weights[1] must be a string, got number", { weights = { 1 } })
  end)

  it("where a table is wanted", function()
    refuses("fit must be a table, got true", { fit = true })
    refuses("fit must be a table, got string", { fit = "port" })
  end)

  it("where one of several things is wanted", function()
    refuses("either must be a string or a number, got table", { either = { 1 } })
    refuses("content must be a string or a list, got number", { content = 5 })
    refuses("content[1].type is required", { content = { {} } })
    refuses("content[1].type must be a string, got number", { content = { { type = 5 } } })
    assert.truthy(factory(with({ content = "x", either = 5 })))
  end)

  it("of another kind in the words of the general check", function()
    refuses("pair[2]: missing tuple element (expected 2 elements)", { pair = { "a" } })
    assert.truthy(factory(with({ pair = { "a", 1 } })))
  end)

  it("is the first by name", function()
    refuses('at must be one of "head", "tail", got 1', { text = 1, at = 1 })
  end)
end)

describe("lshape.options.fail", function()
  local function odd()
    local never = options.fail("m.f", "%s is odd, want %d", "x", 2)
    return never
  end

  it("raises at who called the asking function", function()
    assert.errors_at_line(function() local _ = odd() end, 0, "m.f: x is odd, want 2")
  end)

  it("takes a text that is no format when nothing follows", function()
    local function percent()
      options.fail("m.f", "100%")
    end
    assert.errors_at_line(function() percent() end, 0, "m.f: 100%")
  end)
end)

describe("lshape.options a module", function()
  -- Requires source as the module name.
  local function module_of(name, source)
    local file = name:gsub("%.", "/") .. ".lua"
    package.places[file] = name
    return assert(load(source, "=" .. file))()
  end

  it("is passed over with all its files, to the line that called it", function()
    local inner = module_of("pack.inner", [[
      local options = require("lshape.options")
      return function(opts, shape)
        local function checked() local o = options.check("pack.new", opts, shape) return o end
        local o = checked()
        return o
      end]])
    local new = module_of("pack", [[
      return function(inner)
        return function(opts, shape) local o = inner(opts, shape) return o end
      end
    ]])(inner)
    assert.errors_at_line(function()
      new({}, SHAPE)
    end, 1, "pack.new: tail is required")
  end)

  it("of another package is whose mistake it is", function()
    local user = module_of("mine.agent", [[
      return function(factory)
        local made = factory({})
        return made
      end]])
    local raised = assert.has_error(function() user(factory) end)
    assert.matches("^mine/agent.lua:2: policy.window: tail is required", raised)
  end)

  it("is passed over through the gate too", function()
    stub(require("lshape.check"), "is_dev_mode", function() return true end)
    local api = { new = { args = { { SHAPE, "what", name = "opts" } } } }
    local M = { new = factory, shapes = { api = api } }
    require("lshape.gate")(M, "policy")
    assert.errors_at_line(function()
      M.new({ tial = 1 })
    end, 1, "policy.window: unknown option 'tial'")
    assert.errors_at_line(function()
      M.new({ tail = 0 })
    end, 1, "policy.window: tail must be a whole number >= 1, got 0")
  end)
end)

describe("lshape.options.is_callable", function()
  it("is a function, or a value whose metatable has __call", function()
    assert.is_true(options.is_callable(print))
    assert.is_true(options.is_callable(setmetatable({}, { __call = print })))
    assert.is_true(options.is_callable(spy()))
    assert.is_false(options.is_callable(setmetatable({}, { __index = { __call = print } })))
    for _, v in ipairs{ 1, "f", true, {} } do
      assert.is_false(options.is_callable(v))
    end
    assert.is_false(options.is_callable(nil))
    assert.is_false(options.is_callable(require("knl").device{}))
    local model = require("ports").script{ { text = "x" } }:open()
    assert.is_true(options.is_callable(model))
  end)
end)

describe("lshape.options.callable", function()
  it("is a schema that functions and callable tables pass", function()
    local check = require("lshape.check").check
    assert.is_true((check(print, options.callable)))
    assert.is_true((check(spy(), options.callable)))
    assert.is_false((check("f", options.callable)))
  end)
end)
