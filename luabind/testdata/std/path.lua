local path = std.path
assert(path.join("a", "b", "../c", "", "d.go") == "a/c/d.go")
assert(path.join("/a", "/b") == "/a/b")
assert(path.join("") == "")
assert(path.dirname("a/b/c.go") == "a/b" and path.dirname("c.go") == "." and path.dirname("/c") == "/")
assert(path.basename("a/b/c.go") == "c.go" and path.basename("a/b/") == "b")
assert(path.ext("a/b.tar.gz") == ".gz" and path.ext("Makefile") == "" and path.ext(".bashrc") == "")
assert(path.ext("a.b/c") == "" and path.ext(".eslintrc.json") == ".json")
---
std.path.join() --> error: std.path.join: got no argument, want one part or more
---
std.path.join("a", 1) --> error: std.path.join: part 2: got 1, want a string
---
std.path.ext(nil) --> error: std.path.ext: argument 1 (path): got nil, want a string
