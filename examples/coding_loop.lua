-- A coding loop whose end is a check, not the model's word. A cheap model works;
-- when it declines or its call breaks for good, a stronger one takes over on the
-- same log.
--
-- Use it when you can say in a command whether the work is done.
--
--    knl run examples/coding_loop.lua                          scripted, no network
--    knl run --model anthropic:NAME examples/coding_loop.lua   a real model does the work
local knl, policy, ports, tools = require("knl"), require("policy"), require("ports"), require("tools")

local fixture = std.path.join(std.path.dirname(arg[0]), "testdata/broken")
local function edit(search, replace)
  return { "search_replace", { path = "words.go", search = search, replace = replace } }
end
local cheap = ports.script{
  { calls = { { "read", { path = "words.go" } } } },
  { calls = { edit("longest = wrod", "longest = word") } },
  { refuse = "I cannot tell what is wrong with the other test." },
}
local strong = ports.script(function()
  return { calls = { edit('strings.Split(text, " ")', "strings.Fields(strings.ToLower(text))") } }
end)

return knl.session({ session = arg.session, budget = { amount = 12 } }, function(s)
  local folder = "bin/coding_loop/" .. s:id()
  if #s:scan{ kinds = { "msg_user" } } == 0 then
    std.fs.mkdir(std.path.dirname(folder))
    std.fs.copy(fixture, folder)
    s:append{ kind = "msg_user", data = { content = "Make the tests pass. Only words.go may change." } }
  end

  local device = knl.device{
    llm = ports.default(cheap):open(),
    system = "You mend code in small steps.",
    tools = tools.fs{ root = folder, allow = { "read", "search_replace" }, paths = { "words.go" } },
  }
  local next_device = policy.escalate{ strong = strong:open() }
  local verify = policy.verdict{
    timeout = { first = 300 },
    run = function(seconds)
      local env = { GOPROXY = "off", GOTOOLCHAIN = "local", GOWORK = "off" }
      local r = std.sh.run({ "go", "test", "./..." }, { cwd = folder, timeout = seconds, env = env })
      return { ok = r.code == 0, stdout = r.stdout, stderr = r.stderr, exit_code = r.code, timed_out = r.timed_out }
    end,
  }

  while true do
    local o = knl.beat(s, device)
    if o.status == "stopped" or o.status == "error" and o.kind ~= "call" then return o end
    local verdict = verify(s, o)
    if verdict.ok then
      print("green after " .. #s:beats() .. " beats: " .. folder)
      return verdict
    end
    local before = device
    device = next_device(o, device)
    if o.status ~= "ok" and device == before then return o end -- nothing stronger would mend it
    if o.status == "ok" and #o.out.tools == 0 then
      s:append{ kind = "msg_user", data = { content = "The check still says:\n" .. verdict.result.stdout } }
    end
  end
end)
