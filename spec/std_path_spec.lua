-- std.path: paths as text.

local path = std.path

-- What every function of one path refuses.
local function wants_text(name)
  assert.errors_at_line(function() path[name]() end, 0,
    ("std.path.%s: argument 1 (path): got nil, want a string"):format(name))
  assert.errors_at_line(function() path[name](5) end, 0, "got 5, want a string")
end

describe("std.path.join", function()
  it("is one path without needless parts", function()
    assert.equal("a/c/d.go", path.join("a", "b", "../c", "", "d.go"))
    assert.equal("/a/b", path.join("/a", "/b"))
    assert.equal("../b", path.join("a", "../../b"))
    assert.equal("a", path.join("./a/."))
    assert.equal("", path.join(""))
  end)

  it("wants strings", function()
    assert.errors_at_line(function() path.join() end, 0,
      "std.path.join: got no argument, want one part or more")
    assert.errors_at_line(function() path.join("a", 1) end, 0,
      "std.path.join: part 2: got 1, want a string")
    assert.errors_at_line(function() path.join("a", nil, "b") end, 0,
      "part 2: got nil, want a string")
  end)
end)

describe("std.path.dirname", function()
  it("is all but the last part", function()
    assert.same({ "a/b", ".", "/" },
      { path.dirname("a/b/c.go"), path.dirname("c.go"), path.dirname("/c") })
  end)

  it("wants a string", function() wants_text("dirname") end)
end)

describe("std.path.basename", function()
  it("is the last part", function()
    assert.same({ "c.go", "b", "." },
      { path.basename("a/b/c.go"), path.basename("a/b/"), path.basename("") })
  end)

  it("wants a string", function() wants_text("basename") end)
end)

describe("std.path.ext", function()
  it("is the ending with its dot, and none of a name that begins with one", function()
    assert.same({ ".gz", "", "", ".json", "" },
      { path.ext("a/b.tar.gz"), path.ext("Makefile"), path.ext(".bashrc"), path.ext(".eslintrc.json"), path.ext("a.b/c") })
  end)

  it("wants a string", function() wants_text("ext") end)
end)
