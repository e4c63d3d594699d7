-- ports.anthropic, ports.openai: what can be said of them without a network.
-- What they write and read is held against a server in port/anthropic and
-- port/openai.

local knl, ports = require("knl"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

-- An address where nobody listens.
local NOWHERE = "http://127.0.0.1:1"

-- The outcome of one beat of a model.
local function beat(llm)
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = "go" } }
  return knl.beat(s, knl.device{ llm = llm })
end

for _, name in ipairs{ "anthropic", "openai" } do
  describe("ports." .. name, function()
    it("is the port that ports.from names", function()
      assert.equal("port " .. name, tostring(ports[name]()))
      assert.equal("port " .. name .. ":m", tostring(ports.from(name .. ":m")))
    end)

    it("refuses a conf with an unknown key", function()
      bad('conf: unknown key "modle" (did you mean "model"?)', function() ports[name]{ modle = "m" } end)
    end)

    it("wants a model when it is opened", function()
      bad("conf.model: got nothing, want the name of a model", function() ports[name]():open() end)
    end)

    it("refuses an address and a header that would be more than one", function()
      local port = ports[name]{ model = "m" }
      bad("conf.base_url", function() port:open{ base_url = "http://x\r\nx-evil: 1" } end)
      bad("conf.base_url", function() port:open{ base_url = "ftp://x" } end)
      bad("conf.headers", function() port:open{ headers = { ["x-a"] = "1\r\nx-evil: 1" } } end)
      bad("conf.headers", function() port:open{ headers = { ["content-length"] = "1" } } end)
    end)

    it("says which variable holds no key", function()
      local o = beat(ports[name]{ model = "m", api_key_env = "KNL_SPEC_NO_KEY" }:open())
      assert.same({ "error", "call", "auth", false },
        { o.status, o.kind, o.detail.kind, o.detail.retryable })
      assert.matches("KNL_SPEC_NO_KEY", o.detail.message)
      local ok, why = ports[name]{ api_key_env = "KNL_SPEC_NO_KEY" }:health()
      assert.is_false(ok)
      assert.matches("KNL_SPEC_NO_KEY", why)
    end)

    it("answers an unreachable server with a transport error that may be repeated", function()
      local o = beat(ports[name]{ model = "m", base_url = NOWHERE }:open())
      assert.same({ "error", "call", "transport", true },
        { o.status, o.kind, o.detail.kind, o.detail.retryable })
    end)

    it("lays the conf of a call over its own", function()
      local port = ports[name]{ model = "m", base_url = NOWHERE, context_window = 9000, max_tokens = 100 }
      local p = port:profile()
      assert.same({ 9000, 100 }, { p.context_window, p.max_output })
      p = port:profile{ max_tokens = 50 }
      assert.same({ 9000, 50 }, { p.context_window, p.max_output })
    end)
  end)
end

describe("ports.anthropic", function()
  it("knows the windows of models without asking", function()
    local p = ports.anthropic{ model = "claude-haiku-4-5-20251001", base_url = NOWHERE }:profile()
    assert.same({ 200000, 64000, true }, { p.context_window, p.max_output, p.prefill })
  end)

  it("refuses a request that the wire has no place for", function()
    local o = beat(ports.anthropic{ model = "claude-opus-4-7", base_url = NOWHERE, seed = 7 }:open())
    assert.same({ "call", "invalid_request" }, { o.kind, o.detail.kind })
    assert.matches("seed: got 7, want none", o.detail.message)
  end)
end)

describe("ports.openai", function()
  -- The tokens of one message with this content.
  local function count(conf, content)
    conf.base_url = NOWHERE
    return ports.openai(conf):count{ messages = { { role = "user", content = content } } }
  end

  local function image(bytes)
    local source = { type = "base64", media_type = "image/png", data = ("A"):rep(bytes) }
    return { { type = "text", text = "see" }, { type = "image", source = source } }
  end

  it("counts an image by a bound and not by its bytes, whoever serves it", function()
    for _, dialect in ipairs{ "openai", "vllm", "llamacpp", "ollama", "openrouter" } do
      local n = count({ model = "gpt-5", dialect = dialect }, image(800000))
      assert.is_true(n > 1600 and n < 1700, dialect .. " counts " .. n)
      assert.equal(n, count({ model = "gpt-5", dialect = dialect }, image(400)))
    end
    assert.equal(50011, count({ model = "m", dialect = "vllm" }, ("word "):rep(40000)))
  end)

  local function document(media_type, data)
    local source = { type = "base64", media_type = media_type, data = data }
    return { { type = "document", source = source } }
  end

  it("takes a file for what its bytes are, whatever it is called", function()
    for _, dialect in ipairs{ "openai", "vllm" } do
      local conf = { model = "gpt-5", dialect = dialect }
      local n = count(conf, document("application/octet-stream", "iVBORw0K" .. ("A"):rep(800000)))
      assert.is_true(n > 1600 and n < 1700, dialect .. " counts " .. n)
    end
  end)

  it("takes JSON for the text that it is", function()
    local n = count({ model = "gpt-5", dialect = "openai" }, document("application/json", "e30="))
    assert.is_true(n < 100, "it counts " .. n)
  end)
end)
