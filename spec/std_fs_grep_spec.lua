-- std.fs.grep: lines of files that match a regular expression.

local knl = require("knl")
local fs = std.fs

local dir -- a folder of the case's own

before_each(function()
  dir = "scratch-" .. knl.new_beat_id()
  fs.mkdir(dir .. "/sub")
end)

after_each(function()
  fs.remove(dir, { recursive = true })
end)

local function grep(pattern, opts)
  opts = opts or {}
  opts.path = opts.path or dir
  return fs.grep(pattern, opts)
end

describe("std.fs.grep", function()
  it("answers path, line and text of each line that matches", function()
    fs.write(dir .. "/a", "one\r\ntwo\nthree")
    fs.write(dir .. "/sub/b", "two\n")
    local found, more = grep("^t.*o$|three")
    assert.same({
      { path = dir .. "/a", line = 2, text = "two" },
      { path = dir .. "/a", line = 3, text = "three" },
      { path = dir .. "/sub/b", line = 1, text = "two" },
    }, found)
    assert.is_nil(more)
    assert.equal("one", grep("one$")[1].text)
    assert.equal("[]", std.json.encode(grep("none")))
  end)

  it("narrows by glob, by name or by path", function()
    for _, name in ipairs{ "a.go", "a.lua", "sub/b.go" } do
      fs.write(dir .. "/" .. name, "x")
    end
    assert.equal(2, #grep("x", { glob = "*.go" }))
    assert.equal(1, #grep("x", { glob = "sub/*.go" }))
    assert.equal(2, #grep("x", { glob = "**/*.go" }))
    assert.equal(3, #grep("X", { ignore_case = true }))
    assert.equal(1, #grep("x", { path = dir .. "/a.lua", glob = "*.go" }))
  end)

  it("passes over links, what is no text, and .git", function()
    fs.mkdir(dir .. "/.git")
    fs.write(dir .. "/.git/x", "x")
    fs.write(dir .. "/bin", "x\0")
    fs.write(dir .. "/f", "x")
    std.sh.run({ "ln", "-s", "f", dir .. "/link" })
    std.sh.run({ "ln", "-s", "/etc", dir .. "/etc" })
    assert.same({ dir .. "/f" }, { (grep("x")[1] or {}).path, (grep("x")[2] or {}).path })
    assert.equal(1, #grep("x", { path = dir .. "/.git" }))
  end)

  it("says when there are more than max", function()
    fs.write(dir .. "/f", ("x\n"):rep(5))
    local found, more = grep("x", { max = 4 })
    assert.same({ 4, true }, { #found, more })
    found, more = grep("x", { max = 5 })
    assert.same({ 5 }, { #found, more })
  end)

  it("reads bytes that are no UTF-8", function()
    fs.write(dir .. "/f", "a\255b")
    assert.equal("a\255b", grep("b")[1].text)
  end)

  it("refuses what leads out, is not there, or is no pattern", function()
    local function bad(kind, text, fn)
      local raised = assert.errors_at_line(fn, 0, text)
      assert.equal(kind, raised.kind)
    end
    bad("denied", "outside the project root", function() fs.grep("x", { path = ".." }) end)
    bad("denied", "outside the project root", function() fs.grep("x", { path = "/etc" }) end)
    bad("not_found", "no such file", function() fs.grep("x", { path = dir .. "/none" }) end)
    bad("validation", "pattern: missing closing ): `(x`", function() fs.grep("(x") end)
    bad("validation", "pattern: ", function() fs.grep("(?=x)") end)
    assert.errors_at_line(function() fs.grep("x", { glob = "[" }) end, 0, 'option "glob": got "["')
    assert.errors_at_line(function() fs.grep("x", { max = 0 }) end, 0, 'option "max": got 0')
    assert.errors_at_line(function() fs.grep() end, 0,
      "std.fs.grep: argument 1 (pattern): got nil, want a string")
  end)
end)

describe("std.fs.grep of much work", function()
  it("ends with its task, whatever the pattern and the line", function()
    std.fs.write("big", ("x"):rep(4 * 1024 * 1024))
    local began = std.time.monotonic()
    assert.has_error(function()
      std.task.with_timeout(300, function() std.fs.grep("(?:x|xx){400}y", { path = "big" }) end)
    end)
    assert.is_true(std.time.monotonic() - began < 3)
    std.fs.remove("big")
  end)

  it("refuses a pattern that is too large", function()
    local raised = assert.errors_at_line(function() std.fs.grep(("x{1000}"):rep(20)) end, 0,
      "pattern: its repeats make 20002 steps of it, want at most 10000: repeat less")
    assert.equal("validation", raised.kind)
  end)
end)
