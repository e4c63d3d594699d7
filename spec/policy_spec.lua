-- The pack: what is true of every policy.

local knl, policy, ports = require("knl"), require("policy"), require("ports")
local canonical = require("policy.canonical")

local port = ports.script{}

-- Options that each factory takes; false for none.
local good = {
  window = { tail = 1 }, carry = {}, stagnation = {}, retry = {},
  escalate = { strong = function() end }, compact = { fold = function() end }, checkpoint = {},
  tokens = { port = port }, settle = {}, result_cap = { port = port },
  thinking_cap = { port = port, call_reserve = 1 }, repeat_cap = {}, require_args = false,
  verdict = {}, beat_cap = { max = 1 }, deadline = { seconds = 1 }, room = { port = port },
}

local function names()
  local out = {}
  for name, v in pairs(policy) do
    if type(v) == "function" then out[#out + 1] = name end
  end
  table.sort(out)
  return out
end

describe("policy", function()
  it("has every policy as a function, and shapes", function()
    local want = {}
    for name in pairs(good) do want[#want + 1] = name end
    table.sort(want)
    assert.same(want, names())
    assert.equal("table", type(policy.shapes))
    for name, v in pairs(policy) do
      assert.is_true(type(v) == "function" or name == "shapes", name)
    end
  end)

  it("declares every export, and nothing else", function()
    for name in pairs(policy) do
      local entry = policy.shapes.api[name]
      assert.equal("table", type(entry), name)
      assert.matches("%.$", entry.doc)
      assert.truthy(entry.returns, name)
    end
    for name in pairs(policy.shapes.api) do
      assert.truthy(policy[name], name)
    end
  end)

  it("publishes the shapes of options, closed", function()
    for name, opts in pairs(good) do
      local shape = policy.shapes[name .. "_opts"]
      if opts then
        assert.equal("shape", shape.kind, name)
        assert.is_false(shape.open, name)
      end
    end
  end)

  it("takes what describes a value of the kernel from the kernel", function()
    assert.is_true(policy.shapes.beat_record == knl.shapes.beat_record)
    local kinds = {}
    for _, kind in ipairs(policy.shapes.retry_opts.fields.kinds.inner.inner.inner.elem.values) do
      kinds[kind] = true
    end
    for _, list in ipairs{ knl.shapes.error_kinds, knl.shapes.call_error_kinds } do
      for _, kind in ipairs(list.values) do assert.is_true(kinds[kind], kind) end
    end
  end)

  it("names the members of what it hands back and takes", function()
    local members = {
      window = { "fits", "fold" }, carry = { "bind", "failed", "filter" },
      stagnation = { "predicate", "signature" }, retry = { "predicate" },
        escalate = { "next", "when" },
      compact = { "due", "fold", "record" }, checkpoint = { "mark" },
    }
    for name, want in pairs(members) do
      local have = {}
      for member, entry in pairs(policy.shapes.api[name].members) do
        have[#have + 1] = member
        assert.matches("[.]$", entry.doc)
        assert.truthy(entry.returns, member)
        for _, arg in ipairs(entry.args) do
          assert.equal("string", type(arg.name), member)
          assert.equal("string", type(arg[2]), member)
        end
      end
      table.sort(have)
      assert.same(want, have, name)
    end
  end)
end)

describe("a factory", function()
  local function with(opts, key, value)
    local out = {}
    for k, v in pairs(opts or {}) do out[k] = v end
    out[key] = value
    return out
  end

  it("refuses a session, a store, an owner and a budget that it has no option for", function()
    local s = knl.open{ store = "mem" }
    for name, opts in pairs(good) do
      if opts then
        for key, value in pairs{ session = s, store = "mem", owner = "ada",
          budget = { amount = 1 } } do
          local own = policy.shapes[name .. "_opts"].fields[key]
          local ok, why = pcall(policy[name], with(opts, key, own and {} or value))
          local want = own and "%s must be" or "unknown option '%s'"
          assert.is_false(ok, name .. " " .. key)
          assert.matches(("policy%%.%s: " .. want):format(name, key), tostring(why))
        end
      end
    end
  end)

  it("refuses a table in place of its options that is none", function()
    for name, opts in pairs(good) do
      if opts then
        for _, v in ipairs{ 5, "x", true } do
          local ok, why = pcall(policy[name], v)
          assert.is_false(ok, name)
          assert.matches(("policy%%.%s: opts must be a table"):format(name), tostring(why))
        end
      end
    end
  end)

  it("refuses a number beyond 2^53, and takes 2^53 to the end", function()
    local s = knl.open{ store = "mem" }
    local numbers = { window = { "tail" }, carry = { "max_bytes" }, beat_cap = { "max" },
      stagnation = { "same", "no_progress", "depth" }, retry = { "max" },
      compact = { "min_beats" }, checkpoint = { "every" }, deadline = { "seconds" },
      repeat_cap = { "max", "within" } }
    for name, keys in pairs(numbers) do
      for _, key in ipairs(keys) do
        for shown, n in pairs{ ["1e+18"] = 1e18, ["1e+300"] = 1e300 } do
          assert.errors_at_line(function() policy[name](with(good[name], key, n)) end, 0,
            ("policy.%s: %s must be at most 2^53, got %s"):format(name, key, shown))
        end
        policy[name](with(good[name], key, 2 ^ 53))
      end
    end
    local port = { count = print, profile = print }
    assert.errors_at_line(function() policy.window{ fit = { port = port, reserve = 1e18 } } end, 0,
      "policy.window: fit.reserve must be at most 2^53, got 1e+18")
    assert.errors_at_line(function() policy.room{ port = port, reserve = 1e18 } end, 0,
      "policy.room: reserve must be at most 2^53, got 1e+18")
    assert.is_nil(policy.stagnation{ same = 2 ^ 53, period = 4, no_progress = 2 ^ 53 }(s))
    assert.equal(0, #(policy.window{ tail = 2 ^ 53 }(s)).messages)
    assert.is_nil(policy.compact{ fold = print, min_beats = 2 ^ 53 }(s))
    assert.is_nil(policy.checkpoint{ every = 2 ^ 53 }(s))
    assert.is_nil(policy.beat_cap{ max = 2 ^ 53 }(s))
  end)

  it("raises at the line that called it, from wherever", function()
    assert.errors_at_line(function() policy.window{ tail = 0 } end, 0,
      "policy.window: tail must be")
    local window = policy.window
    assert.errors_at_line(function() window{ tail = 0 } end, 0, "policy.window: tail must be")
    local alias = { make = policy.carry }
    assert.errors_at_line(function() alias.make{ max_bytes = 0 } end, 0,
      "policy.carry: max_bytes must be")
  end)

  it("is frozen: a change of its options changes nothing", function()
    local opts = { tail = 1 }
    local fold = policy.window(opts)
    opts.tail = 100
    local events = { { kind = "llm_response", beat = "a", data = { content = {} } },
      { kind = "llm_response", beat = "b", data = { content = {} } } }
    assert.equal(1, #(fold(events)).messages)
  end)
end)

describe("policies of one factory", function()
  it("keep nothing between calls and sessions", function()
    local stuck = policy.stagnation{ same = 2 }
    local function session_of(n)
      local s = knl.open{ store = "mem" }
      for i = 1, n do
        s:append{ kind = "tool_call", beat = "b" .. i,
          data = { call_id = "1", name = "t", args = {} } }
      end
      return s
    end
    local one, two = session_of(1), session_of(2)
    for _ = 1, 3 do
      assert.is_nil(stuck(one))
      assert.equal("repeated", stuck(two))
    end
  end)
end)

describe("canonical.render", function()
  local render = canonical.render

  it("sorts keys and keeps types apart", function()
    assert.equal('{"a":true,"b":[1,"1"]}', render{ b = { 1, "1" }, a = true })
    assert.equal('{"1":"y",1:"x"}', render{ [1] = "x", ["1"] = "y" })
    assert.equal("{}", render{})
    assert.equal("[]", render(knl.array()))
    assert.equal("nil", render(nil))
    assert.equal("null", render(knl.null))
    assert.equal('"null"', render("null"))
  end)

  it("writes numbers out, whole ones without a fraction", function()
    assert.equal("3", render(3.0))
    assert.equal("-2.5", render(-2.5))
    assert.equal("0.10000000000000001", render(0.1))
    assert.equal("9007199254740993", render(knl.int("9007199254740993")))
    assert.equal("nan", render(0 / 0))
    assert.equal("inf", render(1 / 0))
  end)

  it("names no address", function()
    for _, v in ipairs{ print, knl.device{}, coroutine.create(print), { print }, { [{}] = 1 } } do
      assert.is_nil(render(v):find("0x"), render(v))
    end
    assert.equal("<function>", render(print))
    assert.equal("<userdata>", render(knl.device{}))
  end)

  it("marks levels below depth, and tables inside themselves", function()
    assert.equal('{"v":{"v":<deeper>}}', render({ v = { v = { v = 1 } } }, 2))
    local deep = 1
    for _ = 1, 9 do deep = { deep } end
    assert.equal("[[[[[[[[<deeper>]]]]]]]]", render(deep))
    local loop = { a = 1 }
    loop.self, loop.again = loop, { loop }
    assert.equal('{"a":1,"again":[<cycle>],"self":<cycle>}', render(loop))
  end)

  it("renders a table that stands in two places twice", function()
    local shared = { 1 }
    assert.equal('[[1],[1]]', render{ shared, shared })
  end)
end)
