-- policy.require_args: a call without its required arguments does not run.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local function tool(required, handler)
  return { handler = handler or function() return "ran" end, effects = "read",
    input_schema = { type = "object", required = required } }
end

local function call(required, args)
  return policy.require_args()({ t = tool(required) }).t.handler(args, {})
end

describe("policy.require_args", function()
  it("runs a call that has what its tool requires", function()
    assert.equal("ran", call({ "a" }, { a = 1 }))
    assert.equal("ran", call({ "a", "b" }, { a = false, b = knl.null, c = 3 }))
  end)

  it("answers a call that lacks some, naming all that are missing", function()
    assert.same({ ok = false, reason = "argument_missing", missing = { "a", "c" },
      error = "t needs a, b, c, missing: a, c" }, call({ "a", "b", "c" }, { b = "x" }))
    assert.same({ "a" }, call({ "a" }, {}).missing)
    assert.same({ "a" }, call({ "a" }, nil).missing)
    assert.same({ "a" }, call({ "a" }, "text").missing)
  end)

  it("is what a model reads in a real beat", function()
    local ran = {}
    local tools = policy.require_args()({ t = tool({ "path" }, function(args, ctx)
      ran[#ran + 1] = args.path .. type(ctx.session)
      return "ok"
    end) })
    local s = knl.open{ store = "mem" }
    local o = knl.beat(s, knl.device{ tools = tools,
      llm = ports.script{ { calls = { { "t", {} }, { "t", { path = "p" } } } } }:open() })
    assert.equal("ok", o.status)
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.equal("argument_missing", rows[1].data.result.reason)
    assert.same({ "path" }, rows[1].data.result.missing)
    assert.equal("ok", rows[2].data.result)
    assert.same({ "puserdata" }, ran)
  end)

  it("hands back as it is what requires nothing", function()
    local mine = {
      none = { handler = print },
      plain = { handler = print, input_schema = { type = "object" } },
      empty = tool({}),
      tagged = tool(knl.array()),
    }
    local made = policy.require_args()(mine)
    for name, entry in pairs(mine) do
      assert.equal(entry, made[name], name)
    end
    assert.is_false(made == mine)
  end)

  it("keeps the other fields of an entry and the entry itself", function()
    local entry = tool({ "a" })
    local handler = entry.handler
    local made = policy.require_args()({ t = entry }).t
    assert.equal(handler, entry.handler)
    assert.equal("read", made.effects)
    assert.equal(entry.input_schema, made.input_schema)
  end)

  it("asks for what was required when it was made", function()
    local entry = tool({ "a" })
    local made = policy.require_args()({ t = entry }).t
    entry.input_schema.required[1] = "b"
    assert.equal("ran", made.handler({ a = 1 }, {}))
  end)

  it("takes the tools of a device, and stands around other wrappers", function()
    local device = knl.device{ tools = { t = tool({ "a" }) } }
    local s = knl.open{ store = "mem" }
    local tools = policy.require_args()(policy.repeat_cap{ max = 1 }(s)(device.tools))
    for _ = 1, 3 do
      assert.equal("argument_missing", tools.t.handler({}, {}).reason)
    end
    assert.equal("ran", tools.t.handler({ a = 1 }, {}))
  end)
end)

describe("the tools of policy.require_args", function()
  it("are a map of entries with handlers and schemas", function()
    local guard = policy.require_args()
    bad("policy.require_args: tools must be a map from name to entry, got nil",
      function() guard() end)
    bad('policy.require_args: tool "t" has no handler, want a function, got nil',
      function() guard{ t = {} } end)
    bad('policy.require_args: tool "t": input_schema.required must be a list of names, got string',
      function() guard{ t = tool("path") } end)
    bad('tool "t": input_schema.required must be a list of names, got number at [1]',
      function() guard{ t = tool({ 5 }) } end)
    bad('tool "t": input_schema.required must be a list of names, got boolean at [path]',
      function() guard{ t = tool({ path = true }) } end)
    bad('tool "t": input_schema.required must be a list of names, got a hole at [2]',
      function() guard{ t = tool({ "a", [3] = "b" }) } end)
    bad('tool "t": input_schema.required must be a list of names, got a hole at [1]',
      function() guard{ t = tool({ [1.5] = "a" }) } end)
  end)
end)

describe("the options of policy.require_args", function()
  it("are none", function()
    policy.require_args{}
    bad("policy.require_args: unknown option 'strict' (there are none)",
      function() policy.require_args{ strict = true } end)
    bad("policy.require_args: opts must be a table, got boolean",
      function() policy.require_args(true) end)
    bad("policy.require_args: opts must be a table, got boolean",
      function() policy.require_args(false) end)
  end)
end)
