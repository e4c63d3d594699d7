-- policy.checkpoint: points of a session that it can be forked from.

local knl, policy, ports = require("knl"), require("policy"), require("ports")

local function opened() return knl.open{ store = "mem" } end

-- n beats more of a session.
local function driven(n, s)
  s = s or opened()
  local device = knl.device{ llm = ports.script(function() return { text = "x" } end):open() }
  for _ = 1, n do
    assert.equal("ok", knl.beat(s, device).status)
  end
  return s
end

describe("policy.checkpoint", function()
  it("records a point every n beats, and answers it", function()
    local mark, s = policy.checkpoint{ every = 2 }, opened()
    assert.is_nil(mark(s))
    driven(1, s)
    assert.is_nil(mark(s))
    driven(1, s)
    local point = mark(s, "halfway")
    local rows = knl.views.beats(s)
    assert.same({ seq = s:len(), beat = rows[2].beat, note = "halfway", beats = 2 },
      point)
    local event = s:events(point.seq)[1]
    assert.same({ "checkpoint", { beat = rows[2].beat, note = "halfway", beats = 2 } },
      { event.kind, event.data })
    assert.is_nil(mark(s))
    driven(2, s)
    assert.equal("", mark(s).note)
  end)

  it("is due every 10 beats by itself, and once when it is late", function()
    local mark, s = policy.checkpoint(), driven(9)
    assert.is_nil(mark(s))
    driven(16, s)
    assert.equal("table", type(mark(s)))
    assert.is_nil(mark(s))
  end)

  it("counts from a checkpoint of a script's own by its beats, else from the opening", function()
    local mark, s = policy.checkpoint{ every = 2 }, driven(3)
    s:append{ kind = "checkpoint", data = { beats = 2 } }
    assert.is_nil(mark(s))
    s:append{ kind = "checkpoint", data = { beats = "x" } }
    assert.equal(3, mark(s).beats)
  end)

  it("counts on after a resume", function()
    local s = driven(2)
    s = knl.resume{ session = s:id(), store = "mem" }
    driven(1, s)
    assert.equal("table", type(policy.checkpoint{ every = 3 }(s)))
  end)

  it("refuses what is no session and no note", function()
    local mark = policy.checkpoint()
    assert.errors_at_line(function() mark() end, 0,
      "policy.checkpoint: session must be a session, got nil")
    assert.errors_at_line(function() mark(opened(), 5) end, 0,
      "policy.checkpoint: note must be a string, got number")
    assert.errors_at_line(function() mark(opened(), false) end, 0,
      "policy.checkpoint: note must be a string, got boolean")
  end)

  it("has an every that is whole and at least 1", function()
    for shown, v in pairs{ ["0"] = 0, ["1.5"] = 1.5, ['"3"'] = "3", ["false"] = false } do
      assert.errors_at_line(function() policy.checkpoint{ every = v } end, 0,
        "policy.checkpoint: every must be a whole number >= 1, got " .. shown)
    end
    assert.errors_at_line(function() policy.checkpoint{ evry = 1 } end, 0,
      "policy.checkpoint: unknown option 'evry' (did you mean 'every'?)")
    assert.errors_at_line(function() policy.checkpoint{ session = 1 } end, 0,
      "unknown option 'session' (the session is the argument of what checkpoint answers)")
    assert.errors_at_line(function() policy.checkpoint(5) end, 0,
      "opts must be a table { every? }, got number")
  end)
end)
