-- Write, append, read.
local fs = std.fs
fs.write("a.txt", "one\n")
fs.append("a.txt", "two\255")
assert(fs.read("a.txt") == "one\ntwo\255")
assert(select("#", fs.read("a.txt")) == 1)
local text, cut = fs.read("a.txt", { max_bytes = 3 })
assert(text == "one" and cut == true)
fs.write("a.txt", "")
assert(fs.read("a.txt") == "")
---
-- Folders.
local fs = std.fs
fs.mkdir("src/deep")
fs.write("src/deep/a.go", "package a")
fs.write("src/b.go", "")
local entries = fs.list("src")
assert(#entries == 2 and entries[1].name == "b.go" and entries[1].kind == "file" and entries[1].size == 0)
assert(entries[2].name == "deep" and entries[2].kind == "folder")
assert(fs.list()[1].name == "src")
assert(table.concat(fs.glob("**/*.go"), " ") == "src/b.go src/deep/a.go")
assert(std.json.encode(fs.glob("*.none")) == "[]")
fs.copy("src", "dst")
assert(fs.read("dst/deep/a.go") == "package a")
assert(fs.remove("src", { recursive = true }) and not fs.exists("src"))
assert(fs.remove("src") == false)
---
-- Asking first.
local fs = std.fs
fs.write("f", "12345")
local info = fs.stat("f")
assert(info.kind == "file" and info.size == 5 and info.mtime > 1.7e9 and info.mode == 420)
assert(fs.stat("none") == nil)
assert(fs.exists("f") and fs.exists(".") and not fs.exists("none"))
---
std.fs.read("x/y") --> error: std.fs.read: "x/y": no such file or folder, root is "/
---
std.fs.read("../x") --> error: std.fs.read: "../x": outside the project root "/
---
std.fs.exists("/etc/passwd") --> error: std.fs.exists: "/etc/passwd": outside the project root "/
---
std.fs.write("none/x", "text") --> error: std.fs.write: "none/x": no such file or folder
---
std.fs.write("x") --> error: std.fs.write: argument 2 (text): got nil, want a string
---
std.fs.write("x", 5) --> error: std.fs.write: argument 2 (text): got 5, want a string
---
std.fs.read("x", { max_bytes = 1.5 }) --> error: std.fs.read: option "max_bytes": got 1.5, want a whole number
---
std.fs.read("x", { max_bytes = -1 }) --> error: std.fs.read: option "max_bytes": got -1, want 0 or more
---
std.fs.read("x", { max = 1 }) --> error: std.fs.read: unknown option "max"
---
std.fs.glob("a[") --> error: std.fs.glob: argument 1 (pattern): got "a[", want a pattern with every [ closed and no \ at its end
---
std.fs.remove(".") --> error: std.fs.remove: ".": is the project root, which stays
---
std.fs.copy("a") --> error: std.fs.copy: argument 2 (to): got nil, want a string
---
-- What was raised is a value with a kind.
local ok, err = pcall(std.fs.read, "none")
assert(not ok and err.kind == "not_found" and err.method == "std.fs.read" and err.retryable == false)
assert(select(2, pcall(std.fs.write, "../x", "")).kind == "denied")
