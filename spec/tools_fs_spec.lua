-- require("tools").fs: tools over files.

local knl, ports, tools = require("knl"), require("ports"), require("tools")
local fs = std.fs

local dir -- a folder of the case's own

before_each(function()
  dir = "scratch-" .. knl.new_beat_id()
  fs.mkdir(dir)
end)

after_each(function()
  fs.remove(dir, { recursive = true })
end)

local everything = { "read", "list", "glob", "grep", "write", "append", "search_replace" }

local function set(paths)
  return tools.fs{ root = dir, allow = everything, paths = paths }
end

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

describe("tools.fs", function()
  it("makes the tools that allow names, and no others", function()
    assert.same({ "list", "read" }, names(tools.fs{ allow = { "read", "list" } }))
    assert.same({ "append", "glob", "grep", "list", "read", "search_replace", "write" },
      names(set()))
  end)

  it("makes entries that a device takes, with their effects", function()
    local t = knl.device{ tools = set() }.tools
    assert.same({ "read", "read", "write", "write", "write" },
      { t.read.effects, t.list.effects, t.write.effects, t.append.effects, t.search_replace.effects })
    assert.same({ "read", "read" }, { t.glob.effects, t.grep.effects })
    for _, name in ipairs(everything) do
      assert.is_true(t[name].strict, name)
      assert.is_true(#t[name].description > 10, name)
      assert.equal("object", t[name].input_schema.type)
    end
  end)

  it("names a misspelt option, word or type", function()
    bad("tools.fs: unknown option 'alow' (did you mean 'allow'?)",
      function() tools.fs{ alow = { "read" } } end)
    bad("tools.fs: opts must be a table { allow, root?, paths? }, got nil",
      function() tools.fs() end)
    bad("tools.fs: opts must be a table { allow, root?, paths? }, got boolean",
      function() tools.fs(false) end)
    bad("tools.fs: allow is required — the tools to make", function() tools.fs{} end)
    bad("tools.fs: allow must be a non-empty list, got string",
      function() tools.fs{ allow = "read" } end)
    bad("tools.fs: allow must be a non-empty list, got false",
      function() tools.fs{ allow = false } end)
    bad("tools.fs: allow must be a non-empty list, got an empty table",
      function() tools.fs{ allow = {} } end)
    bad('tools.fs: allow[1] must be one of "append", "glob", "grep", "list", "read", "search_replace", '
      .. '"write", got "reed"', function() tools.fs{ allow = { "reed" } } end)
    bad('tools.fs: allow must be a non-empty list, got a table with the key "read"',
      function() tools.fs{ allow = { read = true } } end)
    bad("tools.fs: allow[1] must be one of", function() tools.fs{ allow = { 5 } } end)
  end)

  it("names a root or a path that leads out", function()
    bad('tools.fs: root must be a folder below the project root, got "../x"',
      function() tools.fs{ root = "../x", allow = { "read" } } end)
    bad('tools.fs: root must be a folder below the project root, got "/etc"',
      function() tools.fs{ root = "/etc", allow = { "read" } } end)
    bad("tools.fs: root must be a non-empty string, got false",
      function() tools.fs{ root = false, allow = { "read" } } end)
    bad('tools.fs: root must be a non-empty string, got ""',
      function() tools.fs{ root = "", allow = { "read" } } end)
    bad('tools.fs: paths[2] must be a path below the root, got "/etc"',
      function() tools.fs{ allow = { "read" }, paths = { "a", "/etc" } } end)
    bad("tools.fs: paths must be a non-empty list, got an empty table",
      function() tools.fs{ allow = { "read" }, paths = {} } end)
    bad("tools.fs: paths[1] must be a non-empty string, got number",
      function() tools.fs{ allow = { "read" }, paths = { 5 } } end)
  end)

  it("are called by a model through a beat", function()
    fs.write(dir .. "/f", "text")
    local s = knl.open{ store = "mem" }
    local device = knl.device{
      llm = ports.script{ { calls = { { "read", { path = "f" } }, { "read", { pth = "f" } },
        { "list" }, { "write", { path = "../x", text = "" } } } } }:open(),
      tools = set(),
    }
    assert.equal("ok", knl.beat(s, device).status)
    local rows = s:scan{ kinds = { "tool_result" } }
    assert.equal("text", rows[1].data.result)
    assert.is_true(rows[2].data.bad_args)
    assert.same({ "f" }, rows[3].data.result)
    assert.is_true(rows[4].data.ok)
    assert.equal("path_not_allowed", rows[4].data.result.reason)
  end)
end)

describe("tools.fs read", function()
  local function read(args) return set().read.handler(args) end

  it("answers the text, or some lines of it", function()
    fs.write(dir .. "/f", "one\ntwo\nthree")
    assert.equal("one\ntwo\nthree", read{ path = "f" })
    assert.equal("two\n", read{ path = "f", from = 2, to = 2 })
    assert.equal("two\nthree", read{ path = "f", from = 2 })
    assert.equal("one\n", read{ path = "f", to = 1 })
    assert.equal("three", read{ path = "f", from = 3, to = 99 })
    fs.write(dir .. "/empty", "")
    assert.equal("", read{ path = "empty" })
    assert.equal("", read{ path = "empty", from = 1 })
  end)

  it("refuses what is not there, is no text, or is too large", function()
    fs.write(dir .. "/f", "one\ntwo\n")
    fs.write(dir .. "/bin", "a\0b")
    fs.write(dir .. "/big", ("line\n"):rep(60000))
    refused("not_found", "no such file", read{ path = "none" })
    refused("no_such_lines", "the file has 2", read{ path = "f", from = 3 })
    refused("no_such_lines", "no lines 2 to 1", read{ path = "f", from = 2, to = 1 })
    refused("not_text", '"bin": is no UTF%-8 text: byte 2 is 0x00', read{ path = "bin" })
    local answer = read{ path = "big" }
    refused("too_large", "give from and to", answer)
    assert.same({ 300000, 60000 }, { answer.bytes, answer.lines })
    assert.equal("line\nline\n", read{ path = "big", from = 59999 })
    assert.is_false(read{ path = "." }.ok)
  end)
end)

describe("tools.fs read of a part", function()
  local function read(args) return set().read.handler(args) end

  it("goes through a line that is longer than is answered at once", function()
    local line = ("é"):rep(150000)
    fs.write(dir .. "/min.js", line .. "\nend")
    local answer = read{ path = "min.js", from = 1, to = 1 }
    refused("too_large", "or byte where a line is longer", answer)
    local parts, at = {}, 1
    while at do
      answer = read{ path = "min.js", byte = at }
      assert.equal(300004, answer.bytes)
      parts[#parts + 1], at = answer.text, answer.next
    end
    assert.equal(line .. "\nend", table.concat(parts))
    assert.equal(65536, #parts[1])
    assert.equal("end", read{ path = "min.js", byte = 300002 }.text)
    assert.equal("é", read{ path = "min.js", byte = 2 }.text:sub(1, 2))
  end)

  it("refuses a byte that is not there, and lines beside it", function()
    fs.write(dir .. "/f", "abc")
    refused("no_such_lines", "no byte 4, the file has 3", read{ path = "f", byte = 4 })
    refused("bad_range", "byte goes without from and to", read{ path = "f", byte = 1, from = 1 })
  end)
end)

describe("tools.fs on a text in another encoding", function()
  it("says where it is no text, and changes nothing", function()
    fs.write(dir .. "/latin", "caf\233 au lait")
    local t = set()
    refused("not_text", '"latin": is no UTF%-8 text: byte 4 is 0xe9',
      t.read.handler{ path = "latin" })
    refused("not_text", "byte 4",
      t.search_replace.handler{ path = "latin", search = "au", replace = "x" })
    assert.equal("caf\233 au lait", fs.read(dir .. "/latin"))
  end)
end)

describe("tools.fs edits of one file", function()
  it("take turns: no task loses what another changed", function()
    local replace = set().search_replace.handler
    local lines = {}
    for i = 1, 20 do
      lines[i] = "line " .. i .. ";"
    end
    for _ = 1, 5 do
      fs.write(dir .. "/f", table.concat(lines, "\n"))
      std.task.scope(function(scope)
        for i = 1, 20 do
          scope:spawn(function()
            local answer = replace{
              path = "f", search = "line " .. i .. ";", replace = "done " .. i .. ";",
            }
            assert.is_true(answer.ok, answer.message)
          end)
        end
      end)
      assert.equal((table.concat(lines, "\n"):gsub("line", "done")), fs.read(dir .. "/f"))
    end
  end)
end)

describe("tools.fs list", function()
  it("answers names, those of folders with a slash", function()
    fs.mkdir(dir .. "/sub")
    fs.write(dir .. "/f", "")
    local list = set().list.handler
    assert.same({ "f", "sub/" }, list{})
    assert.equal("[]", std.json.encode(list{ path = "sub" }))
    refused("not_found", "", list{ path = "none" })
    refused("conflict", "", list{ path = "f" })
  end)

  it("answers at most 256 KB", function()
    std.sh.run("cd " .. dir .. " && touch $(seq -f %0200.0f 1 1400)")
    refused("too_many", "1400 names have 285600 bytes, at most 262144", set().list.handler{})
  end)
end)

describe("tools.fs glob", function()
  local function glob(pattern, paths) return set(paths).glob.handler{ pattern = pattern } end

  it("answers the paths that match, from the root", function()
    for _, name in ipairs{ "a.go", "b.lua", "src/c.go", "src/deep/d.go" } do
      set().write.handler{ path = name, text = "" }
    end
    assert.same({ "a.go" }, glob("*.go"))
    assert.same({ "a.go", "src/c.go", "src/deep/d.go" }, glob("**/*.go"))
    assert.same({ "src/c.go", "src/deep" }, glob("src/*"))
    assert.equal("[]", std.json.encode(glob("*.none")))
    assert.same({ "src/c.go" }, glob("**/c.go", { "src", "a.go" }))
    assert.same({ "a.go", "src/c.go", "src/deep/d.go" }, glob("**/*.go", { "src", "a.go" }))
    assert.same({ "src/deep/d.go" }, glob("**/*.go", { "src/deep" }))
  end)

  it("is not misled by a root that looks like a pattern", function()
    set().write.handler{ path = "[ab]*/x", text = "" }
    set().write.handler{ path = "aa/y", text = "" }
    assert.same({ "x" },
      tools.fs{ root = dir .. "/[ab]*", allow = { "glob" } }.glob.handler{ pattern = "*" })
  end)

  it("refuses what leads out, what is no pattern, and too many", function()
    refused("path_not_allowed", "leads out of the root", glob("../*"))
    refused("path_not_allowed", "leads out of the root", glob("/etc/*"))
    refused("path_not_allowed", "leads out of the root", glob("a/../../*"))
    refused("bad_pattern", "want a pattern with every %[ closed", glob("[a"))
    std.sh.run("cd " .. dir .. " && touch $(seq 1 1001)")
    refused("too_many", "1001 names match", glob("*"))
    std.sh.run({ "ln", "-s", "..", dir .. "/up" })
    refused("denied", "is a link", glob("up/*"))
  end)
end)

describe("tools.fs grep", function()
  local function grep(args, paths) return set(paths).grep.handler(args) end

  it("answers the lines that match, with their places", function()
    fs.write(dir .. "/a.go", "package a\nfunc F() {}\r\n\tfunc g()")
    fs.write(dir .. "/b.lua", "function f()")
    fs.write(dir .. "/bin", "func\0")
    set().write.handler{ path = "src/c.go", text = "FUNC" }
    assert.same({ matches = { "a.go:2:func F() {}", "a.go:3:\tfunc g()" } },
      grep{ pattern = [[\bfunc\b]], glob = "*.go" })
    assert.same({ "src/c.go:1:FUNC" }, grep{ pattern = "FUNC" }.matches)
    assert.equal(4, #grep{ pattern = "func", ignore_case = true }.matches)
    assert.same({ "b.lua:1:function f()" }, grep{ pattern = "f", path = "b.lua" }.matches)
    assert.same({ "src/c.go:1:FUNC" }, grep{ pattern = ".", path = "src" }.matches)
    assert.equal('{"matches":[]}', std.json.encode(grep{ pattern = "nowhere" }))
  end)

  it("looks only where the paths lead", function()
    set().write.handler{ path = "src/a", text = "x" }
    set().write.handler{ path = "other/a", text = "x" }
    set().write.handler{ path = "top", text = "x" }
    assert.same({ "src/a:1:x", "top:1:x" },
      grep({ pattern = "x" }, { "src", "top", "none" }).matches)
    refused("path_not_allowed", "not among the paths", grep({ pattern = "x", path = "other" }, { "src" }))
    refused("path_not_allowed", "leads out of the root", grep{ pattern = "x", path = "../" .. dir })
    std.sh.run({ "ln", "-s", "../other", dir .. "/src/link" })
    std.sh.run({ "ln", "-s", "../top", dir .. "/src/file" })
    assert.same({ "src/a:1:x" }, grep({ pattern = "x" }, { "src" }).matches)
    refused("denied", "is a link", grep({ pattern = "x", path = "src/link" }, { "src" }))
  end)

  it("says when there are more, and when the pattern is none", function()
    fs.write(dir .. "/f", ("x\n"):rep(201))
    local answer = grep{ pattern = "x" }
    assert.same({ 200, true }, { #answer.matches, answer.more })
    refused("validation", "missing closing %)", grep{ pattern = "(x" })
    refused("bad_pattern", '"glob"', grep{ pattern = "x", glob = "[" })
    refused("not_found", "no such file", grep{ pattern = "x", path = "none" })
  end)

  it("shows the beginning of a long line", function()
    fs.write(dir .. "/f", ("é"):rep(500))
    assert.equal("f:1:" .. ("é"):rep(200) .. "…", grep{ pattern = "é" }.matches[1])
  end)

  it("takes no more time for a nested pattern", function()
    fs.write(dir .. "/f", ("a"):rep(5000) .. "b")
    assert.same({}, grep{ pattern = "^(a+)+$" }.matches)
  end)
end)

describe("tools.fs write", function()
  it("replaces a file and makes the folders above it", function()
    local write = set().write.handler
    assert.same({ ok = true, bytes = 1 }, write{ path = "a/b/f", text = "x" })
    write{ path = "a/b/f", text = "yz" }
    assert.equal("yz", fs.read(dir .. "/a/b/f"))
    refused("conflict", "", write{ path = "a/b/f/g", text = "" })
    assert.is_false(write{ path = "a", text = "" }.ok)
  end)
end)

describe("tools.fs append", function()
  it("adds to the end, and makes the file", function()
    local append = set().append.handler
    append{ path = "a/f", text = "x" }
    assert.same({ ok = true, bytes = 2 }, append{ path = "a/f", text = "yz" })
    assert.equal("xyz", fs.read(dir .. "/a/f"))
  end)
end)

describe("tools.fs search_replace", function()
  local function replace(text, args)
    fs.write(dir .. "/f", text)
    args.path = "f"
    return set().search_replace.handler(args), fs.read(dir .. "/f")
  end

  it("changes a piece that occurs once", function()
    local answer, text = replace("a\nb c\nd", { search = "b c", replace = "%1 x" })
    assert.same({ ok = true, replaced = 1, line = 2 }, answer)
    assert.equal("a\n%1 x\nd", text)
    local _, shorter = replace("a.b", { search = ".b", replace = "" })
    assert.equal("a", shorter)
  end)

  it("changes every one only when told", function()
    local answer, text = replace("x\ny\nx\nx", { search = "x", replace = "z" })
    refused("search_ambiguous", "occurs 3 times", answer)
    assert.same({ 3, { 1, 3, 4 } }, { answer.matches, answer.lines })
    assert.equal("x\ny\nx\nx", text)
    answer, text = replace("aaaa", { search = "aa", replace = "b", all = true })
    assert.equal(2, answer.replaced)
    assert.equal("bb", text)
  end)

  it("says where the text stopped agreeing", function()
    local answer, text = replace("func a() {\n\treturn 1\n}\n",
      { search = "func a() {\n    return 1\n}", replace = "" })
    refused("search_not_found", "agrees with line 1 and stops agreeing in line 2", answer)
    assert.same({ 2, "    return 1\n", "\treturn 1\n", 11 },
      { answer.line, answer.want, answer.got, answer.agreed_bytes })
    assert.equal("func a() {\n\treturn 1\n}\n", text)
  end)

  it("says so when the file ends, when its lines end otherwise, and when nothing agrees", function()
    assert.equal("the end of the file", replace("abc", { search = "abcd", replace = "" }).got)
    refused("search_not_found", "lines of this file end in \\r\\n",
      (replace("a\r\nb\r\n", { search = "a\nb", replace = "" })))
    refused("search_not_found", "nor does a beginning of it",
      (replace("abc", { search = "xyz", replace = "" })))
    refused("search_not_found", "nor does a beginning of it",
      (replace("", { search = "x", replace = "" })))
  end)

  it("cuts what it shows between characters", function()
    local answer = replace("né" .. ("é"):rep(50), { search = "nè", replace = "" })
    assert.equal("è", answer.want)
    assert.equal(("é"):rep(30), answer.got)
    assert.equal(1, answer.agreed_bytes)
  end)

  it("counts and replaces what stands everywhere in a large text", function()
    local text = ("\n"):rep(2 * 1024 * 1024)
    local answer = replace(text, { search = "\n", replace = "" })
    refused("search_ambiguous", "occurs 2097152 times", answer)
    assert.equal(20, #answer.lines)
    assert.equal(20, answer.lines[20])
    local all, changed = replace(text, { search = "\n", replace = "%1", all = true })
    assert.equal(2097152, all.replaced)
    assert.equal(("%1"):rep(2097152), changed)
    local long = ("ab%c"):rep(20)
    all, changed = replace((long .. "-"):rep(3), { search = long, replace = "%0", all = true })
    assert.equal(3, all.replaced)
    assert.equal("%0-%0-%0-", changed)
    refused("too_large", "at most 67108864 are written",
      (replace(text, { search = "\n", replace = ("x"):rep(100), all = true })))
  end)

  it("refuses an edit that is none", function()
    refused("bad_edit", "empty", (replace("abc", { search = "", replace = "x" })))
    refused("no_edits", "the same text", (replace("abc", { search = "a", replace = "a" })))
    refused("not_found", "",
      set().search_replace.handler{ path = "none", search = "a", replace = "b" })
  end)
end)

describe("tools.fs paths", function()
  it("are confined to the root", function()
    local read = set().read.handler
    for _, path in ipairs{ "../x", "/etc/passwd", "a/../../x", "..", "", "a\0b" } do
      refused("path_not_allowed", "leads out of the root", read{ path = path })
    end
    fs.write(dir .. "/f", "x")
    assert.equal("x", read{ path = "./a/../f" })
  end)

  it("are narrowed by the option", function()
    fs.mkdir(dir .. "/src")
    fs.write(dir .. "/src/a", "A")
    fs.write(dir .. "/src2", "no")
    fs.write(dir .. "/go.mod", "M")
    local t = set{ "src/", "go.mod" }
    assert.equal("A", t.read.handler{ path = "src/a" })
    assert.equal("M", t.read.handler{ path = "go.mod" })
    assert.same({ "a" }, t.list.handler{ path = "src" })
    local answer = t.read.handler{ path = "src2" }
    refused("path_not_allowed", "not among the paths: src, go.mod", answer)
    assert.same({ "src", "go.mod" }, answer.paths)
    refused("path_not_allowed", "", t.list.handler{})
    refused("path_not_allowed", "", t.read.handler{ path = "SRC/a" })
    refused("path_not_allowed", "", t.write.handler{ path = "src/../src2", text = "" })
  end)

  it("do not lead through links out of the root", function()
    std.sh.run({ "ln", "-s", "..", dir .. "/up" })
    std.sh.run({ "ln", "-s", "/etc/passwd", dir .. "/out" })
    refused("denied", "is a link", set().list.handler{ path = "up" })
    refused("denied", "is a link", set().write.handler{ path = "up/x", text = "" })
    refused("denied", "is a link", set().read.handler{ path = "out" })
    local whole = tools.fs{ allow = { "read" } }
    refused("denied", "outside the project root", whole.read.handler{ path = dir .. "/out" })
  end)

  it("are not too deep", function()
    refused("too_large", "leads through 1999 folders, want at most 100",
      set().write.handler{ path = ("d/"):rep(2000) .. "f", text = "" })
    assert.same({}, set().list.handler{})
  end)

  it("that meet a cancelled task raise on", function()
    local h = std.task.spawn(function()
      std.task.checkpoint()
      return require("tools.refusal").try(function() std.task.sleep(3600000) end)
    end)
    std.task.yield()
    h:cancel()
    assert.has_error(function() h:join() end, "task cancelled")
  end)
end)
