-- A tool that runs only when a human says so. The policy records what it wants
-- and waits for an answer in the session's log, which another process writes:
--
--    knl run examples/approval.lua                        waits
--    knl run examples/approval.lua SESSION yes|no [name]  answers what is open there
--
-- Use it in front of anything you could not take back. What is not answered in
-- time is denied, and the model reads why.
local knl, ports = require("knl"), require("ports")

local port = ports.default(ports.script{
  { text = "I will deploy it.", calls = { { "status", {} }, { "deploy", { target = "production" } } } },
  { text = "Done, as far as I was allowed." },
})

local function open_questions(s)
  local open = {}
  for _, e in ipairs(s:scan{ kinds = { "permission_wanted" } }) do open[e.data.call_id] = e.data end
  for _, e in ipairs(s:scan{ kinds = { "permission_given" } }) do open[e.data.call_id] = nil end
  return open
end

if arg[2] then -- the human's side: attach reads and appends beside the driver
  local s, n = knl.attach{ session = arg[1] }, 0
  for id, wanted in pairs(open_questions(s)) do
    s:append{ kind = "permission_given", data = { call_id = id, yes = arg[2] == "yes", by = arg[3] or "someone" } }
    print(arg[2] .. ": " .. wanted.name .. " " .. std.json.encode(wanted.input))
    n = n + 1
  end
  return { ok = n > 0, answered = n }
end

local careful = { deploy = true } -- the others run without a question

-- A tool_policy that asks, and takes silence for a no.
local function ask(s, seconds)
  return function(block)
    if not careful[block.name] then return "run" end
    s:append{ kind = "permission_wanted", data = { call_id = block.id, name = block.name, input = block.input } }
    std.log.info("approval wanted", { session = s:id(), tool = block.name })
    local until_ms = std.time.monotonic() + seconds
    repeat
      for _, e in ipairs(s:scan{ kinds = { "permission_given" } }) do
        if e.data.call_id == block.id then
          return e.data.yes and "run" or "deny", "refused by " .. e.data.by
        end
      end
      std.time.sleep(0.05)
    until std.time.monotonic() > until_ms
    return "deny", "nobody answered within " .. seconds .. " s"
  end
end

return knl.session({ session = arg.session, budget = { amount = 10 } }, function(s)
  local deployed = false
  local device = knl.device{
    llm = port:open(),
    tool_policy = ask(s, tonumber(std.env.get("APPROVAL_SECONDS") or 600)),
    tools = {
      status = { effects = "read", handler = function() return "three hosts, all well" end },
      deploy = { handler = function() deployed = true return "deployed" end },
    },
  }
  s:append{ kind = "msg_user", data = { content = "Bring the new version out." } }
  while true do
    local o = knl.beat(s, device)
    if o.status ~= "ok" then return o end
    if #o.out.tools == 0 then return { ok = true, deployed = deployed, said = o.out.content[1].text } end
  end
end)
