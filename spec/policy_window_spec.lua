-- policy.window over a number of beats: what stays, what goes, what is said of it.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function user(text) return { kind = "msg_user", data = { content = text } } end

local function said(beat, text, ...)
  return { kind = "llm_response", beat = beat,
    data = { content = { { type = "text", text = text }, ... }, usage = {} } }
end

local function call(id) return { type = "tool_use", id = id, name = "t", input = {} } end

local function result(beat, id, value)
  return { kind = "tool_result", beat = beat, data = { call_id = id, ok = true, result = value } }
end

-- The texts of a request, in order: what was said, and results by their content.
local function texts(request)
  local out = {}
  for _, m in ipairs(request.messages) do
    local blocks = type(m.content) == "string" and { { text = m.content } } or m.content
    for _, b in ipairs(blocks) do
      out[#out + 1] = b.text or type(b.content) == "string" and b.content or nil
    end
  end
  return table.concat(out, " ")
end

-- A session with n beats, each a call and its result, driven by fold.
local function driven(n, fold)
  local replies = {}
  for i = 1, n + 1 do
    replies[i] = { text = "r" .. i, calls = { { "look", { i = i } } } }
  end
  local s = knl.open{ store = "mem" }
  s:append(user("go"))
  local device = knl.device{
    llm = ports.script(replies):open(), fold = fold,
    tools = { look = { effects = "read", handler = function(args) return "seen" .. args.i end } },
  }
  for _ = 1, n do
    local o = knl.beat(s, device)
    assert.equal("ok", o.status, o.detail and o.detail.message)
  end
  return s, device
end

local function rows(s) return (knl.views.beats(s)) end

describe("policy.window{ tail }", function()
  local events = {
    user("seed"), said("a", "a1"), user("between"), said("b", "b1", call("1")),
      result("b", "1", "b2"),
    user("after"), said("c", "c1"), user("last"),
  }

  it("keeps the last beats and what was said after the first of them", function()
    assert.equal("c1 last", texts((policy.window{ tail = 1 }(events))))
    assert.equal("b1 b2 after c1 last", texts((policy.window{ tail = 2 }(events))))
  end)

  it("drops what stands before the cut, the seed too, unless keep_seed", function()
    assert.equal("b1 b2 after c1 last",
      texts((policy.window{ tail = 2, keep_seed = false }(events))))
    assert.equal("seed b1 b2 after c1 last",
      texts((policy.window{ tail = 2, keep_seed = true }(events))))
  end)

  it("hands a log with no more beats on as it is", function()
    for _, tail in ipairs{ 3, 4, 100 } do
      assert.same(knl.fold(events), (policy.window{ tail = tail }(events)))
    end
    assert.same(knl.fold{}, (policy.window{ tail = 1 }{}))
    assert.equal("seed", texts((policy.window{ tail = 1 }{ user("seed") })))
  end)

  it("groups by the beat and not by neighbourhood", function()
    local mixed = {
      said("a", "a1", call("1")), said("b", "b1", call("2")), result("a", "1", "a2"),
      result("b", "2", "b2"), said("c", "c1"), result("a", "1", "late"),
    }
    assert.equal("c1", texts((policy.window{ tail = 1 }(mixed))))
    assert.equal("b1 b2 c1", texts((policy.window{ tail = 2 }(mixed))))
    assert.equal("a1 a2 b1 b2 c1", texts((policy.window{ tail = 3 }(mixed))))
  end)

  it("keeps a call with its result on every beginning of a log", function()
    local pairs_ = 0
    for n = 0, #events do
      local request = policy.window{ tail = 1 }({ unpack(events, 1, n) })
      for i, m in ipairs(request.messages) do
        local block = type(m.content) == "table" and m.content[2]
        if block and block.type == "tool_use" then
          pairs_ = pairs_ + 1
          assert.equal("1", request.messages[i + 1].content[1].tool_use_id)
        end
      end
    end
    assert.equal(3, pairs_)
  end)

  it("takes events that are damaged", function()
    local damaged = { 5, "x", {}, { kind = "llm_response", beat = "a" }, { kind = 5, beat = "b" },
      { kind = "tool_result", beat = "c", data = {} }, user("hello") }
    assert.equal("hello", texts((policy.window{ tail = 1 }(damaged))))
  end)

  it("takes system and tools from the device, as knl.fold does", function()
    local device = knl.device{ system = "be brief", tools = { t = { handler = print } } }
    local request = policy.window{ tail = 1 }(events, device)
    assert.equal("be brief", request.system)
    assert.equal("t", request.tools[1].name)
  end)

  it("answers the same for a session, its events and a fold's log", function()
    local fold = policy.window{ tail = 2, keep_seed = true }
    local s, device = driven(5, fold)
    assert.equal("go r4 seen4 r5 seen5", texts((fold(s))))
    assert.equal(std.json.encode((fold(s))), std.json.encode((fold((s:events())))))
    local of_log
    knl.beat(s, device:with{ fold = function(log, d)
      of_log = std.json.encode((fold(log)))
      assert.equal(of_log, std.json.encode((fold(s))))
      return fold(log, d)
    end })
    assert.equal("string", type(of_log))
  end)

  it("plugs into a device, whose requests it bounds", function()
    local s = driven(6, policy.window{ tail = 2, keep_seed = true })
    local last = rows(s)[6].beat
    assert.equal("go r4 seen4 r5 seen5", texts(s:request(last)))
  end)

  it("goes on after a resume as before it", function()
    local fold = policy.window{ tail = 2 }
    local s, device = driven(4, fold)
    local before = std.json.encode((fold(s)))
    s = knl.resume{ session = s:id(), store = "mem" }
    assert.equal(before, std.json.encode((fold(s))))
    assert.equal("ok", knl.beat(s, device).status)
  end)
end)

describe("what a window says of a request", function()
  it("names what it left out, in the record and in views.beats", function()
    local s = driven(4, policy.window{ tail = 2 })
    local beats = rows(s)
    assert.same({ kept = 0, seed_kept = true, dropped = {} }, beats[1].window)
    assert.same({ kept = 2, seed_kept = true, dropped = {} }, beats[3].window)
    assert.same({ kept = 2, seed_kept = false, dropped = { beats[1].beat } }, beats[4].window)
    local recorded = s:scan{ kinds = { "llm_request" } }
    assert.same(beats[4].window, recorded[4].data.window)
  end)

  it("is no part of the request", function()
    local s = driven(4, policy.window{ tail = 2 })
    assert.is_nil(s:request(rows(s)[4].beat).window)
  end)

  it("keeps the seed when it is told to", function()
    local s = driven(4, policy.window{ tail = 1, keep_seed = true })
    assert.is_true(rows(s)[4].window.seed_kept)
    assert.same({ rows(s)[1].beat, rows(s)[2].beat }, rows(s)[4].window.dropped)
  end)

  it("names the 8 newest and says that there are more", function()
    local s = driven(14, policy.window{ tail = 2 })
    local beats = rows(s)
    assert.equal(8, #beats[11].window.dropped)
    assert.is_nil(beats[11].window.more)
    assert.equal(beats[1].beat, beats[11].window.dropped[1])
    assert.is_true(beats[14].window.more)
    assert.equal(8, #beats[14].window.dropped)
    assert.same({ beats[4].beat, beats[11].beat },
      { beats[14].window.dropped[1], beats[14].window.dropped[8] })
  end)

  it("goes on with a filter that makes a request of its own", function()
    local s = knl.open{ store = "mem" }
    s:append(user("go"))
    knl.beat(s, knl.device{
      llm = ports.script{ { text = "x" } }:open(), fold = policy.window{ tail = 1 },
      filters = { function(request) return { messages = request.messages } end },
    })
    assert.equal(0, rows(s)[1].window.kept)
  end)
end)

describe("the options of policy.window", function()
  local port = ports.script{}

  local function refuses(opts, text)
    assert.errors_at_line(function() policy.window(opts) end, 0, "policy.window" .. text)
  end

  it("are a table with something that bounds", function()
    for _, opts in ipairs{ 5, "x", true, false } do
      refuses(opts, ": opts must be a table { tail?, keep_seed?, fit?, room?, from_summary? }, got "
        .. type(opts))
    end
    refuses(nil, ": opts must be a table { tail?, keep_seed?, fit?, room?, from_summary? }, got")
    refuses({}, ": tail is required without fit, room or from_summary — beats to keep")
    refuses({ keep_seed = true }, ": tail is required without")
    refuses({ from_summary = false }, ": tail is required without")
  end)

  it("are known by name", function()
    refuses({ tial = 1 }, ": unknown option 'tial' (did you mean 'tail'?)")
    refuses({ tail = 1, [1] = 2 },
      ": unknown option [1] (known: fit, from_summary, keep_seed, room, tail)")
    refuses({ fit = { prot = port } }, " fit: unknown option 'prot' (did you mean 'port'?)")
  end)

  it("hold no session, store, owner or budget", function()
    refuses({ tail = 1, session = knl.open{ store = "mem" } },
      ": unknown option 'session' (the session is an argument of fits, and the fold is handed")
    for _, name in ipairs{ "store", "owner", "budget" } do
      refuses({ tail = 1, [name] = "x" },
        (": unknown option '%s' (a policy holds no state: it belongs to knl.open)"):format(name))
    end
  end)

  it("have a whole tail of at least 1", function()
    for text, tail in pairs{ ["0"] = 0, ["-1"] = -1, ["2.5"] = 2.5, ['"3"'] = "3",
      ["false"] = false,
      nan = 0 / 0, inf = 1 / 0, table = {} } do
      refuses({ tail = tail }, ": tail must be a whole number >= 1, got " .. text)
    end
  end)

  it("have flags that are true or false", function()
    refuses({ tail = 1, keep_seed = 3 }, ": keep_seed must be true or false, got 3")
    refuses({ tail = 1, keep_seed = "" }, ': keep_seed must be true or false, got ""')
    refuses({ tail = 1, from_summary = 0 }, ": from_summary must be true or false, got 0")
  end)

  it("have a fit with a port, a conf and a whole reserve", function()
    refuses({ fit = false }, ": fit must be a table, got false")
    refuses({ fit = port }, ": fit must be a table, got userdata")
    refuses({ fit = {} },
      ": fit.port is required — counts requests and says how large the window is")
    refuses({ fit = { port = 5 } }, " fit: port must be a port, got number")
    refuses({ fit = { port = {} } }, " fit: port must be a port, got a table without count")
    refuses({ fit = { port = { count = print } } },
      " fit: port must be a port, got a table without profile")
    refuses({ fit = { port = port, conf = 5 } }, ": fit.conf must be a table, got number")
    refuses({ fit = { port = port, reserve = -1 } },
      ": fit.reserve must be a whole number >= 0, got -1")
    refuses({ fit = { port = port, reserve = 1.5 } },
      ": fit.reserve must be a whole number >= 0, got 1.5")
    refuses({ fit = { port = port, reserve = "1" } },
      ': fit.reserve must be a whole number >= 0, got "1"')
    refuses({ fit = { port = port, reserve = false } },
      ": fit.reserve must be a whole number >= 0, got false")
  end)

  it("have a room of policy.room, and not beside a fit", function()
    refuses({ room = false }, ": room must be a value of policy.room, got boolean")
    refuses({ room = { count = print, limits = print } },
      ": room must be a value of policy.room, got table")
    refuses({ room = policy.room{ port = port }, fit = { port = port } },
      ": fit and room both given, want one")
  end)

  it("give a second value with fit or room only", function()
    local _, none = policy.window{ tail = 1 }
    assert.is_nil(none)
    local _, fits = policy.window{ fit = { port = port } }
    assert.equal("function", type(fits))
    _, fits = policy.window{ room = policy.room{ port = port } }
    assert.equal("function", type(fits))
  end)
end)
