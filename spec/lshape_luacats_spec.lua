-- require("lshape.luacats"): schemas as annotations.

local luacats = require("lshape.luacats")
local T = require("lshape.t")

-- The type that a field of the schema gets.
local function written(schema, prefix)
  local shape = { kind = "shape", open = true, fields = { f = schema } }
  local text = luacats.class_for("C", shape, prefix)
  return text:match("^%-%-%-@class C\n%-%-%-@field f (.*)\n$")
end

describe("lshape.luacats a type", function()
  it("of a scalar is its name", function()
    assert.equal("string", written(T.string))
    assert.equal("function", written(T.fn))
    assert.equal("table", written(T.table))
    assert.equal("integer", written(T.integer))
    assert.equal("any", written(T.any))
    assert.equal("string", written(T.pattern("x")))
    assert.equal("number", written(T.number:min(1):max(2)))
    assert.equal("userdata", written({ kind = "prim", prim = "userdata" }))
  end)

  it("of a choice is a union", function()
    assert.equal('"a"|1|true', written(T.one_of({ "a", 1, true })))
    assert.equal('"x"', written(T.literal("x")))
    assert.equal("string|number[]", written(T.any_of({ T.string, T.array_of(T.number) })))
  end)

  it("of a list puts a union in parentheses, but not one that is enclosed", function()
    assert.equal("string[]", written(T.array_of(T.string)))
    assert.equal("string[][]", written(T.array_of(T.array_of(T.string))))
    assert.equal("(string|number)[]", written(T.array_of(T.any_of({ T.string, T.number }))))
    assert.equal('("a"|"b")[]', written(T.array_of(T.one_of({ "a", "b" }))))
    assert.equal("{ a: string|number }[]",
      written(T.array_of(T.shape({ a = T.any_of({ T.string, T.number }) }))))
    assert.equal("(string|number)[][]",
      written(T.array_of(T.array_of(T.any_of({ T.string, T.number })))))
    assert.equal("({ a: { b: string } }|number)[]",
      written(T.array_of(T.any_of({ T.shape({ a = T.shape({ b = T.string }) }), T.number }))))
    assert.equal("table<string, string|number>[]",
      written(T.array_of(T.map_of(T.string, T.any_of({ T.string, T.number })))))
    local optional = { kind = "optional", inner = { kind = "prim", prim = "string" } }
    assert.equal("(string|nil)[]", written({ kind = "array_of", elem = optional }))
  end)

  it("of a list looks past what stands in a text", function()
    assert.equal('("("|"x")[]', written(T.array_of(T.one_of({ "(", "x" }))))
    assert.equal('(">"|"x")[]', written(T.array_of(T.one_of({ ">", "x" }))))
    assert.equal('"a|b"[]', written(T.array_of(T.one_of({ "a|b" }))))
    assert.equal([=[("\"|("|"x")[]]=], written(T.array_of(T.one_of({ '"|(', "x" }))))
  end)

  it("of a text stays on its line", function()
    assert.equal([["a\nb\000\\"]], written(T.literal("a\nb\0\\")))
  end)

  it("of a table quotes the names that are no words", function()
    assert.equal('{ ["end"]: any, ["x y"]?: string, x_1: any }', written(T.shape({
      ["x y"] = T.string:is_optional(), x_1 = T.any, ["end"] = T.any,
    })))
  end)

  it("of a table lists its fields by name", function()
    assert.equal("{ a?: number, b: string }",
      written(T.shape({ b = T.string, a = T.number:is_optional() })))
    assert.equal("table", written(T.shape({})))
    assert.equal("table<string, integer>", written(T.map_of(T.string, T.integer)))
    assert.equal("[string, integer]", written(T.tuple({ T.string, T.integer })))
    assert.equal('{ k: "a" }|{ k: "b", n: number }', written(T.discriminated("k", {
      b = T.shape({ k = T.literal("b"), n = T.number }),
      a = T.shape({ k = T.literal("a") }),
    })))
  end)

  it("of a ref is a class, the prefix in front", function()
    assert.equal("TokenUsage", written(T.ref("token_usage")))
    assert.equal("knl.TokenUsage[]", written(T.array_of(T.ref("token-usage")), "knl."))
    assert.equal("ABc", written(T.ref("a_bc")))
    assert.equal("LlmHTTP", written(T.ref("llm_HTTP")))
  end)

  it("stands alone too", function()
    assert.equal("string|number", luacats.type_of(T.any_of({ T.string, T.number })))
    assert.equal("x.User", luacats.type_of(T.ref("user"), "x."))
  end)

  it("of an unknown kind is raised", function()
    assert.errors_at_line(function() local _ = luacats.type_of({ kind = "zzz" }) end, 0,
      "lshape.luacats: unknown kind 'zzz'")
  end)
end)

describe("lshape.luacats.class_for", function()
  it("writes a line for each field, with what it is for", function()
    assert.equal([[
---@class policy.WindowOpts
---@field fit? { port: any } @how to fit
---@field tail integer @beats to keep
]], luacats.class_for("policy.WindowOpts", T.shape({
      tail = T.integer:min(1):describe("beats to keep"),
      fit = T.shape({ port = T.any }):is_optional():describe("how to fit"),
    })))
    assert.equal("---@class Empty\n", luacats.class_for("Empty", T.shape({})))
  end)

  it("keeps a description on its line", function()
    assert.equal("---@class C\n---@field a any @one two\n",
      luacats.class_for("C", T.shape({ a = T.any:describe("one\n  two") })))
  end)

  it("quotes a field whose name is no word", function()
    assert.equal('---@class C\n---@field [""] any\n---@field ["1\\n"]? any\n',
      luacats.class_for("C", T.shape({ ["1\n"] = T.any:is_optional(), [""] = T.any })))
  end)

  it("makes a name of what is none", function()
    assert.equal("---@class a_b.c\n", luacats.class_for("a b.c", T.shape({})))
    assert.equal("---@class _1\n", luacats.class_for("1", T.shape({})))
    assert.equal("---@class _\n", luacats.class_for("", T.shape({})))
    assert.equal("p.X_y", luacats.type_of(T.ref("x y"), "p."))
    assert.errors_at_line(function() luacats.class_for(nil, T.shape({})) end, 0,
      "lshape.luacats.class_for: the name must be a string, got nil")
  end)

  it("wants a shape", function()
    assert.errors_at_line(function() luacats.class_for("C", T.string) end, 0,
      "schema must be kind='shape'")
  end)
end)

describe("lshape.luacats.gen", function()
  it("writes the shapes in the order of their names, and nothing else", function()
    assert.equal([[
---@meta

---@class p.ToolPair
---@field id string

---@class p.Usage
---@field pair p.ToolPair
]], luacats.gen({
      usage = T.shape({ pair = T.ref("tool_pair") }),
      ["tool-pair"] = T.shape({ id = T.string }),
      reason = T.one_of({ "a" }),
      api = { usage = { doc = "x" } },
    }, "p."))
  end)

  it("wants a table and a text", function()
    assert.errors_at_line(function() luacats.gen(5) end, 0,
      "lshape.luacats.gen: shapes must be a table, got number")
    assert.errors_at_line(function() luacats.gen({ a = T.shape({}) }, 5) end, 0,
      "lshape.luacats: the prefix must be a string, got number")
  end)

  it("of nothing is the line for the editor", function()
    assert.equal("---@meta\n", luacats.gen())
    assert.equal("---@meta\n", luacats.gen({}))
    assert.equal("---@meta\n", luacats.gen(nil, "p."))
  end)
end)
