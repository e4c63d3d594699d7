-- Puts one question to every file of a folder under one budget of tokens. What is
-- done is read from the log, so a second run goes on where the first one stopped.
--
-- Use it for evals, reviews, translations: many small jobs, one bill.
--
--    knl run examples/batch.lua FOLDER [tokens]
--    knl resume last examples/batch.lua FOLDER [tokens]     with that many more
local knl, policy, ports = require("knl"), require("policy"), require("ports")
local supervisor = require("supervisor")

local folder = arg[1] or std.path.join(std.path.dirname(arg[0]), "testdata/broken")
local port = ports.default(ports.script{ { text = "Looks fine." } })

local function review(path)
  return function(child)
    child:append{ kind = "msg_user", data = { content = "Review " .. path .. ":\n" .. std.fs.read(path) } }
    local device = knl.device{
      llm = port:open(),
      cost = policy.tokens{ port = port },
      settle = policy.settle{ port = port },
    }
    local o = knl.beat(child, device)
    if o.status ~= "ok" then error(o.reason or o.detail.message, 0) end
    return o.out.content[1].text
  end
end

local budget = { amount = tonumber(arg[2]) or 20000, tag = "tokens" }
local s = arg.session and knl.resume{ session = arg.session, budget = budget } or knl.open{ budget = budget }

local done = {}
for _, e in ipairs(s:scan{ kinds = { "reviewed" } }) do done[e.data.path] = true end
local reviewed, left = 0, 0
for _, path in ipairs(std.fs.glob(std.path.join(folder, "*"))) do
  if not done[path] then
    local share = { amount = 2000, refund = true } -- what one file may take at most
    local said, why = supervisor.child(s, { budget = share }, review(path))
    if said then
      s:append{ kind = "reviewed", data = { path = path, said = said } }
      reviewed = reviewed + 1
      print(path .. ": " .. said)
    elseif why.kind == "refused" then
      left = left + 1
    else
      error(why.message)
    end
  end
end
if left > 0 then
  print(left .. " files left, " .. s:remaining() .. " tokens: resume with more")
  return { ok = false, reason = "budget", reviewed = reviewed, left = left, session = s:id() }
end
s:close("done")
return { ok = true, reviewed = reviewed, spent_of = budget.amount, remaining = s:remaining() }
