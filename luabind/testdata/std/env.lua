assert(std.env.get("PLAIN") == "value")
assert(std.env.get("EMPTY") == "")
assert(std.env.get("NONE") == nil)
assert(std.env.secret("MY_KEY") == "hunter-22")
---
std.env.get() --> error: std.env.get: argument 1 (name): got nil, want a string
---
std.env.secret("NONE") --> error: std.env.secret: "NONE": not set, want a secret in the environment
---
local ok, err = pcall(std.env.secret, "EMPTY")
assert(not ok and err.kind == "not_found")
