-- Notices that a model goes in circles, says so once or twice, and then stops.
--
-- Use it in every loop that could run all night over the same call.
--
--    knl run examples/nudge.lua
local knl, policy, ports = require("knl"), require("policy"), require("ports")

local port = ports.default(ports.script(function(request)
  local last = request.messages[#request.messages].content
  if type(last) == "string" and last:find("in circles", 1, true) then
    return { text = "You are right: the file is not there. I stop looking." }
  end
  return { calls = { { "find", { name = "missing.txt" } } } }
end))

local stuck = policy.stagnation{ same = 3, period = 2 }
local nudges = 2

return knl.session({ session = arg.session, budget = { amount = 30 } }, function(s)
  local device = knl.device{
    llm = port:open(),
    tools = { find = { effects = "read", handler = function(args) return "no file " .. args.name end } },
  }
  if #s:scan{ kinds = { "msg_user" } } == 0 then
    s:append{ kind = "msg_user", data = { content = "Find missing.txt." } }
  end
  while true do
    local o = knl.beat(s, device)
    if o.status ~= "ok" then return o end
    if #o.out.tools == 0 then
      for _, block in ipairs(o.out.content) do -- a model that thinks says that first
        if block.type == "text" then print(block.text) end
      end
      return { ok = true, beats = #s:beats() }
    end
    local why = stuck(s)
    if why then
      if #s:scan{ kinds = { "nudged" } } >= nudges then -- counted in the log: a resume does not begin anew
        return { ok = false, reason = why, beats = #s:beats() }
      end
      s:append{ kind = "nudged", data = { reason = why } }
      s:append{ kind = "msg_user", data = {
        content = "You are going in circles: the last calls were the same. Try something else, or say what is missing.",
      } }
    end
  end
end)
