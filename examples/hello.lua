-- Asks a model one thing: knl run examples/hello.lua "Who are you?"
local knl, ports = require("knl"), require("ports")
local port = ports.default(ports.script{ { text = "Hello. This beat is on your disk." } })
local device = knl.device{ llm = port:open() }

return knl.session({}, function(session)
  session:append{ kind = "msg_user", data = { content = arg[1] or "Say hello." } }
  local outcome = knl.beat(session, device)
  if outcome.status == "ok" then
    for _, block in ipairs(outcome.out.content) do
      if block.type == "text" then print(block.text) end
    end
  end
  return outcome
end)
