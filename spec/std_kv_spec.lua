-- std.kv: small values that outlive a run.

local knl = require("knl")
local kv = std.kv

local prefix -- of the case's own keys: the store is that of the run

before_each(function()
  prefix = "spec/" .. knl.new_beat_id() .. "/"
end)

after_each(function()
  for _, key in ipairs(kv.list(prefix)) do
    kv.delete(key)
  end
end)

local function bad(text, fn)
  return assert.errors_at_line(fn, 0, text)
end

describe("std.kv.get", function()
  it("gives back what was set, whatever JSON can say", function()
    for i, value in ipairs{ "text", "", 5, 0.5, true, false, { 1, 2 }, { a = { b = "c" } },
      knl.null, knl.int("9007199254740993"), knl.array() } do
      kv.set(prefix .. i, value)
      assert.same(value, kv.get(prefix .. i))
    end
    assert.equal("[]", std.json.encode(kv.get(prefix .. 11)))
  end)

  it("has nil for a key that is not there", function()
    assert.is_nil(kv.get(prefix .. "none"))
  end)

  it("hands out values that are the caller's own", function()
    local value = { a = { 1 } }
    kv.set(prefix .. "k", value)
    value.a[1] = 2
    kv.get(prefix .. "k").a[1] = 3
    assert.same({ a = { 1 } }, kv.get(prefix .. "k"))
  end)
end)

describe("std.kv.delete", function()
  it("says whether there was something to delete", function()
    kv.set(prefix .. "k", 1)
    assert.is_true(kv.delete(prefix .. "k"))
    assert.is_false(kv.delete(prefix .. "none"))
  end)

  it("keeps the last value, and forgets what is deleted", function()
    kv.set(prefix .. "k", 1)
    kv.set(prefix .. "k", 2)
    assert.equal(2, kv.get(prefix .. "k"))
    assert.is_true(kv.delete(prefix .. "k"))
    assert.is_nil(kv.get(prefix .. "k"))
    assert.is_false(kv.delete(prefix .. "k"))
    kv.set(prefix .. "k", 3)
    assert.equal(3, kv.get(prefix .. "k"))
  end)
end)

describe("std.kv.list", function()
  it("lists keys by their beginning, sorted", function()
    for _, name in ipairs{ "b/2", "a", "b/1", "c%." } do
      kv.set(prefix .. name, 1)
    end
    assert.same({ prefix .. "a", prefix .. "b/1", prefix .. "b/2", prefix .. "c%." },
      kv.list(prefix))
    assert.same({ prefix .. "b/1", prefix .. "b/2" }, kv.list(prefix .. "b/"))
    assert.same({ prefix .. "c%." }, kv.list(prefix .. "c%."))
    assert.equal("[]", std.json.encode(kv.list(prefix .. "none")))
    assert.is_true(#kv.list() >= 4)
  end)
end)

describe("std.kv.set", function()
  it("stands in the log of a session of its own", function()
    kv.set(prefix .. "k", "seen")
    local rows = knl.attach{ session = ".kv" }:scan{ kinds = { "kv_set" } }
    assert.same({ key = prefix .. "k", value = "seen" }, rows[#rows].data)
  end)

  it("passes over what somebody else appended there", function()
    kv.set(prefix .. "k", 1)
    local log = knl.attach{ session = ".kv" }
    log:append{ kind = "kv_set", data = { key = 5 } }
    log:append{ kind = "kv_set", data = { key = prefix .. "none" } }
    log:append{ kind = "note", data = { key = prefix .. "none", value = 1 } }
    assert.same({ prefix .. "k" }, kv.list(prefix))
  end)

  it("wants a key of 1 to 256 bytes of text", function()
    local text = "argument 1 (key): got"
    bad(text .. " nil, want a string", function() kv.get() end)
    bad(text .. ' "", want 1 to 256 bytes', function() kv.get("") end)
    bad(text, function() kv.set(("k"):rep(257), 1) end)
    bad(text .. ' "a\\nb", want 1 to 256 bytes', function() kv.delete("a\nb") end)
    bad(text, function() kv.set("a\255", 1) end)
    kv.set(prefix .. ("k"):rep(256 - #prefix), 1)
  end)

  it("wants a value that JSON can say", function()
    bad("argument 2 (value): got nil, want a value", function() kv.set(prefix .. "k") end)
    bad("value: got a function", function() kv.set(prefix .. "k", print) end)
    bad("got NaN", function() kv.set(prefix .. "k", { 0 / 0 }) end)
    assert.is_nil(kv.get(prefix .. "k"))
  end)

  it("refuses what is too large, and keeps what was there", function()
    kv.set(prefix .. "k", ("x"):rep(64 * 1024 - 2))
    local raised = bad("got 65537 bytes as JSON, want at most 65536",
      function() kv.set(prefix .. "k", ("x"):rep(64 * 1024 - 1)) end)
    assert.equal("too_large", raised.kind)
    assert.equal(64 * 1024 - 2, #kv.get(prefix .. "k"))
  end)

  it("is set by tasks side by side", function()
    std.task.scope(function(scope)
      for i = 1, 20 do
        scope:spawn(function() kv.set(prefix .. i, i) end)
      end
    end)
    assert.equal(20, #kv.list(prefix))
  end)

  it("goes on when a script has ended the session of its log", function()
    kv.set(prefix .. "k", "kept")
    local ended = 0
    for id in pairs({ [".kv"] = 1, [".kv-000002"] = 1, [".kv-000003"] = 1 }) do
      local ok = pcall(function() knl.resume{ session = id }:close("cleanup") end)
      ended = ended + (ok and 1 or 0)
    end
    assert.equal(1, ended)
    assert.equal("kept", kv.get(prefix .. "k"))
    kv.set(prefix .. "more", 1)
    assert.same({ prefix .. "k", prefix .. "more" }, kv.list(prefix))
  end)
end)
