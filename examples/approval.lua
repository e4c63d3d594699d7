-- A tool that runs only when a human says so. The policy records what it wants
-- and waits for an answer in the session's log, which another process writes:
--
--    knl run examples/approval.lua                        waits
--    knl run examples/approval.lua SESSION yes|no [name]  answers what is open there
--
-- Use it in front of anything you could not take back. A permission is for one
-- question: it names the seq of the event that asked it, so it never opens the
-- way for another call, after a restart neither. What is not answered in time is
-- denied, and the model reads why.
local knl, ports = require("knl"), require("ports")

local port = ports.default(ports.script{
  { text = "I will deploy it.", calls = { { "status", {} }, { "deploy", { target = "production" } } } },
  { text = "Done, as far as I was allowed." },
})

local function answer_to(s, seq)
  for _, e in ipairs(s:scan{ kinds = { "permission_given" }, from = seq }) do
    if e.data.question == seq then return e.data end
  end
end

if arg[2] then -- the human's side: attach reads and appends beside the driver
  local s, n = knl.attach{ session = arg[1] }, 0
  for _, e in ipairs(s:scan{ kinds = { "permission_wanted" } }) do
    if not answer_to(s, e.seq) then
      s:append{ kind = "permission_given", data = { question = e.seq, yes = arg[2] == "yes", by = arg[3] or "someone" } }
      print(arg[2] .. ": " .. e.data.name .. " " .. std.json.encode(e.data.input))
      n = n + 1
    end
  end
  return { ok = n > 0, answered = n }
end

local careful = { deploy = true } -- the others run without a question

-- A tool_policy that asks, and takes silence for a no.
local function ask(s, seconds)
  return function(block)
    if not careful[block.name] then return "run" end
    local seq = s:append{ kind = "permission_wanted", data = { name = block.name, input = block.input } }
    std.log.info("permission wanted", { session = s:id(), tool = block.name })
    local late = std.time.monotonic() + seconds
    repeat
      local answer = answer_to(s, seq)
      if answer then return answer.yes and "run" or "deny", "refused by " .. answer.by end
      std.time.sleep(0.05)
    until std.time.monotonic() > late
    s:append{ kind = "permission_given", data = { question = seq, yes = false, by = "the clock" } }
    return "deny", "nobody answered within " .. seconds .. " s"
  end
end

return knl.session({ session = arg.session, budget = { amount = 10 } }, function(s)
  local device = knl.device{
    llm = port:open(),
    tool_policy = ask(s, tonumber(std.env.get("APPROVAL_SECONDS") or 600)),
    tools = {
      status = { effects = "read", handler = function() return "three hosts, all well" end },
      deploy = { handler = function() return "deployed" end },
    },
  }
  if #s:scan{ kinds = { "msg_user" } } == 0 then
    s:append{ kind = "msg_user", data = { content = "Bring the new version out." } }
  end
  while true do
    local o = knl.beat(s, device)
    if o.status ~= "ok" then return o end
    if #o.out.tools == 0 then
      local deployed = false -- asked of the log: this may be the second run
      for _, pair in ipairs((knl.views.tool_pairs(s))) do
        deployed = deployed or pair.name == "deploy" and pair.ok
      end
      return { ok = true, deployed = deployed }
    end
  end
end)
