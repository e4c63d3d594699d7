-- Puts one question to every file of a folder under one budget of tokens. What is
-- done is read from the log, so a second run goes on where the first one stopped;
-- a file that could not be reviewed is reported and stops no other.
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
    if o.status ~= "ok" then return nil, o.status == "stopped" and "larger than a file may be" or o.detail.message end
    for _, block in ipairs(o.out.content) do -- a model that thinks says that first
      if block.type == "text" then return block.text end
    end
    return nil, "the model said nothing"
  end
end

local budget = { amount = tonumber(arg[2]) or 20000, tag = "tokens" }
local s = arg.session and knl.resume{ session = arg.session, budget = budget } or knl.open{ budget = budget }

supervisor.reclaim(s) -- what a killed run left open, and its units

local done = {}
for _, e in ipairs(s:scan{ kinds = { "reviewed" } }) do done[e.data.path] = true end
local count = { reviewed = 0, failed = 0, left = 0 }
for _, path in ipairs(std.fs.glob(std.path.join(folder, "*"))) do
  if not done[path] and std.fs.stat(path).kind == "file" then
    local share = { amount = 2000, refund = true } -- what one file may take at most
    local said, why = supervisor.child(s, { budget = share }, review(path))
    local refused = type(why) == "table" and why.kind == "refused"
    local came_to = said and "reviewed" or refused and "left" or "failed"
    count[came_to] = count[came_to] + 1
    if said then
      s:append{ kind = "reviewed", data = { path = path, said = said } }
    elseif type(why) == "table" and not refused then
      error(why.message) -- the store, not the file
    end
    print(path .. ": " .. (said or refused and "no tokens left for it" or "not reviewed: " .. why))
  end
end
if count.left > 0 then
  print(count.left .. " files left, " .. s:remaining() .. " tokens: resume with more")
  return { ok = false, reason = "budget", reviewed = count.reviewed, left = count.left, session = s:id() }
end
if count.failed > 0 then
  return { ok = false, reason = "files", reviewed = count.reviewed, failed = count.failed, session = s:id() }
end
s:close("done")
return { ok = true, reviewed = count.reviewed, remaining = s:remaining() }
