-- knl.tail: the end of a log.

local knl, ports = require("knl"), require("ports")

-- "u1 a1 a2 u2 b1" is a log: a letter and a number an event, u without a beat.
local function log_of(text)
  local events = {}
  for word in text:gmatch("%S+") do
    local letter = word:sub(1, 1)
    events[#events + 1] = { kind = word, beat = letter ~= "u" and letter or nil }
  end
  return events
end

local function kinds(events)
  local out = {}
  for i, e in ipairs(events) do out[i] = e.kind end
  return table.concat(out, " ")
end

local function session_of(text)
  local s = knl.open{ store = "mem" }
  for _, e in ipairs(log_of(text)) do s:append(e) end
  return s
end

-- What is true of a list and of a session that holds it behind its opening.
local function both(text, opts, check)
  check(knl.tail(log_of(text), opts))
  local t = knl.tail(session_of(text), opts)
  local list = {}
  for _, e in ipairs(t.events) do
    if e.kind ~= "session_opened" then list[#list + 1] = e end
  end
  check({ events = list, beats = t.beats, since = t.since })
end

describe("knl.tail", function()
  it("takes what knl.fold takes", function()
    local s = session_of("u1 a1 a2 b1 c1")
    local records, seed = s:beats{ last = 3, from_seed = true }
    for _, log in ipairs{ { seed, records }, { seed, { records } }, (s:events()) } do
      local t, before = knl.tail(log, { last = 2, from_seed = true })
      assert.equal("b1 c1", kinds(t.events))
      assert.same({ "b", "c" }, t.beats)
      assert.equal("session_opened u1", kinds(before))
    end
    assert.equal("b1 c1", kinds(knl.tail(records, { last = 2 }).events))
    assert.same({}, knl.tail({ 5, "x", {} }, { last = 2 }).events)
  end)

  local log = "u1 u2 a1 a2 u3 b1 u4 c1 c2 u5"

  it("begins at the first event of the n-th beat from the end", function()
    for last, want in pairs{ "c1 c2 u5", "b1 u4 c1 c2 u5", "a1 a2 u3 b1 u4 c1 c2 u5" } do
      both(log, { last = last }, function(t) assert.equal(want, kinds(t.events), last) end)
    end
  end)

  it("names the beats it holds, oldest first", function()
    both(log, { last = 2 }, function(t) assert.same({ "b", "c" }, t.beats) end)
    both(log, {}, function(t) assert.same({ "a", "b", "c" }, t.beats) end)
    both("u1", {}, function(t) assert.same({}, t.beats) end)
  end)

  it("is the whole log when it has fewer beats, and without last", function()
    both(log, { last = 4 }, function(t) assert.equal(log, kinds(t.events)) end)
    both(log, {}, function(t) assert.equal(log, kinds(t.events)) end)
    both("u1 u2", { last = 1 }, function(t) assert.equal("u1 u2", kinds(t.events)) end)
    assert.equal(log, kinds(knl.tail(log_of(log)).events))
  end)

  it("leaves out what older beats recorded beside the first", function()
    both("a1 b1 a2 u1 b2 c1 a3 b3", { last = 2 }, function(t)
      assert.equal("b1 u1 b2 c1 b3", kinds(t.events))
      assert.same({ "b", "c" }, t.beats)
    end)
  end)

  it("begins behind the newest event of a kind, when that is later", function()
    both("u1 a1 u2 b1 u2 c1 u3", { since = "u2" }, function(t)
      assert.equal("c1 u3", kinds(t.events))
      assert.same({ "c" }, t.beats)
      assert.equal("u2", t.since.kind)
    end)
    both("u1 a1 u2 b1 c1 u3", { since = "u2", last = 2 }, function(t)
      assert.equal("b1 c1 u3", kinds(t.events))
    end)
    both("u1 a1 u2 b1 c1 u3", { since = "u2", last = 1 }, function(t)
      assert.equal("c1 u3", kinds(t.events))
      assert.equal("u2", t.since.kind)
    end)
    both("u1 a1 u9", { since = "u9", last = 1 }, function(t)
      assert.equal("", kinds(t.events))
      assert.same({}, t.beats)
    end)
  end)

  it("begins behind a seq, which is the place where a list has none", function()
    local seq_of = function(list, kind)
      for i, e in ipairs(list) do
        if e.kind == kind then return e.seq or i end
      end
    end
    for kind, want in pairs{ u2 = "b1 c1 u3", c1 = "u3", u3 = "" } do
      local events, s = log_of("u1 a1 u2 b1 c1 u3"), session_of("u1 a1 u2 b1 c1 u3")
      for _, log in ipairs{ events, s, (s:events()) } do
        local seq = seq_of(log == s and s:events() or log, kind)
        assert.equal(want, kinds(knl.tail(log, { after = seq }).events))
        assert.equal(want == "" and "" or "u3",
          kinds(knl.tail(log, { after = seq, last = 1 }).events):match("u3$") or "")
      end
    end
    local events = log_of(log)
    assert.equal(log, kinds(knl.tail(events, { after = 0 }).events))
    assert.equal("", kinds(knl.tail(events, { after = 99 }).events))
    assert.equal("", kinds(knl.tail(session_of(log), { after = 99 }).events))
    assert.same({ "c" }, knl.tail(events, { after = 7 }).beats)
    assert.equal("c1 c2 u5", kinds(knl.tail(events, { after = 3, last = 1 }).events))
  end)

  it("names the seq of since, and looks for it before a seq", function()
    local many = ("u1 u2 "):rep(400) .. "u3"
    for _, log in ipairs{ log_of(many), session_of(many) } do
      local t = knl.tail(log, { since = "u2", last = 1 })
      local newest = t.since_seq
      assert.equal("u3", kinds(t.events))
      t = knl.tail(log, { since = "u2", before = newest, last = 1 })
      assert.equal(newest - 2, t.since_seq)
      assert.equal("u1 u2 u3", kinds(t.events))
      assert.equal("u2", t.since.kind)
      t = knl.tail(log, { since = "u3", before = newest })
      assert.same({ "nil", "nil" }, { type(t.since), type(t.since_seq) })
      t = knl.tail(log, { since = "u2", before = newest - 700 })
      assert.equal(newest - 702, t.since_seq)
    end
  end)

  it("passes over beats whose fold reported a key and that called no tool", function()
    local function beat(id, report, calls)
      local out = { { kind = "llm_request", beat = id, data = { window = report } },
        { kind = "llm_response", beat = id, data = { content = {} } } }
      out[3] = calls and { kind = "tool_call", beat = id, data = { call_id = "1" } } or nil
      return out
    end
    local events, s = {}, knl.open{ store = "mem" }
    for _, b in ipairs{ beat("a", {}), beat("b", { x = 1 }), beat("c", { x = false }, true),
      beat("d", nil), beat("e", { x = {} }), beat("f", { x = true }), beat("g", 5) } do
      for _, e in ipairs(b) do
        events[#events + 1] = e
        if e.data.window ~= 5 then s:append(e) end
      end
    end
    for _, log in ipairs{ events, s, (s:events()) } do
      local function beats(opts) return table.concat(knl.tail(log, opts).beats) end
      assert.equal("abcdefg", beats{})
      assert.equal("acdg", beats{ skip = "x" })
      assert.equal("abcdefg", beats{ skip = "y" })
      assert.equal("dg", beats{ skip = "x", last = 2 })
      assert.equal("cdg", beats{ skip = "x", last = 3 })
      assert.equal("acdg", beats{ skip = "x", last = 9 })
      for _, e in ipairs(knl.tail(log, { skip = "x", last = 2 }).events) do
        assert.is_true(e.beat == "d" or e.beat == "g")
      end
    end
  end)

  it("begins at the beginning when there is no event of the kind", function()
    both(log, { since = "summary" }, function(t)
      assert.equal(log, kinds(t.events))
      assert.is_nil(t.since)
    end)
  end)

  it("answers the seed that it does not hold", function()
    local t, seed = knl.tail(log_of(log), { last = 2, from_seed = true })
    assert.same({ "u1 u2", "b1 u4 c1 c2 u5" }, { kinds(seed), kinds(t.events) })
    t, seed = knl.tail(log_of(log), { last = 4, from_seed = true })
    assert.same({ "", log }, { kinds(seed), kinds(t.events) })
    t, seed = knl.tail(log_of("u1 u9 u2 a1"), { since = "u9", from_seed = true })
    assert.same({ "u1 u9", "u2 a1" }, { kinds(seed), kinds(t.events) })
    t, seed = knl.tail(session_of("u1 u9 u2 a1"), { since = "u9", from_seed = true })
    assert.same({ "session_opened u1 u9", "u2 a1" }, { kinds(seed), kinds(t.events) })
    assert.is_nil(select(2, knl.tail(log_of(log))))
  end)

  it("answers the very tables of a list, and the shared events of a session", function()
    local events = log_of(log)
    assert.is_true(knl.tail(events, { last = 1 }).events[1] == events[8])
    local s = session_of(log)
    assert.is_true(knl.tail(s, { last = 1 }).events[1] == s:events()[9])
    assert.is_true(knl.tail(s:events(), { last = 1 }).events[1] == s:events()[9])
  end)

  it("reads beat from meta, and passes over what is no event", function()
    local t = knl.tail({ 5, "x", { kind = "k1", meta = { beat = "a" } }, false,
      { kind = "k2", beat = "b" }, {} }, { last = 1 })
    assert.equal("k2", kinds(t.events))
    assert.equal(1, #t.events)
  end)

  it("takes what a fold is handed", function()
    local s = session_of(log)
    local seen
    knl.beat(s, knl.device{
      llm = ports.script{ { text = "x" } }:open(),
      fold = function(events)
        seen = kinds(knl.tail(events, { last = 1 }).events)
        return knl.fold{}
      end,
    })
    assert.equal("c1 c2 u5", seen)
  end)

  it("feeds knl.fold", function()
    local s = knl.open{ store = "mem" }
    s:append{ kind = "msg_user", data = { content = "hi" } }
    assert.equal("hi", knl.fold(knl.tail(s).events).messages[1].content)
  end)

  it("refuses what is no log and no option", function()
    local want = ", want a session, what a fold is handed, or a list of events"
    assert.errors_at_line(function() knl.tail() end, 0, "knl.tail: argument 1 (log): got nil"
      .. want)
    assert.errors_at_line(function() knl.tail("x") end, 0, 'knl.tail: argument 1 (log): got "x"'
      .. want)
    assert.errors_at_line(function() knl.tail(knl.device{}) end, 0,
      "argument 1 (log): got a userdata" .. want)
    assert.errors_at_line(function() knl.tail({}, { lst = 1 }) end, 0,
      'unknown option "lst" (did you mean "last"?)')
    assert.errors_at_line(function() knl.tail({}, { last = 0 }) end, 0,
      'option "last": got 0, want a whole number ≥ 1')
    assert.errors_at_line(function() knl.tail({}, { last = 1.5 }) end, 0,
      'option "last": got 1.5, want a whole number')
    assert.errors_at_line(function() knl.tail({}, { last = false }) end, 0,
      'option "last": got false')
    assert.errors_at_line(function() knl.tail({}, { since = 5 }) end, 0,
      'option "since": got 5, want a string')
    assert.errors_at_line(function() knl.tail({}, { before = 5 }) end, 0,
      'option "before" without since: there is no kind to look for')
    for _, name in ipairs{ "after", "before" } do
      assert.errors_at_line(function() knl.tail({}, { [name] = 1.5, since = "x" }) end, 0,
        ('option "%s": got 1.5, want a whole number'):format(name))
      assert.errors_at_line(function() knl.tail({}, { [name] = -1, since = "x" }) end, 0,
        ('option "%s": got -1, want a whole number ≥ 0'):format(name))
    end
    assert.errors_at_line(function() knl.tail({}, { skip = 5 }) end, 0,
      'option "skip": got 5, want a string')
    assert.errors_at_line(function() knl.tail({}, { from_seed = 1 }) end, 0,
      'option "from_seed": got 1, want true or false')
  end)
end)

describe("a fold's second value", function()
  local function beat(second)
    local s = knl.open{ store = "mem" }
    local o = knl.beat(s, knl.device{
      llm = ports.script{ { text = "x" } }:open(),
      fold = function(events, device) return knl.fold(events, device), second end,
    })
    return o, s
  end

  it("is recorded beside the request and shown by views.beats", function()
    local o, s = beat{ kept = 1, dropped = knl.array{ "a" } }
    assert.equal("ok", o.status)
    assert.same({ kept = 1, dropped = { "a" } }, knl.views.beats(s)[1].window)
    assert.same({ messages = {} }, s:request(o.out.beat))
  end)

  it("may be left out", function()
    local _, s = beat(nil)
    assert.is_nil(knl.views.beats(s)[1].window)
  end)

  it("is a table of at most 4 KiB that JSON can say", function()
    for text, second in pairs{
      ['fold: second value: got 5, want a table'] = 5,
      ['fold: second value: got "x", want a table'] = "x",
      ['fold: window: got an array, want an object'] = { "a" },
      ['fold: window.x: got a function'] = { x = print },
      ['fold: window: got 4106 bytes, want at most 4096'] = { x = ("y"):rep(4098) },
    } do
      local o, s = beat(second)
      assert.same({ "error", "conf" }, { o.status, o.kind }, text)
      assert.matches(text, o.detail.message)
      assert.equal(1, s:len())
    end
  end)
end)
