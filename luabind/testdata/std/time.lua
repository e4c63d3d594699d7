local before = std.time.monotonic()
assert(before >= 0)
std.time.sleep(0.01)
std.time.sleep(0)
assert(std.time.monotonic() - before >= 0.01)
assert(std.time.now() > 1.7e9 and std.time.now() < 1e11)
---
std.time.sleep(-1) --> error: std.time.sleep: argument 1 (seconds): got -1, want seconds, 0 or more
---
std.time.sleep("1") --> error: std.time.sleep: argument 1 (seconds): got "1", want seconds, 0 or more
---
std.time.sleep(0 / 0) --> error: want seconds, 0 or more
---
std.time.sleep(math.huge) --> error: want seconds, 0 or more
