-- mcp over stdio, against a server that a user could write by hand in shell: it
-- knows initialize and what a case gives it, and answers nothing else. Real
-- servers, HTTP and what is left of processes are tested where they can be seen,
-- in Go.

local knl = require("knl")
local ports = require("ports")

-- A server: answers is from a method to the JSON of its result. $args in it are
-- the arguments of the call as they came.
local function server(answers, more)
  local cases = {}
  local greeting = ""
  for method, result in pairs(answers) do
    local case = ([[*'"method":"%s"'*) reply '%s' ;;]]):format(method, result)
    if method == "initialize" then greeting = case else cases[#cases + 1] = case end
  end
  local script = [[
    reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"%s"}}\n' "$id" "$1"; }
    while read -r line; do
      id=${line##*\"id\":}; id=${id%%[,\}]*}
      case "$line" in
        GREETING
        *'"method":"initialize"'*) reply '{"protocolVersion":"2025-11-25","serverInfo":{"name":"sh","version":"1"},
          "capabilities":{"tools":{},"resources":{},"prompts":{}}}' | tr -d '\n'; echo ;;
        *'"name":"fails"'*) reply '{"isError":true,"content":[{"type":"text","text":"no such row"}]}' ;;
        *'"name":"refuses"'*) refuse 'out of order' ;;
        *'"name":"dies"'*) echo 'out of memory' >&2; exit 9 ;;
        *'"name":"hangs"'*) ;;
        *'"name":"notes"'*) printf '{"jsonrpc":"2.0","method":"notifications/x"}'
          reply '{"content":[{"type":"text","text":"noted"}]}' ;;
        *'"name":"broken"'*) reply '{"n":NaN}' ;;
        *'"name":"coded"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":"E1"}}\n' "$id" ;;
        *'"name":"prints"'*) echo early; reply '{"content":[{"type":"text","text":"printed"}]}' ;;
        CASES
      esac
    done]]
  script = script:gsub("GREETING", (greeting:gsub("%%", "%%%%")))
  script = script:gsub("CASES", (table.concat(cases, "\n"):gsub("%%", "%%%%")))
  local opts = { command = "/bin/sh", args = { "-c", script } }
  for k, v in pairs(more or {}) do
    opts[k] = v
  end
  return require("mcp").stdio(opts)
end

local LIST = [[{"tools":[
  {"name":"db.look","description":"looks","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},
    "annotations":{"readOnlyHint":true}},
  {"name":"fails","inputSchema":{"type":"object"}},
  {"name":"refuses","inputSchema":{"type":"object"}},
  {"name":"dies","inputSchema":{"type":"object"}},
  {"name":"hangs","inputSchema":{"type":"object"}},
  {"name":"prints","inputSchema":{"type":"object"}},
  {"name":"odd","inputSchema":{"type":"array"}}]}]]
LIST = LIST:gsub("\n%s*", "")

local SEEN = '{"content":[{"type":"text","text":"two rows"}]}'

local function rows(more)
  return server({ ["tools/list"] = LIST, ["tools/call"] = SEEN }, more)
end

-- One beat in which the model calls the tools of these names.
local function results(tools, names)
  local calls = {}
  for i, name in ipairs(names) do
    calls[i] = { name, {} }
  end
  local s = knl.open{}
  local d = knl.device{ llm = ports.script{ { calls = calls } }:open(), tools = tools }
  assert.equal("ok", knl.beat(s, d).status)
  local out = {}
  for _, e in ipairs((s:scan{ kinds = { "tool_result" } })) do
    out[#out + 1] = e.data
  end
  return out
end

describe("mcp.stdio", function()
  it("refuses options by name", function()
    local stdio = require("mcp").stdio
    assert.has_error(function() stdio{ command = "x", arg = {} } end, 'unknown option "arg" %(did you mean "args"%?%)')
    assert.has_error(function() stdio{ command = " " } end, 'option "command": got " ", want a program')
    assert.has_error(function() stdio{ command = "x", args = { 1 } } end, "args%[1%]: got 1, want a string")
    assert.has_error(function() stdio{ command = "x", start_timeout = 0 } end, "want seconds above 0")
    assert.has_error(function() stdio{ command = "x", env = { a = 1 } } end, "want a string, or false to take it away")
  end)

  it("raises not_found for a command that is not there", function()
    local ok, err = pcall(require("mcp").stdio, { command = "no_such_server_here" })
    assert.is_false(ok)
    assert.equal("not_found", knl.error(err).kind)
    assert.matches('"no_such_server_here": command not found in PATH', knl.error(err).message)
  end)

  it("says how a server ended that did not come up", function()
    local ok, err = pcall(require("mcp").stdio, { command = "/bin/sh", args = { "-c", "echo no key >&2; exit 4" } })
    assert.is_false(ok)
    assert.equal("closed", knl.error(err).kind)
    assert.matches('has ended with exit code 4; its stderr ends with: "no key"', knl.error(err).message)
  end)

  it("gives a server that is silent no longer than start_timeout", function()
    local began = std.time.monotonic()
    local ok, err = pcall(require("mcp").stdio, { command = "sleep", args = { "60" }, start_timeout = 0.2 })
    assert.is_false(ok)
    assert.same({ "timeout", true }, { knl.error(err).kind, knl.error(err).retryable })
    assert.is_true(std.time.monotonic() - began < 10)
  end)
end)

describe("a server that does not keep to the protocol", function()
  local function named(name)
    return server{ ["tools/list"] = ('{"tools":[{"name":"%s","inputSchema":{"type":"object"}}]}'):format(name) }
      :tools()[name].handler
  end

  it("may send two messages on one line", function()
    local notes = named("notes")
    assert.equal("noted", (notes{}))
    assert.equal("noted", (notes{}))
  end)

  it("fails the call at once whose answer cannot be read, and lives on", function()
    for name, why in pairs{ broken = "invalid character 'N'", coded = "cannot unmarshal" } do
      local call, began = named(name), std.time.monotonic()
      for _ = 1, 2 do
        local ok, err = pcall(call, {})
        assert.is_false(ok)
        assert.same({ "server", false }, { knl.error(err).kind, knl.error(err).retryable or false })
        assert.matches("tools/call " .. name .. ": the answer cannot be used: .*" .. why, knl.error(err).message)
      end
      assert.is_true(std.time.monotonic() - began < 60)
    end
  end)
end)

describe("mcp.http", function()
  it("refuses what is no endpoint, and headers that are none", function()
    local http = require("mcp").http
    assert.has_error(function() http{ url = "localhost:80" } end, "want http:// or https:// with a host")
    assert.has_error(function() http{ url = "http://a:b@c/" } end, "holds a user or password, want it in headers")
    assert.has_error(function() http{ url = "http://a:b c@d/" } end, "got a space or control character in it, want http://")
    assert.has_error(function() http{ url = "http://h/", headers = { ["a b"] = "x" } } end, "want the name of a header")
    assert.has_error(function() http{ url = "http://h/", headers = { a = "x\r\nb: y" } } end, "want a string on one line")
    assert.has_error(function() http{ url = "http://h/", headers = { Host = "x" } } end, "is set by the protocol")
  end)

  it("raises transport when nobody is there", function()
    local ok, err = pcall(require("mcp").http, { url = "http://127.0.0.1:1/" })
    assert.is_false(ok)
    assert.equal("transport", knl.error(err).kind)
  end)

  it("repeats no query of its url, which may be a key", function()
    local _, err = pcall(require("mcp").http, { url = "http://127.0.0.1:1/mcp?token=canary" })
    assert.matches("initialize: dial tcp 127%.0%.0%.1:1: ", tostring(err))
    assert.is_nil(tostring(err):find("canary", 1, true))
  end)
end)

describe("client:tools", function()
  it("answers entries of a device under names that providers accept", function()
    local tools, refused, names = rows():tools()
    assert.same({ db_look = "db.look" }, names)
    assert.same({ "looks", "read", true, 120 },
      { tools.db_look.description, tools.db_look.effects, tools.db_look.idempotent, tools.db_look.timeout })
    assert.equal("external", tools.fails.effects)
    assert.equal(1, #refused)
    assert.equal("odd", refused[1].name)
    assert.matches('got type "array", want "object"', refused[1].reason)
    assert.is_nil(tools.odd)
  end)

  it("takes the tools that a list or a function names", function()
    local client = rows()
    local tools, refused = client:tools{ "db.look", "db.lock" }
    assert.equal("db_look", next(tools))
    assert.equal(1, #refused)
    assert.same({ "db.lock", 'the server has no such tool: did you mean "db.look"?' }, { refused[1].name, refused[1].reason })
    tools = client:tools(function(tool) return tool.name == "fails" end)
    assert.equal("fails", next(tools))
    assert.is_nil(next(tools, "fails"))
    assert.has_error(function() client:tools{ 3 } end, "filter%[1%]: got 3, want the name of a tool")
    assert.has_error(function() client:tools(3) end, "want a list of names, or a function")
  end)

  it("records what a tool answers, and a failure as a failed result", function()
    local got = results(rows():tools(), { "db_look", "fails", "refuses" })
    assert.same({ true, "two rows" }, { got[1].ok, got[1].result })
    assert.same({ false, 'tool "fails" raised: no such row' }, { got[2].ok, got[2].result })
    assert.is_false(got[3].ok)
    assert.matches("tools/call refuses: out of order %(code %-32000%)", got[3].result)
  end)

  it("keeps every digit of a structured answer and of a schema", function()
    local client = server{
      ["tools/list"] = '{"tools":[{"name":"t","inputSchema":{"type":"object","properties":'
        .. '{"n":{"type":"integer","maximum":9223372036854775807}}}}]}',
      ["tools/call"] = '{"content":[],"structuredContent":{"id":9007199254740993,"list":[12345678901234567890]}}',
    }
    local t = client:tools().t
    assert.equal("9223372036854775807", tostring(t.input_schema.properties.n.maximum))
    local value, structured = t.handler{}
    assert.equal('{"id":9007199254740993,"list":[12345678901234567890]}', std.json.encode(value))
    assert.equal(std.json.encode(value), std.json.encode(structured))
    assert.equal(knl.int("9007199254740993"), value.id)
  end)

  it("takes a schema without properties as one without any", function()
    local tools, refused = server{ ["tools/list"] = '{"tools":['
      .. '{"name":"php","inputSchema":{"type":"object","properties":[]}},'
      .. '{"name":"none","inputSchema":{"type":"object","properties":null}},'
      .. '{"name":"null","inputSchema":null}]}' }:tools()
    assert.same({}, refused)
    for _, name in ipairs{ "php", "none", "null" } do
      assert.equal('{"properties":{},"type":"object"}', std.json.encode(tools[name].input_schema))
    end
  end)

  it("takes a tool whose optional fields are odd, and refuses alone one without a name", function()
    local tools, refused = server{ ["tools/list"] = '{"_meta":[],"tools":['
      .. '{"name":"icons","inputSchema":{"type":"object"},"icons":[{"src":"a","sizes":"any"}]},'
      .. '{"name":"lists","inputSchema":{"type":"object"},"annotations":[],"_meta":[]},'
      .. '{"name":"kinds","inputSchema":{"type":"object"},"title":5,"description":["a"],"annotations":{"readOnlyHint":"yes"}},'
      .. '{"name":"reads","inputSchema":{"type":"object"},"outputSchema":null,"annotations":{"readOnlyHint":true,"title":7}},'
      .. '{"name":5,"inputSchema":{"type":"object"}},"text",null,'
      .. '{"name":"schema","inputSchema":"text"},'
      .. '{"name":"task","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}' }:tools()
    local names = {}
    for name in pairs(tools) do names[#names + 1] = name end
    table.sort(names)
    assert.same({ "icons", "kinds", "lists", "reads" }, names)
    assert.equal("read", tools.reads.effects)
    assert.equal("external", tools.kinds.effects)
    assert.equal("", tools.kinds.description or "")
    assert.same({ "", "", "schema", "task" }, { refused[1].name, refused[2].name, refused[3].name, refused[4].name })
    assert.equal("the server runs it as a task only, which is not asked for", refused[4].reason)
    assert.equal("it has no name", refused[1].reason)
  end)

  it("takes a server whose introduction is odd", function()
    for _, odd in ipairs{
      '"capabilities":{"tools":[]}', '"capabilities":{"tools":true,"experimental":[],"logging":[]}',
      '"capabilities":{"tools":{"listChanged":"yes"}},"_meta":[]',
    } do
      local client = server{
        initialize = '{"protocolVersion":"2025-06-18","serverInfo":{"name":"x","version":1,"icons":[{"src":"a","sizes":"any"}]},' .. odd .. "}",
        ["tools/list"] = '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}',
      }
      assert.is_table(client:tools().t)
    end
  end)

  it("passes over a resource and a prompt that name nothing", function()
    local client = server{
      initialize = '{"protocolVersion":"2025-06-18","serverInfo":{"name":"x","version":"1"},"capabilities":{"resources":{},"prompts":[]}}',
      ["resources/list"] = '{"resources":[{"uri":5},{"uri":"a:b","name":"n","size":"big"}]}',
      ["resources/templates/list"] = '{"resourceTemplates":[]}',
      ["prompts/list"] = '{"prompts":[{"name":"p","arguments":[{"name":"a","required":"yes"},7]},{}]}',
    }
    local resources, prompts = client:resources(), client:prompts()
    assert.equal("a:b", resources[1].uri)
    assert.is_nil(resources[2])
    assert.same({ "p", "a" }, { prompts[1].name, prompts[1].arguments[1].name })
    assert.is_nil(prompts[2])
  end)

  it("keeps of an odd answer what can be read: what the tool did has happened", function()
    local png = { type = "image", source = { type = "base64", media_type = "image/png", data = "iVBORw0KGgo=" } }
    local function words(text) return { type = "text", text = text } end
    for answer, want in pairs{
      ['{"content":[{"type":"text","text":"OK","annotations":[],"_meta":[]}],"_meta":[],"isError":0}'] = "OK",
      ['{"content":[{"type":"text","text":"OK","annotations":{"audience":"user","priority":"high"}}],"isError":"false"}'] = "OK",
      ['{"content":{"type":"text","text":"OK"}}'] = "OK",
      ['{"content":["OK",null]}'] = "OK",
      ['{"content":"OK"}'] = "OK",
      ['{"content":[{"text":"OK"}]}'] = "OK",
      ['{"content":[{"type":"text","text":9007199254740993}]}'] = "9007199254740993",
      ['{"toolResult":"OK"}'] = "OK",
      ['"OK"'] = "OK",
      ["null"] = "",
      ["{}"] = "",
      ['{"rows":2}'] = '[a block that cannot be read: {"rows":2}]',
      ['{"content":[{"type":"video","n":1},{"type":"text","text":"OK"},5]}'] =
        { words('[a block that cannot be read: {"type":"video","n":1}]'), words("OK"), words("[a block that cannot be read: 5]") },
      ['{"content":[{"type":"image","mimeType":"image/png","data":"!"},{"type":"text","text":"OK"}]}'] =
        { words("[image, image/png: not shown, its data is no base64: illegal base64 data at input byte 0]"), words("OK") },
      ['{"content":[{"type":"image","data":"data:image/png;base64,iVBORw0KGgo="},{"type":"image","data":"iVBORw0KGgo"},'
        .. '{"type":"image","mimeType":"image/png","data":"iVBOR\\nw0KGgo=\\n"}]}'] = { png, png, png },
      ['{"content":[{"type":"image","mimeType":"image/png","data":"-_-_"},{"type":"text","text":"OK"}]}'] =
        { { type = "image", source = { type = "base64", media_type = "image/png", data = "+/+/" } }, words("OK") },
      ['{"content":[{"type":"resource_link","uri":"a:b","name":"n","size":1.5,"icons":[{"src":"x","sizes":"any"}]}]}'] = "[resource a:b: n]",
      ['{"content":[{"type":"resource","resource":{"uri":"a:b","text":"in","_meta":[]}}]}'] = "[resource a:b]\nin",
    } do
      local got = server{ ["tools/list"] = LIST, ["tools/call"] = answer }:tools().db_look.handler{}
      assert.equal(std.json.encode(want), std.json.encode(got), answer)
    end
  end)

  it("takes isError for what it means", function()
    for odd, fails in pairs{ ["true"] = true, ['"true"'] = true, ["1"] = true, ["null"] = false, ["[]"] = false, ['"no"'] = false } do
      local tools = server{ ["tools/list"] = LIST, ["tools/call"] = '{"isError":' .. odd .. ',"content":[{"type":"text","text":"why","annotations":[]}]}' }:tools()
      local ok, said = pcall(tools.db_look.handler, {})
      assert.same({ not fails, "why" }, { ok, tostring(said) })
    end
  end)

  it("quotes of what a server printed only what came with the call", function()
    local tools = rows({ call_timeout = 0.3 }):tools()
    assert.equal("printed", tools.prints.handler{})
    local ok, err = pcall(tools.hangs.handler, {})
    assert.is_false(ok)
    assert.equal("timeout", knl.error(err).kind)
    assert.matches("no answer to tools/call hangs within 300ms$", knl.error(err).message)
  end)

  it("says that the protocol is another, not that the server ended", function()
    local ok, err = pcall(require("mcp").stdio, { command = "/bin/sh", args = { "-c",
      [[read -r _; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2099-01-01","capabilities":{},]]
        .. [["serverInfo":{"name":"sh","version":"1"}}}'; read -r _]] } })
    assert.is_false(ok)
    assert.equal("server", knl.error(err).kind)
    assert.matches('initialize: the answer cannot be used: unsupported protocol version: "2099%-01%-01"', knl.error(err).message)
  end)

  it("ends a call by its timeout, and goes on", function()
    local tools = rows({ call_timeout = 0.3 }):tools()
    local got = results(tools, { "hangs", "db_look" })
    assert.same({ false, true }, { got[1].ok, got[1].timed_out })
    assert.same({ true, "two rows" }, { got[2].ok, got[2].result })
  end)

  it("fails at once when the server dies, also the calls behind it", function()
    local got = results(rows():tools(), { "dies", "db_look" })
    assert.matches('tools/call dies: it has ended with exit code 9; its stderr ends with: "out of memory"', got[1].result)
    assert.matches("tools/call db%.look: it has ended with exit code 9", got[2].result)
  end)

  it("wants named arguments", function()
    local tools = rows():tools()
    assert.equal("two rows", tools.fails and tools.db_look.handler{})
    assert.has_error(function() tools.db_look.handler{ 1, 2 } end, "want a table of named arguments")
    assert.has_error(function() tools.db_look.handler("q") end, "want a table")
  end)
end)

describe("client:resources", function()
  it("lists resources, and no patterns where the server has none", function()
    local client = server{
      ["resources/list"] = '{"resources":[{"uri":"mem://a","name":"a"}]}',
      ["resources/templates/list"] = '{"resourceTemplates":[]}',
    }
    local list, templates = client:resources()
    assert.same({ { uri = "mem://a", name = "a" } }, list)
    assert.same({}, templates)
  end)
end)

describe("client:read", function()
  it("answers text as text and bytes as bytes", function()
    local client = server{ ["resources/read"] = '{"contents":[{"uri":"a","text":"x"},{"uri":"b","blob":"AP8="}]}' }
    assert.same({ { uri = "a", text = "x" }, { uri = "b", bytes = "\0\255" } }, client:read("a"))
  end)
end)

describe("client:read of an odd answer", function()
  it("keeps the parts that can be read", function()
    local uri = "mem:a"
    for answer, want in pairs{
      ['{"contents":[{"uri":"a","text":"R","_meta":[],"annotations":[],"mimeType":5}],"_meta":[]}'] = { { uri = "a", text = "R" } },
      ['{"contents":{"uri":"a","text":"R"}}'] = { { uri = "a", text = "R" } },
      ['{"contents":["R",null,7]}'] = { { uri = uri, text = "R" }, { uri = uri, text = "[a part that cannot be read: 7]" } },
      ['{"contents":[{"uri":"b","blob":"AP-_"},{"uri":"c","blob":"!"}]}'] =
        { { uri = "b", bytes = "\0\255\191" }, { uri = "c", text = '[a part that cannot be read: {"uri":"c","blob":"!"}]' } },
      ['"R"'] = { { uri = uri, text = "R" } },
      ["{}"] = {},
    } do
      local got = server{ ["resources/read"] = answer }:read(uri)
      assert.equal(#want, #got, answer)
      for i, part in ipairs(want) do
        assert.same({ part.uri, part.text, part.bytes }, { got[i].uri, got[i].text, got[i].bytes })
      end
    end
  end)
end)

describe("client:prompts", function()
  it("lists prompts with their arguments", function()
    local client = server{ ["prompts/list"] = '{"prompts":[{"name":"p","arguments":[{"name":"who","required":true}]}]}' }
    assert.same({ { name = "p", arguments = { { name = "who", required = true } } } }, client:prompts())
  end)
end)

describe("client:prompt", function()
  it("answers messages that a session takes", function()
    local client = server{
      ["prompts/get"] = '{"messages":[{"role":"user","content":{"type":"image","mimeType":"image/png","data":"cG5n"}}]}',
    }
    local messages = client:prompt("p", { who = "you" }).messages
    assert.same({ { role = "user", content = {
      { type = "image", source = { type = "base64", media_type = "image/png", data = "cG5n" } },
    } } }, messages)
    local s = knl.open{}
    s:append{ kind = "msg_user", data = { content = messages[1].content } }
    assert.has_error(function() client:prompt("p", { who = 3 }) end, "want text by name")
  end)

  it("keeps of an odd answer what can be read", function()
    for _, answer in ipairs{
      '{"description":["x"],"_meta":[],"messages":[{"role":"user","content":{"type":"text","text":"P","annotations":[]}}]}',
      '{"messages":[{"role":"user","content":"P"}]}',
      '{"messages":[{"content":[{"type":"text","text":"P"}]},null]}',
      '{"messages":{"role":"user","content":"P"}}',
      '{"messages":["P"]}',
    } do
      local got = server{ ["prompts/get"] = answer }:prompt("p")
      assert.equal('{"messages":[{"content":[{"text":"P","type":"text"}],"role":"user"}]}', std.json.encode(got), answer)
    end
  end)
end)

describe("client:close", function()
  it("ends the server, once, and what is asked after it", function()
    local client = rows()
    local tools = client:tools()
    client:close()
    client:close()
    local ok, err = pcall(tools.db_look.handler, {})
    assert.is_false(ok)
    assert.equal("closed", knl.error(err).kind)
    assert.matches("the client is closed", knl.error(err).message)
  end)
end)
