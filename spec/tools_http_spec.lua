-- require("tools").http: a tool that fetches. What servers answer is tested beside
-- the host; here is what a model and a script meet without one.

local knl, ports, tools = require("knl"), require("ports"), require("tools")

local function ask(args, opts) return tools.http(opts).http.handler(args) end

-- Wants a refusal for a reason.
local function refused(reason, text, answer)
  assert.equal("table", type(answer))
  assert.is_false(answer.ok)
  assert.equal(reason, answer.reason)
  assert.matches(text, answer.message)
end

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

describe("tools.http", function()
  it("is one external tool that reads, unless methods say more", function()
    local t = knl.device{ tools = tools.http() }.tools.http
    assert.same({ "external", true, true, true },
      { t.effects, t.idempotent, t.parallel, t.strict })
    assert.same({ "GET" }, t.input_schema.properties.method.enum)
    assert.is_nil(t.input_schema.properties.body)
    t = tools.http{ methods = { "GET", "POST" } }.http
    assert.is_nil(t.idempotent)
    assert.is_nil(t.parallel)
    assert.equal("string", t.input_schema.properties.body.type)
  end)

  it("names its servers to the model", function()
    assert.matches("The servers are: a.example, %*.b.example%.",
      tools.http{ hosts = { "a.example", "*.b.example" } }.http.description)
  end)

  it("refuses servers that are not listed", function()
    refused("denied", 'host "127.0.0.1:1" is not among example.com',
      ask({ url = "http://127.0.0.1:1/" }, { hosts = { "example.com" } }))
    refused("denied", "is not among example.com",
      ask({ url = "http://example.com@127.0.0.1/" }, { hosts = { "example.com" } }))
    refused("denied", "is not among example.com",
      ask({ url = "http://example.com.evil.example/" }, { hosts = { "example.com" } }))
  end)

  it("refuses private addresses, however they are written, unless they are listed", function()
    for _, host in ipairs{ "127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1",
      "169.254.169.254", "10.0.0.1", "192.168.0.1", "0.0.0.0:1", "[fe80::1]", "[fd00::1]" } do
      refused("denied", "is no public address", ask{ url = "http://" .. host .. "/" })
    end
    refused("transport", "nobody listens there",
      ask({ url = "http://127.0.0.1:1/" }, { hosts = { "127.0.0.1:1" } }))
    refused("transport", "nobody listens there",
      ask({ url = "http://localhost:1/" }, { hosts = { "localhost" } }))
  end)

  it("refuses what is no url of the web", function()
    for _, url in ipairs{ "", "x", "file:///etc/passwd", "ftp://h/", "http:///x", "http://",
      "http://h/a b", "http://h/\r\nx: y", "javascript:1", "HTTPS:/h", "http://h\\@x/",
      "http://h:x/", "http://[::1/", "http://h/%zz" } do
      refused("bad_url", "want http://host/… or https://host/…", ask{ url = url })
    end
  end)

  it("is called by a model through a beat", function()
    local s = knl.open{ store = "mem" }
    local device = knl.device{
      llm = ports.script{ { calls = { { "http", { url = "http://127.0.0.1:1/" } },
        { "http", { url = "http://127.0.0.1:1/", method = "POST" } }, { "http", {} },
        { "http", { url = "http://h/", headers = { a = "b" } } } } } }:open(),
      tools = tools.http(),
    }
    assert.equal("ok", knl.beat(s, device).status)
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.equal("denied", rows[1].data.result.reason)
    for i = 2, 4 do
      assert.is_true(rows[i].data.bad_args)
    end
  end)

  it("names wrong options", function()
    bad("tools.http: unknown option 'host' (did you mean 'hosts'?)",
      function() tools.http{ host = "h" } end)
    bad("tools.http: hosts must be a non-empty list, got an empty table",
      function() tools.http{ hosts = {} } end)
    bad("tools.http: hosts[1]", function() tools.http{ hosts = { "http://h" } } end)
    bad('tools.http: hosts[2] must be name, name:port or *.name, got "api.*.com": '
      .. '"api.*.com" is no name of a host',
      function() tools.http{ hosts = { "a", "api.*.com" } } end)
    bad('got "localhost:": "" is no port', function() tools.http{ hosts = { "localhost:" } } end)
    bad("tools.http: max_bytes must be a whole number from 1 to 16777216, got 0",
      function() tools.http{ max_bytes = 0 } end)
    bad("tools.http: timeout must be seconds above 0, got -1",
      function() tools.http{ timeout = -1 } end)
    bad("tools.http: methods[1] must be one of", function() tools.http{ methods = { "get" } } end)
    bad("tools.http: opts must be a table { hosts?, max_bytes?, methods?, headers?, timeout? }, "
      .. "got string", function() tools.http("h") end)
  end)
end)
