-- A list runs as it is, text through the shell.
local r = std.sh.run({ "printf", "%s|", "a b", "$HOME" })
assert(r.code == 0 and r.stdout == "a b|$HOME|" and r.stderr == "" and r.timed_out == nil)
r = std.sh.run("echo out; echo err >&2; exit 3")
assert(r.code == 3 and r.stdout == "out\n" and r.stderr == "err\n")
---
-- Folder, environment, stdin.
std.fs.mkdir("sub")
assert(std.sh.run("pwd", { cwd = "sub" }).stdout:match("/sub\n$"))
assert(std.sh.run("echo $A-$HOME", { env = { A = "x=y", HOME = false } }).stdout == "x=y-\n")
assert(std.sh.run({ "cat" }, { stdin = "text\0\255" }).stdout == "text\0\255")
---
-- Output beyond max_bytes keeps head and tail.
local r = std.sh.run("printf abcdefghij", { max_bytes = 4 })
assert(r.stdout == "ab\n[... 6 bytes cut ...]\nij", r.stdout)
---
-- A timeout is a result.
local r = std.sh.run("sleep 60", { timeout = 0.05 })
assert(r.timed_out == true and r.code == 143)
---
-- A command that cannot start raises a value with a kind.
local ok, err = pcall(std.sh.run, { "no_such_command_here" })
assert(not ok and err.kind == "not_found" and err.method == "std.sh.run")
assert(tostring(err) == 'std.sh.run: "no_such_command_here": command not found in PATH')
---
std.sh.run({ "true" }, { cwd = "none" }) --> error: /none": no such folder
---
std.sh.run() --> error: std.sh.run: argument 1 (command): got nil, want a list of strings, or text for /bin/sh
---
std.sh.run({}) --> error: std.sh.run: argument 1 (command): got a table, want a list of strings, or text for /bin/sh
---
std.sh.run({ "a", x = 1 }) --> error: want a list of strings, or text for /bin/sh
---
std.sh.run({ "echo", 5 }) --> error: std.sh.run: command[2]: got 5, want a string without zero bytes
---
std.sh.run({ "echo", nil, "x" }) --> error: std.sh.run: command[2]: got nil, want a string without zero bytes
---
std.sh.run({ "" }) --> error: std.sh.run: command[1]: got "", want a string without zero bytes
---
std.sh.run("  ") --> error: std.sh.run: argument 1 (command): got "  ", want a command without zero bytes
---
std.sh.run("true", { timeout = "x" }) --> error: std.sh.run: option "timeout": got "x", want seconds (a number)
---
std.sh.run("true", { timeout = 0 }) --> error: std.sh.run: option "timeout": got 0, want seconds above 0
---
std.sh.run("true", { timeuot = 1 }) --> error: std.sh.run: unknown option "timeuot" (did you mean "timeout"?)
---
std.sh.run("true", { max_bytes = 0 }) --> error: std.sh.run: option "max_bytes": got 0, want 1 to 1073741824
---
std.sh.run("true", { env = { "A=1" } }) --> error: std.sh.run: option "env": got 1 as a name, want text without = and zero bytes
---
std.sh.run("true", { env = { ["A=B"] = "1" } }) --> error: std.sh.run: option "env": got "A=B" as a name
---
std.sh.run("true", { env = { A = 1 } }) --> error: std.sh.run: option "env": A: got 1, want a string, or false to take it away
