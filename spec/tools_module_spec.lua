-- require("tools"): the tool that runs commands, and sets of tools.

local knl, tools = require("knl"), require("tools")
local fs = std.fs

local dir -- a folder of the case's own

before_each(function()
  dir = "scratch-" .. knl.new_beat_id()
  fs.mkdir(dir)
end)

after_each(function()
  fs.remove(dir, { recursive = true })
end)

-- Wants a refusal for a reason.
local function refused(reason, text, answer)
  assert.equal("table", type(answer))
  assert.is_false(answer.ok)
  assert.equal(reason, answer.reason)
  assert.matches(text, answer.message)
end

local function bad(text, fn)
  assert.errors_at_line(fn, 0, text)
end

local function names(t)
  local out = {}
  for name in pairs(t) do
    out[#out + 1] = name
  end
  table.sort(out)
  return out
end

describe("tools.sh", function()
  local function run(command, opts) return tools.sh(opts).sh.handler{ command = command } end

  it("answers code and outputs, whatever the code is", function()
    assert.same({ code = 3, stdout = "out\n", stderr = "err\n" },
      run("echo out; echo err >&2; exit 3"))
    assert.same({ code = 0, stdout = "a b", stderr = "" }, run({ "printf", "%s", "a b" }))
  end)

  it("is external, strict and one tool", function()
    local t = knl.device{ tools = tools.sh() }.tools
    assert.same({ "sh" }, names(t))
    assert.same({ "external", true }, { t.sh.effects, t.sh.strict })
    assert.is_nil(t.sh.idempotent)
  end)

  it("runs in cwd, within a timeout", function()
    assert.matches(dir .. "\n", run("pwd", { cwd = dir }).stdout)
    local r = run("echo begun; sleep 600", { timeout = 1 })
    assert.same({ true, "begun\n" }, { r.timed_out, r.stdout })
  end)

  it("ends a command that ignores TERM, and what it started", function()
    local began = std.time.monotonic()
    local r = run("trap '' TERM; sleep 600 & while :; do sleep 0.05; done", { timeout = 0.3 })
    assert.same({ true, 137 }, { r.timed_out, r.code })
    assert.is_true(std.time.monotonic() - began < 60)
  end)

  it("keeps head and tail of a long output", function()
    local r = run({ "seq", "1", "20000" })
    assert.matches("^1\n2\n", r.stdout)
    assert.matches("20000\n$", r.stdout)
    assert.matches("bytes cut", r.stdout)
    assert.is_true(#r.stdout < 40000)
  end)

  it("refuses what cannot start", function()
    refused("not_found", "command not found", run({ "no_such_command_here" }))
    refused("not_found", "no such folder", run("true", { cwd = dir .. "/none" }))
  end)

  it("with allow runs only those programs, without a shell", function()
    local opts = { allow = { "echo", "printf" } }
    assert.equal("a  b c\n", run([[echo 'a  b' "c"]], opts).stdout)
    assert.equal("x=$HOME;|\n", run("echo 'x=$HOME;|'", opts).stdout)
    assert.equal("ab\n", run("  echo   a'b'  ", opts).stdout)
    assert.equal("[]", run([[printf "[%s]" '']], opts).stdout)
    assert.equal("a;b\n", run({ "echo", "a;b" }, opts).stdout)
    refused("command_not_allowed", '"rm" is not allowed, allowed are: echo, printf',
      run("rm -rf x", opts))
    refused("command_not_allowed", '"/bin/echo"', run({ "/bin/echo" }, opts))
    refused("command_not_allowed", '""', run("  ", opts))
    for _, text in ipairs{ "echo a; rm b", "echo a && rm b", "echo $(rm b)", "echo `rm b`", "echo a > b", "echo a | sh", "echo *",
      "echo $HOME", "echo a\nrm b", "echo \\a", "echo 'open", 'echo "$HOME"', "FOO=1 echo & rm", "echo ~", "echo {a,b}" } do
      refused("shell_not_allowed", "needs a shell", run(text, opts))
    end
  end)

  it("names a misspelt option or type", function()
    bad("tools.sh: unknown option 'alow' (did you mean 'allow'?)",
      function() tools.sh{ alow = {} } end)
    bad("tools.sh: allow must be a non-empty list, got an empty table",
      function() tools.sh{ allow = {} } end)
    bad("tools.sh: allow[2] must be a non-empty string, got number",
      function() tools.sh{ allow = { "go", 5 } } end)
    bad('tools.sh: timeout must be a number, got "1"', function() tools.sh{ timeout = "1" } end)
    bad("tools.sh: timeout must be a number, got false", function() tools.sh{ timeout = false } end)
    bad("tools.sh: timeout must be seconds above 0, got 0", function() tools.sh{ timeout = 0 } end)
    bad("tools.sh: timeout must be a finite number, got nan",
      function() tools.sh{ timeout = 0 / 0 } end)
    bad("tools.sh: timeout must be a finite number, got inf",
      function() tools.sh{ timeout = math.huge } end)
    bad("tools.sh: cwd must be a non-empty string, got number", function() tools.sh{ cwd = 5 } end)
    bad("tools.sh: opts must be a table { allow?, timeout?, cwd? }, got string",
      function() tools.sh("x") end)
    bad("tools.sh: opts must be a table { allow?, timeout?, cwd? }, got boolean",
      function() tools.sh(false) end)
  end)
end)

describe("tools.merge", function()
  it("is one set of all", function()
    local own = { now = { handler = std.time.now } }
    local all = tools.merge(tools.fs{ allow = { "read" } }, tools.sh(), own)
    assert.same({ "now", "read", "sh" }, names(all))
    assert.equal(own.now, all.now)
    assert.same({}, tools.merge())
  end)

  it("refuses a name that stands in two", function()
    local a = tools.fs{ allow = { "read" } }
    bad('tools.merge: tool "read" stands in arguments 1 and 3, want it in one',
      function() tools.merge(a, {}, a) end)
  end)

  it("wants tables of tools", function()
    bad("tools.merge: argument 2 must be a table of tools, got nil",
      function() tools.merge({}, nil) end)
    bad("tools.merge: argument 1 must have the names of tools as keys, got 1",
      function() tools.merge({ { handler = print } }) end)
    bad("got string", function() tools.merge({}, "read") end)
  end)
end)

describe("tools.shapes", function()
  it("declares every export", function()
    local api = tools.shapes.api
    assert.same(names(tools), names(api))
    for _, name in ipairs(names(api)) do
      assert.matches("^%u.*%.$", api[name].doc)
    end
    assert.equal(tools.shapes.fs_opts, api.fs.args[1][1])
    assert.equal(tools.shapes.sh_opts, api.sh.args[1][1])
  end)

  it("holds the options that the factories check", function()
    local check = require("lshape.check").check
    assert.is_true((check({ allow = { "read" }, root = "x" }, tools.shapes.fs_opts)))
    assert.is_false((check({ allow = { "reed" } }, tools.shapes.fs_opts)))
    assert.is_true((check({}, tools.shapes.sh_opts)))
  end)
end)
