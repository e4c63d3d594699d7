-- Events: what append takes, and how the log is read.

local knl, ports = require("knl"), require("ports")

local function open(opts)
  opts = opts or {}
  opts.store = "mem"
  return knl.open(opts)
end

local function refused(kind, text, fn)
  local raised = assert.errors_at_line(fn, 0, text)
  assert.equal(kind, raised.kind)
end

local function seqs(rows)
  local out = {}
  for i, ev in ipairs(rows) do
    out[i] = ev.seq
  end
  return out
end

-- A session with two beats behind a seed.
local function two_beats()
  local s = open()
  s:append{ kind = "msg_user", data = { content = "go" } }
  local device = knl.device{ llm = ports.script{ { text = "one" }, { text = "two" } }:open() }
  local a, b = knl.beat(s, device).out.beat, knl.beat(s, device).out.beat
  return s, a, b
end

describe("session:append", function()
  it("answers the seq, dense from 1", function()
    local s = open()
    assert.equal(2, s:append{ kind = "note" })
    assert.equal(3, s:append{ kind = "note", data = { n = 1 } })
    assert.same({ 1, 2, 3 }, seqs(s:events()))
  end)

  it("records data and meta as they are, and stamps the time", function()
    local s = open()
    local data = { text = "é", list = { 1, { a = knl.null } }, empty = knl.array(),
      big = knl.int("9007199254740993"), f = 1.5 }
    s:append{ kind = "note", meta = { a = 1, b = "x", c = true }, data = data }
    local ev = s:events()[2]
    assert.same(data, ev.data)
    assert.same({ a = 1, b = "x", c = true }, ev.meta)
    assert.equal("[]", std.json.encode(ev.data.empty))
    assert.is_true(ev.epoch_ms > 1.7e12)
  end)

  it("has empty data and meta when none were given", function()
    local s = open()
    s:append{ kind = "note" }
    local ev = s:events()[2]
    assert.same({}, ev.data)
    assert.same({}, ev.meta)
    assert.is_nil(ev.beat)
  end)

  it("takes the beat in both spellings and shows it in both", function()
    local s = open()
    s:append{ kind = "note", beat = "b1" }
    s:append{ kind = "note", meta = { beat = "b2" } }
    local rows = s:events()
    assert.same({ "b1", "b1" }, { rows[2].beat, rows[2].meta.beat })
    assert.same({ "b2", "b2" }, { rows[3].beat, rows[3].meta.beat })
    refused("validation", "beat",
      function() s:append{ kind = "note", beat = "a", meta = { beat = "b" } } end)
  end)

  it("mends text that is not UTF-8, and counts it", function()
    local s = open()
    s:append{ kind = "note", data = { text = "a\255b\254" } }
    local ev = s:events()[2]
    assert.equal("a\239\191\189b\239\191\189", ev.data.text)
    assert.equal(2, ev.meta.mended)
    s:append{ kind = "note", data = { ["k\255"] = 1 } }
    assert.same({ ["k\239\191\189"] = 1 }, s:events()[3].data)
    refused("validation", "two keys that both read",
      function() s:append{ kind = "note", data = { ["k\255"] = 1, ["k\254"] = 2 } } end)
  end)

  it("refuses an unknown key and says where a kind's own fields belong", function()
    local s = open()
    refused("validation", 'unknown key "dta" (did you mean "data"?)',
      function() s:append{ kind = "note", dta = {} } end)
    refused("validation", "stands under data",
      function() s:append{ kind = "note", content = "x" } end)
    refused("validation", "unknown key 1", function() s:append{ "note" } end)
    refused("validation", '"seq"', function() s:append{ kind = "note", seq = 9 } end)
    refused("validation", '"epoch_ms"', function() s:append{ kind = "note", epoch_ms = 9 } end)
    assert.equal(1, s:len())
  end)

  it("refuses wrong types", function()
    local s = open()
    refused("validation", "kind", function() s:append{} end)
    refused("validation", "kind", function() s:append{ kind = "" } end)
    refused("validation", "event.kind: got 5, want a string", function() s:append{ kind = 5 } end)
    refused("validation", "event.beat: got true, want a string",
      function() s:append{ kind = "note", beat = true } end)
    refused("validation", 'event.data: got "x", want a table',
      function() s:append{ kind = "note", data = "x" } end)
    refused("validation", "event.meta: got 1, want a table",
      function() s:append{ kind = "note", meta = 1 } end)
    refused("validation", "data", function() s:append{ kind = "note", data = { 1, 2 } } end)
    refused("validation", "meta", function() s:append{ kind = "note", meta = { a = {} } } end)
    refused("validation", "meta", function() s:append{ kind = "note", meta = { a = knl.null } } end)
    assert.errors_at_line(function() s:append() end, 0,
      "session:append: argument 1 (event): got nil, want a table")
    assert.errors_at_line(function() s:append("note") end, 0,
      'session:append: argument 1 (event): got "note", want a table')
    assert.equal(1, s:len())
  end)

  it("refuses what JSON cannot say, naming the place", function()
    local s = open()
    local cyclic = {}
    cyclic.self = cyclic
    refused("validation", "event.data.n: got NaN, want a finite number",
      function() s:append{ kind = "note", data = { n = 0 / 0 } } end)
    refused("validation", "event.data.n: got infinity",
      function() s:append{ kind = "note", data = { n = math.huge } } end)
    refused("validation", "event.data.f[1]: got a function",
      function() s:append{ kind = "note", data = { f = { print } } } end)
    refused("validation", "event.data.self: got a table that contains itself",
      function() s:append{ kind = "note", data = cyclic } end)
    refused("validation", "event.data.s: got a userdata",
      function() s:append{ kind = "note", data = { s = s } } end)
    refused("validation", 'event.data: got key "x" beside a list',
      function() s:append{ kind = "note", data = { 1, x = 1 } } end)
    refused("validation", "nothing at 2",
      function() s:append{ kind = "note", data = { l = { 1, nil, 3 } } } end)
    assert.equal(1, s:len())
  end)

  it("refuses tables that nest too deep", function()
    local s = open()
    local deep = {}
    for _ = 1, 200 do
      deep = { d = deep }
    end
    refused("validation", "nested deeper than",
      function() s:append{ kind = "note", data = deep } end)
  end)

  it("refuses the kinds that are the kernel's own, naming the proper call", function()
    local s = open()
    for _, kind in ipairs{ "session_opened", "session_closed", "budget_granted", "budget_reserved", "budget_refused", "budget_spent",
      "budget_settled", "budget_returned", "beat_interrupted", "driver_changed" } do
      refused("validation", kind, function() s:append{ kind = kind } end)
    end
    refused("validation", "close", function() s:append{ kind = "session_closed" } end)
    refused("validation", "spend",
      function() s:append{ kind = "budget_spent", data = { amount = 1 } } end)
    assert.equal(1, s:len())
  end)
end)

describe("session:events", function()
  it("answers a fresh list of the same, read-only events", function()
    local s = open()
    local a, b = s:events(), s:events()
    assert.is_false(a == b)
    assert.equal(a[1], b[1])
    a[1] = nil
    assert.equal(1, #s:events())
    assert.errors_at_line(function() b[1].kind = "x" end, 0,
      'event: field "kind" cannot be set, it is read-only')
    assert.errors_at_line(function() b[1].new = 1 end, 0, 'event: field "new" cannot be set')
    assert.errors_at_line(function() rawset(b[1], "kind", "x") end, 0,
      "rawset: got a event, which is read-only")
  end)

  it("reads from a seq on, and never cuts", function()
    local s = open()
    for i = 1, 1200 do
      s:append{ kind = "note", data = { i = i } }
    end
    local rows, truncated = s:events()
    assert.equal(1201, #rows)
    assert.is_false(truncated)
    assert.same({ 1200, 1201 }, seqs(s:events(1200)))
    assert.same({}, s:events(5000))
    assert.equal(1201, #s:events(-3))
  end)

  it("walks like a table", function()
    local s = open()
    s:append{ kind = "note", beat = "b", data = { x = 1 } }
    local ev = s:events()[2]
    local keys = {}
    for key in pairs(ev) do
      keys[#keys + 1] = key
    end
    table.sort(keys)
    assert.same({ "beat", "data", "epoch_ms", "kind", "meta", "seq" }, keys)
    assert.equal("kind", next({ kind = ev.kind }))
    assert.equal('{"x":1}', std.json.encode(ev.data))
  end)

  it("wants a whole number", function()
    local s = open()
    assert.errors_at_line(function() s:events(1.5) end, 0,
      "session:events: argument 1 (from): got 1.5, want a whole number")
    assert.errors_at_line(function() s:events("1") end, 0, 'got "1", want a whole number')
    assert.errors_at_line(function() s:events(0 / 0) end, 0, "want a whole number")
  end)
end)

describe("session:beats", function()
  it("answers the beats with their events, oldest first", function()
    local s, a, b = two_beats()
    local beats, seed = s:beats()
    assert.same({ a, b }, { beats[1].id, beats[2].id })
    assert.is_nil(seed)
    assert.equal("llm_request", beats[1].events[1].kind)
    assert.equal("llm_response", beats[1].events[2].kind)
    assert.same({ b }, { s:beats{ last = 1 }[1].id })
    assert.equal(2, #s:beats{ last = 99 })
  end)

  it("answers what stands before the first beat as second value", function()
    local s = two_beats()
    local beats, seed = s:beats{ last = 1, from_seed = true }
    assert.equal(1, #beats)
    assert.same({ 1, 2 }, seqs(seed))
  end)

  it("is empty on a log without beats", function()
    local beats, seed = open():beats{ from_seed = true }
    assert.same({}, beats)
    assert.equal(1, #seed)
  end)

  it("wants at least one, whole, and no other keys", function()
    local s = open()
    assert.errors_at_line(function() s:beats{ last = 0 } end, 0,
      'option "last": got 0, want a whole number ≥ 1')
    assert.errors_at_line(function() s:beats{ last = 1.5 } end, 0,
      'option "last": got 1.5, want a whole number')
    assert.errors_at_line(function() s:beats{ lst = 1 } end, 0,
      'unknown option "lst" (did you mean "last"?)')
    assert.errors_at_line(function() s:beats(3) end, 0,
      "session:beats: argument 1 (opts): got 3, want a table")
  end)
end)

describe("session:scan", function()
  it("chooses by kind, beat and seq", function()
    local s, a = two_beats()
    assert.equal(2, #s:scan{ kinds = { "llm_response" } })
    assert.equal(2, #s:scan{ beats = { a } })
    assert.equal(1, #s:scan{ beats = { a }, kinds = { "llm_response" } })
    assert.same({ 2, 3 }, seqs(s:scan{ from = 2, to = 3 }))
    assert.same({}, s:scan{ kinds = { "none" } })
  end)

  it("takes an empty list and a bound below the first event at their word", function()
    local s = two_beats()
    for _, none in ipairs{ { kinds = {} }, { beats = {} }, { sessions = {} }, { to = 0 }, { to = -1 } } do
      assert.same({}, s:scan(none))
    end
  end)

  it("answers the session of each event, and reads several", function()
    local a, b = open(), open()
    a:append{ kind = "note" }
    b:append{ kind = "note" }
    local rows = a:scan{ sessions = { b, a:id() }, kinds = { "note" } }
    assert.same({ b:id(), a:id() }, { rows[1].stream, rows[2].stream })
    assert.equal(a:id(), a:scan()[1].stream)
    assert.same({}, a:scan{ sessions = {} })
    assert.same({}, a:scan{ sessions = { "no-such" } })
  end)

  it("asks where about each event, and raises what it raises", function()
    local s = two_beats()
    local rows = s:scan{ where = function(ev) return ev.kind == "msg_user" and ev.data.content == "go" end }
    assert.same({ 2 }, seqs(rows))
    assert.errors_at_line(function()
      s:scan{ where = function() error("no idea") end }
    end, 1, "no idea")
  end)

  it("says when a limit cut it", function()
    local s = two_beats()
    local rows, truncated = s:scan{ limit = 2 }
    assert.equal(2, #rows)
    assert.is_true(truncated)
    rows, truncated = s:scan{ limit = 6 }
    assert.equal(6, #rows)
    assert.is_false(truncated)
  end)

  it("refuses wrong options", function()
    local s = open()
    assert.errors_at_line(function() s:scan{ kind = {} } end, 0,
      'unknown option "kind" (did you mean "kinds"?)')
    assert.errors_at_line(function() s:scan{ kinds = "x" } end, 0,
      'option "kinds": got "x", want a table')
    assert.errors_at_line(function() s:scan{ kinds = { 5 } } end, 0,
      "kinds[1]: got 5, want a string")
    assert.errors_at_line(function() s:scan{ sessions = { {} } } end, 0,
      "sessions[1]: got a table, want a session or its id")
    assert.errors_at_line(function() s:scan{ from = 1.5 } end, 0,
      'option "from": got 1.5, want a whole number')
    assert.errors_at_line(function() s:scan{ where = 1 } end, 0,
      'option "where": got 1, want a function')
    assert.errors_at_line(function() s:scan{ limit = 0 } end, 0,
      'option "limit": got 0, want a whole number ≥ 1')
  end)
end)

describe("session:view", function()
  it("answers the tail, twenty events unless told", function()
    local s = open()
    for _ = 1, 30 do
      s:append{ kind = "note" }
    end
    assert.equal(20, #s:view("tail"))
    assert.same({ 30, 31 }, seqs(s:view("tail", { n = 2 })))
    assert.same({}, s:view("tail", { n = 0 }))
    assert.equal(31, #s:view("tail", { n = 500 }))
  end)

  it("knows no other view", function()
    local s = open()
    refused("validation", 'got "usage", want "tail"; other readings are in knl.views',
      function() s:view("usage") end)
    refused("validation", "n: got -1", function() s:view("tail", { n = -1 }) end)
    assert.errors_at_line(function() s:view() end, 0,
      "session:view: argument 1 (name): got nil, want a string")
    assert.errors_at_line(function() s:view("tail", { n = 1.5 }) end, 0,
      'option "n": got 1.5, want a whole number')
    assert.errors_at_line(function() s:view("tail", { m = 1 }) end, 0, 'unknown option "m"')
  end)
end)

describe("session:request", function()
  it("rebuilds the whole request of a beat", function()
    local s, a, b = two_beats()
    local first, second = s:request(a), s:request(b)
    assert.same({ messages = { { role = "user", content = "go" } } }, first)
    assert.equal(2, #second.messages)
    assert.same({ { type = "text", text = "one" } }, second.messages[2].content)
  end)

  it("refuses a beat that is not there", function()
    local s = two_beats()
    refused("validation", "no-such", function() s:request("no-such") end)
    assert.errors_at_line(function() s:request() end, 0,
      "session:request: argument 1 (beat): got nil, want a string")
  end)
end)
