-- std.sh: commands of the system.

local run = std.sh.run

local function bad(text, fn)
  return assert.errors_at_line(fn, 0, text)
end

describe("std.sh.run", function()
  it("runs a list as it is and text through the shell", function()
    assert.same({ code = 0, stdout = "a b|$HOME|", stderr = "" },
      run({ "printf", "%s|", "a b", "$HOME" }))
    assert.same({ code = 3, stdout = "out\n", stderr = "err\n" },
      run("echo out; echo err >&2; exit 3"))
  end)

  it("takes stdin, environment and bytes of any kind", function()
    assert.equal("text\0\255", run({ "cat" }, { stdin = "text\0\255" }).stdout)
    assert.equal("x=y-\n", run("echo $A-$HOME", { env = { A = "x=y", HOME = false } }).stdout)
    assert.equal("", run({ "cat" }).stdout)
  end)

  it("runs in a folder below the project", function()
    local dir = "scratch-" .. require("knl").new_beat_id()
    std.fs.mkdir(dir)
    local out = run("pwd", { cwd = dir }).stdout
    std.fs.remove(dir)
    assert.matches(dir .. "\n", out)
  end)

  it("keeps head and tail of a long output", function()
    assert.equal("ab\n[... 6 bytes cut ...]\nij",
      run("printf abcdefghij", { max_bytes = 4 }).stdout)
  end)

  it("answers that the timeout ended it, with what came before", function()
    local r = run("echo begun; sleep 600", { timeout = 1 })
    assert.same({ true, 143, "begun\n" }, { r.timed_out, r.code, r.stdout })
  end)

  it("says which signal ended it", function()
    assert.equal(128 + 9, run("kill -9 $$").code)
  end)

  it("leaves running what has made itself a session of its own", function()
    local r = run("setsid sleep 600 >/dev/null 2>&1 & echo $!")
    assert.equal(0, run("kill -9 " .. r.stdout).code)
    assert.is_nil(r.left)
  end)

  it("ends with its task, and leaves nothing running", function()
    local h = std.task.spawn(function() run("sleep 600") end)
    std.task.sleep(5)
    h:cancel()
    assert.has_error(function() h:join() end, "task cancelled")
  end)

  it("keeps variables that are credentials by their name from commands, unless given", function()
    assert.equal("x\n", run("echo $MY_API_KEY", { env = { MY_API_KEY = "x" } }).stdout)
  end)

  it("raises when it cannot start", function()
    assert.equal("not_found", bad('std.sh.run: "no_such_command_here": command not found in PATH',
      function() run({ "no_such_command_here" }) end).kind)
    bad("no such folder", function() run({ "true" }, { cwd = "no/such/folder" }) end)
    assert.equal("denied", bad("not executable", function() run({ "/etc/passwd" }) end).kind)
  end)

  it("refuses commands that are none", function()
    bad("std.sh.run: argument 1 (command): got nil, want a list of strings, or text for /bin/sh",
      function() run() end)
    bad("got a table, want a list of strings", function() run({}) end)
    bad("want a list of strings", function() run({ "a", x = 1 }) end)
    bad("command[2]: got 5, want a string", function() run({ "echo", 5 }) end)
    bad("command[2]: got nil", function() run({ "echo", nil, "x" }) end)
    bad('command[1]: got ""', function() run({ "" }) end)
    bad('got "  ", want a command', function() run("  ") end)
    bad("without zero bytes", function() run({ "echo", "a\0b" }) end)
  end)

  it("refuses options that are none", function()
    bad('unknown option "timeuot" (did you mean "timeout"?)',
      function() run("true", { timeuot = 1 }) end)
    bad('option "timeout": got "x", want seconds', function() run("true", { timeout = "x" }) end)
    bad('option "timeout": got 0, want seconds above 0',
      function() run("true", { timeout = 0 }) end)
    bad('option "timeout": got -1, want seconds', function() run("true", { timeout = -1 }) end)
    bad('option "max_bytes": got 1.5, want a whole number',
      function() run("true", { max_bytes = 1.5 }) end)
    bad('option "max_bytes": got 0, want 1', function() run("true", { max_bytes = 0 }) end)
    bad('option "env": A: got 1, want a string', function() run("true", { env = { A = 1 } }) end)
    bad('option "env": got 1 as a name', function() run("true", { env = { "A=1" } }) end)
    bad('option "stdin": got 5, want a string', function() run("true", { stdin = 5 }) end)
    bad('option "cwd": got 5, want a string', function() run("true", { cwd = 5 }) end)
  end)
end)
