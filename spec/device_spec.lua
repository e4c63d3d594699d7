-- Devices: a frozen bundle of policy, checked whole where it is made.

local knl, ports = require("knl"), require("ports")

local function handler() end

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

describe("knl.device", function()
  it("resolves what was given and the fold", function()
    local llm = ports.script({}):open()
    local d = knl.device{ llm = llm, system = "be brief", parallel = 2 }
    assert.equal(llm, d.llm)
    assert.equal("be brief", d.system)
    assert.equal(2, d.parallel)
    assert.equal(knl.fold, d.fold)
    assert.is_nil(d.tools)
    assert.is_nil(d.cost)
  end)

  it("may be empty, until a beat needs a model", function()
    assert.equal(knl.fold, knl.device().fold)
    assert.equal(knl.fold, knl.device{}.fold)
  end)

  it("is frozen, existing keys included, and so are its tools and filters", function()
    local d = knl.device{ system = "x", tools = { t = { handler = handler } },
      filters = { handler } }
    bad('field "system" cannot be set', function() d.system = "y" end)
    bad('field "new" cannot be set', function() d.new = 1 end)
    bad('field "u" cannot be set', function() d.tools.u = {} end)
    bad('field "handler" cannot be set', function() d.tools.t.handler = print end)
    bad("field 1 cannot be set", function() d.filters[1] = print end)
    assert.equal("knl.device", getmetatable(d))
  end)

  it("does not see what the caller's tables become", function()
    local tools, filters = { t = { handler = handler } }, { handler }
    local d = knl.device{ tools = tools, filters = filters }
    tools.u, tools.t.description, filters[2] = { handler = handler }, "late", handler
    assert.is_nil(d.tools.u)
    assert.is_nil(d.tools.t.description)
    assert.equal(1, #d.filters)
  end)

  it("names an unknown key and the nearest", function()
    bad('knl.device: unknown option "tool" (did you mean "tools"?)',
      function() knl.device{ tool = {} } end)
    bad('unknown option "filter" (did you mean "filters"?)',
      function() knl.device{ filter = handler } end)
    bad("unknown option [1]", function() knl.device{ handler } end)
    bad('knl.device: argument 1 (config): got "x", want a table', function() knl.device("x") end)
  end)

  it("points session keys at knl.open", function()
    for _, key in ipairs{ "owner", "budget", "store", "session", "parent" } do
      bad(('unknown option "%s": it belongs to knl.open'):format(key),
        function() knl.device{ [key] = "x" } end)
    end
  end)

  it("refuses fields of another type", function()
    bad('option "llm": got 5', function() knl.device{ llm = 5 } end)
    bad('option "llm": got a table', function() knl.device{ llm = {} } end)
    bad('option "tool_policy": got "deny", want a function',
      function() knl.device{ tool_policy = "deny" } end)
    bad('option "fold": got true, want a function', function() knl.device{ fold = true } end)
    bad('option "cost": got 3, want a function', function() knl.device{ cost = 3 } end)
    bad('option "settle": got 3, want a function', function() knl.device{ settle = 3 } end)
    bad('option "system": got 5, want text', function() knl.device{ system = 5 } end)
    bad("got a function, want a JSON value", function() knl.device{ system = { print } } end)
    bad('option "parallel": got 1.5, want a whole number',
      function() knl.device{ parallel = 1.5 } end)
    bad('option "parallel": got 0, want a whole number ≥ 1',
      function() knl.device{ parallel = 0 } end)
    bad('filters[2]: got 5, want a function', function() knl.device{ filters = { handler, 5 } } end)
    bad("want a list of functions", function() knl.device{ filters = { first = handler } } end)
  end)

  it("checks every tool, by its name", function()
    bad("tools: got a list, want a map from name to entry",
      function() knl.device{ tools = { { handler = handler } } } end)
    bad("tools.t: got a function, want a table with a handler",
      function() knl.device{ tools = { t = handler } } end)
    bad('tools.t: key "handler": got nil, want a function',
      function() knl.device{ tools = { t = {} } } end)
    bad('tools.t: unknown key "handlr" (did you mean "handler"?)',
      function() knl.device{ tools = { t = { handlr = 1, handler = handler } } } end)
    bad('tools.t: key "timeout": got "1", want seconds',
      function() knl.device{ tools = { t = { handler = handler, timeout = "1" } } } end)
    bad('tools.t: key "timeout": got 0, want more than 0 seconds',
      function() knl.device{ tools = { t = { handler = handler, timeout = 0 } } } end)
    bad('tools.t: key "strict": got 1, want true or false',
      function() knl.device{ tools = { t = { handler = handler, strict = 1 } } } end)
    bad("effects",
      function() knl.device{ tools = { t = { handler = handler, effects = "none" } } } end)
    bad("input_schema", function() knl.device{ tools = { t = { handler = handler, input_schema = { x = print } } } } end)
    bad("tools: got the key true, want the name of a tool",
      function() knl.device{ tools = { [true] = { handler = handler } } } end)
    local odd = { handler = handler, strict = true, input_schema = { type = "objct" } }
    bad("input_schema", function() knl.device{ tools = { t = odd } } end)
  end)

  it("takes a table that can be called for a function", function()
    local callable = setmetatable({},
      { __call = function() return { status = "ok", content = {}, usage = {} } end })
    local d = knl.device{ llm = callable,
      cost = setmetatable({}, { __call = function() return 2 end }) }
    local s = knl.open{ store = "mem", budget = { amount = 5 } }
    assert.equal("ok", knl.beat(s, d).status)
    assert.equal(3, s:remaining())
  end)
end)

describe("device:with", function()
  it("lays fields over, and leaves the device as it was", function()
    local d = knl.device{ system = "a", parallel = 2, tools = { t = { handler = handler } } }
    local e = d:with{ system = "b" }
    assert.same({ "a", "b", 2 }, { d.system, e.system, e.parallel })
    assert.equal(handler, e.tools.t.handler)
    assert.equal("a", e:with{ system = "a" }.system)
  end)

  it("takes a field away by knl.null", function()
    local e = knl.device{ system = "a", fold = function(events) return knl.fold(events) end }:with{ system = knl.null, fold = knl.null }
    assert.is_nil(e.system)
    assert.equal(knl.fold, e.fold)
  end)

  it("checks again", function()
    local d = knl.device{}
    bad('device:with: unknown option "tols" (did you mean "tools"?)',
      function() d:with{ tols = {} } end)
    bad('option "cost": got 1, want a function', function() d:with{ cost = 1 } end)
    bad("device:with: argument 1 (delta): got nil, want a table", function() d:with() end)
    bad("as receiver, want a device", function() d.with({}, {}) end)
  end)

  it("makes a device for one beat of another model", function()
    local s = knl.open{ store = "mem" }
    local d = knl.device{ llm = ports.script{ { text = "weak" }, { text = "weak" } }:open() }
    local e = d:with{ llm = function() return { status = "ok",
      content = { { type = "text", text = "strong" } }, usage = {} } end }
    assert.equal("strong", knl.beat(s, e).out.content[1].text)
    assert.equal("weak", knl.beat(s, d).out.content[1].text)
  end)
end)

describe("a device's filters", function()
  local function seeded()
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "go" } }
    return s
  end

  it("each get the request of the one before, and the last is sent", function()
    local s = seeded()
    local d = knl.device{
      llm = ports.script{ { text = "x" } }:open(),
      filters = {
        function(request) request.system = "one"; return request end,
        function(request)
          assert(request.system == "one")
          return { messages = request.messages, system = "two" }
        end,
      },
    }
    local o = knl.beat(s, d)
    assert.equal("two", s:request(o.out.beat).system)
  end)

  it("that raise or answer no request stop the beat before anything is recorded", function()
    for name, filter in pairs{
      raises = function() error("no filter today") end,
      ["nothing"] = function() end,
      text = function() return "x" end,
    } do
      local s = seeded()
      local o = knl.beat(s,
        knl.device{ llm = ports.script{ { text = "x" } }:open(), filters = { filter } })
      assert.equal("error", o.status, name)
      assert.equal("filter", o.kind, name)
      assert.matches("filters[1]", o.detail.message)
      assert.equal(2, s:len(), name)
    end
  end)
end)

describe("a device's cost", function()
  local function run(cost)
    local s = knl.open{ store = "mem", budget = { amount = 10 } }
    return knl.beat(s, knl.device{ llm = ports.script{ { text = "x" } }:open(), cost = cost }), s
  end

  it("sees the request and is what a beat reserves", function()
    local o, s = run(function(request) return 2 + #request.messages end)
    assert.equal("ok", o.status)
    assert.equal(8, s:remaining())
  end)

  it("is whole and at least one, or the beat is an error and nothing is taken", function()
    for _, v in ipairs{ 0, -1, 1.5, "1", 0 / 0 } do
      local o, s = run(function() return v end)
      assert.equal("conf", o.kind, tostring(v))
      assert.matches("cost", o.detail.message)
      assert.equal(10, s:remaining())
    end
    assert.equal("conf", run(function() end).kind)
    assert.equal("conf", run(function() error("no price") end).kind)
  end)
end)
