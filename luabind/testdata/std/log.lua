std.log.debug("a")
std.log.info("a", nil)
std.log.warn("a", { k = "v" })
std.log.error("a", {})
---
std.log.info() --> error: std.log.info: argument 1 (message): got nil, want a string
---
std.log.info("a", "b") --> error: std.log.info: argument 2 (fields): got "b", want a table
---
std.log.warn("a", { f = { print } }) --> error: std.log.warn: fields.f[1]: got a function, want a JSON value
---
std.log.debug("a", { f = print }) --> error: std.log.debug: fields.f: got a function, want a JSON value
