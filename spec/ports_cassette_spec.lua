-- ports.cassette: what a port answered, written down and played.

local knl, ports = require("knl"), require("ports")

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local folder, paths = "tapes-" .. knl.new_beat_id(), 0

-- A path that no other case has used.
local function fresh_path()
  paths = paths + 1
  return ("%s/%d.ndjson"):format(folder, paths)
end

before_each(function()
  std.fs.mkdir(folder)
end)

after_each(function()
  std.fs.remove(folder, { recursive = true })
end)

-- The texts and error kinds of n beats of a port on a question.
local function asked(port, question, n)
  local s = knl.open{ store = "mem" }
  s:append{ kind = "msg_user", data = { content = question } }
  local said, device, outcome = {}, knl.device{ llm = port:open() }, nil
  for i = 1, n do
    outcome = knl.beat(s, device)
    said[i] = outcome.status == "ok" and outcome.out.content[1].text or outcome.detail.kind
  end
  return said, outcome
end

describe("ports.cassette", function()
  it("records a port, and then plays it without one", function()
    local path = fresh_path()
    local calls = 0
    local own = ports.script(function()
      calls = calls + 1
      return calls == 2 and { fail = { kind = "overloaded", retry_after = 3 } }
        or { text = "answer " .. calls }
    end)
    local recorded = asked(ports.cassette{ path = path, port = own }, "go", 3)
    assert.same({ "answer 1", "overloaded", "answer 3" }, recorded)
    assert.same(recorded, (asked(ports.cassette{ path = path }, "go", 3)))
    assert.same(recorded, (asked(ports.cassette{ path = path, port = own }, "go", 3)))
    assert.equal(3, calls)
  end)

  it("says what changed when a request was not recorded", function()
    local path = fresh_path()
    asked(ports.cassette{ path = path, port = ports.script{ { text = "a" } } }, "one", 1)
    local said, outcome = asked(ports.cassette{ path = path }, "two", 1)
    assert.same({ "invalid_request" }, said)
    assert.matches('messages[1].content: got "two", want "one"', outcome.detail.message)
    assert.matches(path, outcome.detail.message)
  end)

  it("plays deltas", function()
    local path = fresh_path()
    local own = ports.script{ { text = "hello", thinking = "hm" } }
    local heard = {}
    for _, port in ipairs{ ports.cassette{ path = path, port = own }, false } do
      port = port or ports.cassette{ path = path }
      local s = knl.open{ store = "mem" }
      s:append{ kind = "msg_user", data = { content = "go" } }
      local text = ""
      knl.beat(s, knl.device{ llm = port:open() }, { on_delta = function(delta)
        text = text .. delta.kind .. ":" .. delta.text .. " "
      end })
      heard[#heard + 1] = text
    end
    assert.same({ "thinking:hm text:hello ", "thinking:hm text:hello " }, heard)
  end)

  it("keeps counts and profiles", function()
    local path, request = fresh_path(), { messages = { { role = "user", content = "x" } } }
    local record = ports.cassette{ path = path, port = ports.script{} }
    local count, profile = record:count(request), record:profile{ context_window = 500 }
    local played = ports.cassette{ path = path }
    assert.equal(count, played:count(request))
    assert.same(profile, played:profile{ context_window = 500 })
    bad("no profile is recorded", function() played:profile() end)
    bad("this count is not among them", function() played:count{ messages = {} } end)
    assert.is_true(played:health())
  end)

  it("begins anew with record = true, and never records with record = false", function()
    local path = fresh_path()
    local never = { path = path, port = ports.script{}, record = false }
    bad("not there, and record = false", function() ports.cassette(never) end)
    for _, text in ipairs{ "old", "new" } do
      asked(ports.cassette{ path = path, port = ports.script{ { text = text } }, record = true },
        "go", 1)
    end
    assert.same({ "new" }, (asked(ports.cassette{ path = path, record = false }, "go", 1)))
  end)

  it("is a file of lines that anyone can read", function()
    local path = fresh_path()
    asked(ports.cassette{ path = path, port = ports.script{ { text = "a" } } }, "go", 1)
    local lines = {}
    for line in std.fs.read(path):gmatch("[^\n]+") do
      lines[#lines + 1] = std.json.decode(line)
    end
    assert.equal(1, lines[1].knl_cassette)
    assert.equal("go", lines[2].call.request.messages[1].content)
    assert.equal("a", lines[2].call.answer.content[1].text)
  end)

  it("refuses what is no cassette", function()
    local path = fresh_path()
    std.fs.write(path, "hello\n")
    bad("line 1: got something else", function() ports.cassette{ path = path } end)
    std.fs.write(path, '{"knl_cassette":1}\n{"call":5}\n')
    bad("line 2.call: got 5, want an object", function() ports.cassette{ path = path } end)
  end)

  it("leaves out a line that a killed run has not ended", function()
    local path = fresh_path()
    asked(ports.cassette{ path = path, port = ports.script{ { text = "a" }, { text = "b" } } },
      "go", 2)
    local text = std.fs.read(path)
    std.fs.write(path, text:sub(1, #text - 5))
    assert.same({ "a", "invalid_request" }, (asked(ports.cassette{ path = path }, "go", 2)))
  end)

  it("wants a path below the project root, and a port to record from", function()
    bad('option "path": got nil, want a string', function() ports.cassette{} end)
    local session = knl.open{ store = "mem" }
    bad('option "port": got a userdata, want a port',
      function() ports.cassette{ path = "x", port = session } end)
    bad('(did you mean "path"?)', function() ports.cassette{ pth = "x" } end)
    bad("no port is given to record it from", function() ports.cassette{ path = fresh_path() } end)
    for _, path in ipairs{ "../x", "/etc/x", "", "a/../.." } do
      bad("want a file below the project root", function() ports.cassette{ path = path } end)
    end
    bad("got nil, want a table", function() ports.cassette() end)
  end)
end)
