-- Asks several questions side by side, each in a session of its own with a part
-- of one budget, and lets one more beat write the answer from all of them.
--
-- Use it when the parts of a task need nothing from each other.
--
--    knl run examples/research.lua
local knl, policy, ports = require("knl"), require("policy"), require("ports")
local supervisor = require("supervisor")

local questions = arg[1] and { unpack(arg) } or { "Who maintains it?", "What is it written in?", "What breaks?" }
local port = ports.default(ports.script(function(request)
  local asked = request.messages[#request.messages].content
  return { text = asked == "Answer from what was found." and "All in all: fine." or "On " .. asked .. " I found enough.", delay = 0.05 }
end))

local function text_of(out) -- a model that thinks says that first
  for _, block in ipairs(out.content) do
    if block.type == "text" then return block.text end
  end
  return ""
end

local function research(question)
  return function(child)
    child:append{ kind = "msg_user", data = { content = question } }
    local device = knl.device{ llm = port:open(), system = "Find out one thing. Say what you did not find." }
    local full = policy.beat_cap{ max = 4 }
    while not full(child) do
      local o = knl.beat(child, device)
      if o.status ~= "ok" then return nil, o.reason or o.detail.message end
      if #o.out.tools == 0 then return child:id(), text_of(o.out) end
    end
    return nil, "no answer within 4 beats"
  end
end

return knl.session({ session = arg.session, budget = { amount = 20, tag = "beats" } }, function(s)
  supervisor.reclaim(s) -- a run that was killed left children, and its questions are asked again
  local children = {}
  for i, question in ipairs(questions) do
    children[i] = { opts = { budget = { amount = 4, refund = true } }, fn = research(question) }
  end

  local found = {}
  for i, slot in ipairs(supervisor.parallel(s, children, { timeout_ms = 120000 })) do
    local id, said
    if slot.ok then id, said = slot.values[1], slot.values[2] else said = knl.error(slot.err).message end
    print((id and "%s %s" or "%s no answer: %s"):format(questions[i], tostring(said)))
    found[#found + 1] = id
  end
  if #found == 0 then return { ok = false, reason = "nobody found anything" } end

  s:append{ kind = "msg_user", data = { content = "Answer from what was found." } }
  local device = knl.device{ llm = port:open(), fold = supervisor.merge(s, found) }
  local o = knl.beat(s, device)
  if o.status ~= "ok" then return o end
  print(text_of(o.out))
  return { ok = true, found = #found, left = s:remaining(), answer = text_of(o.out) }
end)
