-- A run that may take all night: the window is divided once, requests keep to it,
-- a summary takes the place of what no longer fits, and every few beats a point
-- is marked that the session can be forked from.
--
-- Use it when a conversation outgrows the context window.
--
--    knl run examples/long_run.lua [beats]
--    knl resume last examples/long_run.lua      after a stop or a crash
local knl, policy, ports = require("knl"), require("policy"), require("ports")

local beats = tonumber(arg[1]) or 40
local conf = { context_window = 2000, max_tokens = 500 }   -- small, so that the example shows something
local port = ports.default(ports.script(function(request, ctx)
  local last = request.messages[#request.messages].content
  if type(last) == "string" and last:find("summary", 1, true) then
    return { text = "Summary: the pages so far say nothing new." }
  end
  return { text = "Next page.", calls = { { "page", {} } } }
end))

local room = policy.room{ port = port, conf = conf, reserve = 400 }
local window, fits = policy.window{ room = room, from_summary = true, keep_seed = true }
local due, summary, record = policy.compact{ fold = window, min_beats = 6 }
local mark = policy.checkpoint{ every = 10 }
local full = policy.beat_cap{ max = beats }

local tools = {
  page = {
    description = "Reads the next page.",
    effects = "read",
    handler = function() return ("It goes on as it began. "):rep(12) end,
  },
}
local device = knl.device{
  llm = port:open(conf),
  fold = window,
  tools = policy.result_cap{ room = room }(tools),
  cost = policy.tokens{ room = room },
  settle = policy.settle{ room = room },
}

return knl.session({ session = arg.session, budget = { amount = 500000, tag = "tokens" } }, function(s)
  if #s:scan{ kinds = { "msg_user" } } == 0 then
    s:append{ kind = "msg_user", data = { content = "Read the book to its end." } }
  end
  while not full(s) do
    if due(s) then record(s, knl.beat(s, device:with{ fold = summary, tools = knl.null })) end
    if fits(s, device) then return { ok = false, reason = "the last results alone are too large" } end
    local o = knl.beat(s, device)
    if o.status ~= "ok" then return o end
    if #o.out.tools == 0 then break end
    local point = mark(s, s:remaining() .. " tokens left")
    if point then print("beat " .. s:len("beats") .. ": " .. point.note) end
  end
  local function count(kind) return #s:scan{ kinds = { kind } } end -- in the log: a run may be the second
  return { ok = true, beats = s:len("beats"), summaries = count("summary"), points = count("checkpoint") }
end)
