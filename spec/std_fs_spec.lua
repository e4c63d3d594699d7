-- std.fs: files below the project root, and nothing else.

local knl = require("knl")
local fs = std.fs

local dir -- a folder of the case's own

before_each(function()
  dir = "scratch-" .. knl.new_beat_id()
  fs.mkdir(dir)
end)

after_each(function()
  fs.remove(dir, { recursive = true })
end)

local function at(name)
  return dir .. "/" .. name
end

-- Wants fn to raise a failure of a kind on its own line.
local function raises(kind, text, fn)
  local raised = assert.errors_at_line(fn, 0, text)
  assert.equal(kind, raised.kind)
end

-- What every function of one path refuses.
local function confined(fn, ...)
  local more = { ... }
  for _, path in ipairs{ "../x", "/etc/passwd", "a/../../x", dir .. "/../../x" } do
    raises("denied", "outside the project root", function() fn(path, unpack(more)) end)
  end
  raises("not_found", 'got "" as a path', function() fn("", unpack(more)) end)
  raises("not_found", "zero byte", function() fn("a\0b", unpack(more)) end)
  assert.errors_at_line(function() fn(5, unpack(more)) end, 0, "got 5, want a string")
end

describe("std.fs.read", function()
  it("is the bytes of the file", function()
    fs.write(at("f"), "one\ntwo\255\0")
    local text, cut = fs.read(at("f"))
    assert.equal("one\ntwo\255\0", text)
    assert.is_nil(cut)
    fs.write(at("f"), "")
    assert.equal("", fs.read(at("f")))
  end)

  it("stops at max_bytes, between characters, and says so", function()
    fs.write(at("f"), "aéb")
    assert.same({ "a", true }, { fs.read(at("f"), { max_bytes = 2 }) })
    assert.same({ "aéb" }, { fs.read(at("f"), { max_bytes = 4 }) })
  end)

  it("raises what is wrong", function()
    raises("not_found", "no such file or folder", function() fs.read(at("none")) end)
    raises("io", "is a folder, want a file", function() fs.read(dir) end)
    confined(fs.read)
    assert.errors_at_line(function() fs.read(at("f"), { max = 1 }) end, 0,
      'std.fs.read: unknown option "max"')
    assert.errors_at_line(function() fs.read(at("f"), { max_bytes = 1.5 }) end, 0,
      'option "max_bytes": got 1.5, want a whole number')
    assert.errors_at_line(function() fs.read(at("f"), { max_bytes = -1 }) end, 0,
      'option "max_bytes": got -1, want 0 or more')
  end)
end)

describe("std.fs.write", function()
  it("puts the text in place of the file", function()
    fs.write(at("f"), "long text")
    fs.write(at("f"), "x")
    assert.equal("x", fs.read(at("f")))
    assert.equal(1, #fs.list(dir))
  end)

  it("raises what is wrong", function()
    raises("not_found", "no such file or folder", function() fs.write(at("none/f"), "x") end)
    raises("io", "want a file", function() fs.write(dir, "x") end)
    confined(fs.write, "x")
    assert.errors_at_line(function() fs.write(at("f")) end, 0,
      "std.fs.write: argument 2 (text): got nil, want a string")
  end)
end)

describe("std.fs.append", function()
  it("adds to the end and makes the file", function()
    fs.append(at("f"), "a")
    fs.append(at("f"), "b")
    assert.equal("ab", fs.read(at("f")))
  end)

  it("raises what is wrong", function()
    raises("not_found", "no such file or folder", function() fs.append(at("none/f"), "x") end)
    confined(fs.append, "x")
    assert.errors_at_line(function() fs.append(at("f"), 1) end, 0,
      "std.fs.append: argument 2 (text): got 1, want a string")
  end)
end)

describe("std.fs.list", function()
  it("is what is in a folder, sorted", function()
    fs.write(at("b"), "12")
    fs.mkdir(at("a"))
    local entries = fs.list(dir)
    assert.equal(2, #entries)
    assert.same({ "a", "folder" }, { entries[1].name, entries[1].kind })
    assert.same({ name = "b", kind = "file", size = 2 }, entries[2])
    assert.equal("[]", std.json.encode(fs.list(at("a"))))
    assert.is_true(#fs.list() >= 1)
  end)

  it("raises what is wrong", function()
    fs.write(at("f"), "")
    raises("not_found", "no such file or folder", function() fs.list(at("none")) end)
    raises("conflict", "a file stands where a folder is wanted", function() fs.list(at("f")) end)
    confined(fs.list)
  end)
end)

describe("std.fs.glob", function()
  it("is the paths that match, sorted", function()
    fs.mkdir(at("src/deep"))
    fs.write(at("src/deep/a.go"), "")
    fs.write(at("src/b.go"), "")
    fs.write(at("c.go"), "")
    assert.same({ at("c.go"), at("src/b.go"), at("src/deep/a.go") }, fs.glob(dir .. "/**/*.go"))
    assert.same({ at("src/b.go") }, fs.glob(dir .. "/src/[a-b].go"))
    assert.equal("[]", std.json.encode(fs.glob(dir .. "/*.none")))
  end)

  it("wants a pattern", function()
    assert.errors_at_line(function() fs.glob("a[") end, 0,
      "std.fs.glob: argument 1 (pattern): got \"a[\", want a pattern")
    assert.errors_at_line(function() fs.glob() end, 0, "got nil, want a string")
  end)
end)

describe("std.fs.stat", function()
  it("says what stands there, nil when nothing does", function()
    fs.write(at("f"), "12345")
    local info = fs.stat(at("f"))
    assert.same({ "file", 5, tonumber("644", 8) }, { info.kind, info.size, info.mode })
    assert.near(std.time.now(), info.mtime, 60)
    assert.equal("folder", fs.stat(dir).kind)
    assert.is_nil(fs.stat(at("none")))
    confined(fs.stat)
  end)
end)

describe("std.fs.exists", function()
  it("says whether something stands there", function()
    fs.write(at("f"), "")
    assert.is_true(fs.exists(at("f")))
    assert.is_true(fs.exists("."))
    assert.is_false(fs.exists(at("none")))
    confined(fs.exists)
  end)
end)

describe("std.fs.mkdir", function()
  it("makes the folder and those above, once or twice", function()
    fs.mkdir(at("a/b/c"))
    fs.mkdir(at("a/b/c"))
    assert.equal("folder", fs.stat(at("a/b/c")).kind)
  end)

  it("raises what is wrong", function()
    fs.write(at("f"), "")
    raises("conflict", "", function() fs.mkdir(at("f/x")) end)
    confined(fs.mkdir)
  end)
end)

describe("std.fs.remove", function()
  it("says whether there was something", function()
    fs.write(at("f"), "")
    assert.is_true(fs.remove(at("f")))
    assert.is_false(fs.remove(at("f")))
  end)

  it("removes a full folder only when told", function()
    fs.mkdir(at("a/b"))
    raises("conflict", "the folder is not empty", function() fs.remove(at("a")) end)
    assert.is_true(fs.remove(at("a"), { recursive = true }))
  end)

  it("raises what is wrong", function()
    raises("denied", "is the project root, which stays",
      function() fs.remove(".", { recursive = true }) end)
    confined(fs.remove)
    assert.errors_at_line(function() fs.remove(dir, { recursve = true }) end, 0,
      '(did you mean "recursive"?)')
    assert.errors_at_line(function() fs.remove(dir, { recursive = 1 }) end, 0, "want true or false")
  end)
end)

describe("std.fs.copy", function()
  it("copies a file over another, and a folder with all below it", function()
    fs.write(at("f"), "x")
    fs.write(at("g"), "y")
    fs.copy(at("f"), at("g"))
    assert.equal("x", fs.read(at("g")))
    fs.mkdir(at("a/b"))
    fs.write(at("a/b/h"), "z")
    fs.copy(at("a"), at("c"))
    assert.equal("z", fs.read(at("c/b/h")))
  end)

  it("raises what is wrong", function()
    fs.mkdir(at("a"))
    raises("not_found", "no such file or folder", function() fs.copy(at("none"), at("x")) end)
    raises("conflict", "lies inside", function() fs.copy(at("a"), at("a/b")) end)
    confined(fs.copy, at("x"))
    raises("denied", "outside the project root", function() fs.copy(at("a"), "../x") end)
    assert.errors_at_line(function() fs.copy("a") end, 0,
      "std.fs.copy: argument 2 (to): got nil, want a string")
  end)
end)

describe("a link", function()
  it("that leads out of the project is refused", function()
    std.sh.run({ "ln", "-s", "/etc/passwd", at("out") })
    std.sh.run({ "ln", "-s", "../..", at("up") })
    raises("denied", "outside the project root", function() fs.read(at("out")) end)
    raises("denied", "outside the project root", function() fs.write(at("out"), "x") end)
    raises("denied", "outside the project root", function() fs.list(at("up")) end)
    assert.equal("link", fs.list(dir)[1].kind)
  end)

  it("inside the project is followed", function()
    fs.write(at("f"), "x")
    std.sh.run({ "ln", "-s", "f", at("l") })
    fs.write(at("l"), "y")
    assert.equal("y", fs.read(at("f")))
    assert.equal("link", fs.list(dir)[2].kind)
  end)
end)

describe("std.fs.read of text", function()
  it("refuses what is no UTF-8, when told", function()
    fs.write("t", "h\195\169")
    assert.equal("h\195\169", fs.read("t", { utf8 = true }))
    assert.equal("h", (fs.read("t", { utf8 = true, max_bytes = 2 })))
    fs.write("t", "h\195")
    local raised = assert.errors_at_line(function() fs.read("t", { utf8 = true }) end, 0,
      '"t": is no UTF-8 text: byte 2 is 0xc3')
    assert.equal("validation", raised.kind)
    assert.equal("h\195", fs.read("t"))
    fs.remove("t")
  end)
end)

describe("std.fs.write that expects", function()
  it("writes only where the file holds that", function()
    fs.write("t", "one")
    fs.write("t", "two", { expect = "one" })
    local raised = assert.errors_at_line(function() fs.write("t", "x", { expect = "one" }) end, 0,
      '"t": does not hold what was expected: read it again')
    assert.same({ "conflict", true }, { raised.kind, raised.retryable })
    assert.equal("two", fs.read("t"))
    fs.remove("t")
  end)
end)

-- The methods of a folder are the functions of std.fs; here is what differs.

local function with_folder(fn)
  return function()
    fs.mkdir("work/src")
    fs.write("work/src/a", "needle")
    std.sh.run({ "ln", "-s", "..", "work/up" })
    fn(fs.folder("work"))
    fs.remove("work", { recursive = true })
  end
end

local function denied(text, fn)
  local raised = assert.errors_at_line(fn, 0, text)
  assert.equal("denied", raised.kind)
end

describe("std.fs.folder", function()
  it("is the files below a folder, which need not be there yet", with_folder(function(files)
    assert.equal('std.folder "work"', tostring(files))
    local new = fs.folder("new/one")
    assert.is_false(new:exists("f"))
    new:mkdir(".")
    new:write("f", "x")
    assert.equal("x", fs.read("new/one/f"))
    fs.remove("new", { recursive = true })
  end))

  it("leads out by no path and no link, unless links are wanted", with_folder(function(files)
    denied('"../x": outside the folder "work"', function() files:read("../x") end)
    denied('"/etc/passwd": outside the folder "work"', function() files:read("/etc/passwd") end)
    denied('"up/work": "up" is a link', function() files:list("up/work") end)
    assert.same({ "up/work/src", "up/work/up" },
      fs.folder("work", { links = true }):glob("up/work/*"))
    assert.equal("needle", fs.folder("work", { links = true }):read("up/work/src/a"))
    denied("outside the project root", function() fs.folder("../x") end)
  end))
end)

for name, case in pairs{
  read = function(files) assert.equal("needle", files:read("src/a")) end,
  write = function(files)
    files:write("src/b", "x")
    assert.equal("x", fs.read("work/src/b"))
  end,
  append = function(files)
    files:append("src/b", "x")
    assert.equal("x", fs.read("work/src/b"))
  end,
  list = function(files)
    assert.same({ "src", "up" }, { files:list()[1].name, files:list(".")[2].name })
  end,
  glob = function(files) assert.same({ "src/a" }, files:glob("**/a")) end,
  grep = function(files)
    local found = { { path = "src/a", line = 1, text = "needle" } }
    assert.same(found, files:grep("needle"))
    assert.same(found, files:grep("n", { path = "src" }))
  end,
  stat = function(files) assert.equal(6, files:stat("src/a").size) end,
  exists = function(files)
    assert.is_true(files:exists("src/a"))
    assert.is_false(files:exists("work"))
  end,
  mkdir = function(files)
    files:mkdir("a/b")
    assert.is_true(fs.exists("work/a/b"))
  end,
  remove = function(files)
    assert.is_true(files:remove("up"))
    assert.is_true(files:remove("src", { recursive = true }))
    denied('".": is the folder itself, which stays', function() files:remove(".") end)
  end,
  copy = function(files)
    files:copy("src", "copy")
    assert.equal("needle", fs.read("work/copy/a"))
  end,
} do
  describe("folder:" .. name, function()
    it("counts paths from its folder", with_folder(case))
  end)
end
