-- Mends a broken Go module: beats until its tests are green.
--
--    knl run examples/fix_the_build.lua [beats]             a scripted model, no network
--    knl run --model anthropic:NAME examples/fix_the_build.lua
--    knl resume ID examples/fix_the_build.lua               after a stop or a crash
--
-- The module is copied to bin/fix_the_build/<session>. What decides is go test,
-- run after every beat, and not what the model says of its work.

local knl, ports, tools = require("knl"), require("ports"), require("tools")

local fixture = std.path.join(std.path.dirname(arg[0]), "testdata/broken")

-- The scripted model. It says the next step once the one before was answered,
-- so a resumed run goes on where the log ends.
local function change(search, replace)
  return { "search_replace", { path = "words.go", search = search, replace = replace } }
end

local steps = {
  { calls = { { "sh", { command = "go test ./..." } } } },
  { calls = { { "read", { path = "words.go" } } } },
  { text = "A typo.", calls = { change("longest := wrod", "longest := word") } },
  { text = "I misread the line.", calls = { change("longest = wrod", "longest = word") } },
  { calls = { { "sh", { command = "go test ./..." } } } },
  { calls = { change('strings.Split(text, " ")', "strings.Fields(strings.ToLower(text))") } },
}

local function scripted(request)
  local answered = 0
  for _, message in ipairs(request.messages) do
    for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
      if block.type == "tool_result" and not block.is_error then
        answered = answered + 1
      end
    end
  end
  return steps[answered + 1] or { text = "I have nothing more to try." }
end

local function go_test(folder)
  local env = { GOPROXY = "off", GOTOOLCHAIN = "local", GOWORK = "off" }
  return std.sh.run({ "go", "test", "./..." }, { cwd = folder, timeout = 300, env = env })
end

-- What makes the session start: the copy, and the task as its first message.
local function begin(session, folder)
  if #session:scan{ kinds = { "msg_user" } } > 0 then return end
  std.fs.remove(folder, { recursive = true })
  std.fs.mkdir(std.path.dirname(folder))
  std.fs.copy(fixture, folder)
  session:append{ kind = "msg_user", data = {
    content = "The tests of this Go module do not pass. Make them pass; only words.go may change.",
  } }
end

local budget = { amount = tonumber(arg[1]) or 12, tag = "beats" }
local session = arg.session and knl.resume{ session = arg.session, budget = budget }
  or knl.open{ budget = budget }
local folder = "bin/fix_the_build/" .. session:id()
begin(session, folder)

local device = knl.device{
  llm = ports.default(ports.script(scripted)):open(),
  system = "You mend code. Work in small steps and run the tests.",
  tools = tools.merge(
    tools.fs{ root = folder, allow = { "read", "list" } },
    tools.fs{ root = folder, allow = { "search_replace", "write" }, paths = { "words.go" } },
    tools.sh{ cwd = folder, allow = { "go" }, timeout = 300 }
  ),
}

local test = go_test(folder)
while test.code ~= 0 do
  local outcome = knl.beat(session, device)
  if outcome.status ~= "ok" then
    print("not green yet: session " .. session:id())
    return outcome
  end
  test = go_test(folder)
  if test.code ~= 0 and #outcome.out.tools == 0 then
    local said = "go test still says:\n" .. test.stdout .. test.stderr
    session:append{ kind = "msg_user", data = { content = said } }
  end
end

session:close("green")
print("green after " .. #session:beats() .. " beats: " .. folder)
return { ok = true, beats = #session:beats(), folder = folder, session = session:id() }
