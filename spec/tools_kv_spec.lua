-- require("tools").kv: tools over the small values that outlive a run.

local knl, ports, tools = require("knl"), require("ports"), require("tools")

local prefix

before_each(function()
  prefix = "tools/" .. knl.new_beat_id() .. "/"
end)

after_each(function()
  for _, key in ipairs(std.kv.list(prefix)) do
    std.kv.delete(key)
  end
end)

local function set() return tools.kv{ prefix = prefix } end

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

describe("tools.kv", function()
  it("makes four tools with their effects", function()
    local t = knl.device{ tools = set() }.tools
    assert.same({ "read", "write", "write", "read" },
      { t.kv_get.effects, t.kv_set.effects, t.kv_delete.effects, t.kv_list.effects })
    for _, entry in pairs(t) do
      assert.same({ true, true }, { entry.strict, entry.idempotent })
    end
  end)

  it("keeps, answers, lists and forgets", function()
    local t = set()
    assert.same({ ok = true }, t.kv_set.handler{ key = "a", value = { n = 1 } })
    t.kv_set.handler{ key = "b/c", value = knl.null }
    assert.same({ n = 1 }, t.kv_get.handler{ key = "a" })
    assert.equal(knl.null, t.kv_get.handler{ key = "b/c" })
    assert.equal(knl.null, t.kv_get.handler{ key = "none" })
    assert.same({ "a", "b/c" }, t.kv_list.handler{})
    assert.same({ "b/c" }, t.kv_list.handler{ prefix = "b" })
    assert.same({ ok = true, deleted = true }, t.kv_delete.handler{ key = "a" })
    assert.same({ ok = true, deleted = false }, t.kv_delete.handler{ key = "a" })
    assert.equal("[]", std.json.encode(t.kv_list.handler{ prefix = "a" }))
  end)

  it("keeps false apart from nothing", function()
    local t = set()
    t.kv_set.handler{ key = "a", value = false }
    assert.equal(false, t.kv_get.handler{ key = "a" })
  end)

  it("shows the keys of its prefix alone", function()
    std.kv.set(prefix .. "mine", 1)
    std.kv.set("other" .. prefix, 2)
    assert.same({ "mine" }, set().kv_list.handler{})
    assert.equal(1, std.kv.get(prefix .. "mine"))
    assert.equal(1, set().kv_get.handler{ key = "mine" })
    std.kv.delete("other" .. prefix)
  end)

  it("refuses what is too large and what is no key", function()
    local t = set()
    local answer = t.kv_set.handler{ key = "a", value = ("x"):rep(65536) }
    assert.same({ false, "too_large" }, { answer.ok, answer.reason })
    assert.equal("bad_key", t.kv_get.handler{ key = "a\nb" }.reason)
    assert.equal("bad_key", t.kv_set.handler{ key = ("é"):rep(100), value = 1 }.reason)
    assert.equal("bad_key", t.kv_list.handler{ prefix = "\0" }.reason)
    assert.equal("bad_key", t.kv_get.handler{ key = "a\194\133b" }.reason)
    assert.equal("bad_key", t.kv_set.handler{ key = "\194\128", value = 1 }.reason)
    assert.equal(knl.null, t.kv_get.handler{ key = "\194\160" })
  end)

  it("lists at most 256 KB of keys", function()
    local t = set()
    for i = 1, 2000 do
      std.kv.set(("%s%s%d"):format(prefix, ("k"):rep(124), i), 1)
    end
    local answer = t.kv_list.handler{}
    assert.same({ false, "too_many" }, { answer.ok, answer.reason })
    assert.matches("give a longer prefix", answer.message)
    assert.equal(1, #t.kv_list.handler{ prefix = ("k"):rep(124) .. "1999" })
    for _, key in ipairs(std.kv.list(prefix)) do
      std.kv.delete(key)
    end
  end)

  it("is called by a model through a beat", function()
    local s = knl.open{ store = "mem" }
    local device = knl.device{
      llm = ports.script{ { calls = { { "kv_set", { key = "k", value = { 1, knl.null } } },
        { "kv_get", { key = "k" } }, { "kv_set", { key = "k" } }, { "kv_get", { key = "" } },
        { "kv_list" } } } }:open(),
      tools = set(),
    }
    assert.equal("ok", knl.beat(s, device).status)
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.same({ 1, knl.null }, rows[2].data.result)
    assert.is_true(rows[3].data.bad_args)
    assert.is_true(rows[4].data.bad_args)
    assert.same({ "k" }, rows[5].data.result)
  end)

  it("names wrong options", function()
    bad("tools.kv: unknown option 'prefx' (did you mean 'prefix'?)",
      function() tools.kv{ prefx = "a" } end)
    bad("tools.kv: prefix must be a string", function() tools.kv{ prefix = 5 } end)
    bad("tools.kv: prefix must be text without control characters",
      function() tools.kv{ prefix = "a\n" } end)
    bad("tools.kv: opts must be a table { prefix? }, got string", function() tools.kv("a") end)
  end)
end)
