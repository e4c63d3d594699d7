package luabind

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const mineModule = `
local T = require("lshape").t
local M = { shapes = {} }
M.shapes.point = T.shape({ x = T.number:describe("metres"), tags = T.array_of(T.string):is_optional() })
M.shapes.make_opts = T.shape({ at = M.shapes.point }, { open = false })
M.shapes.word = T.one_of({ "a", "b" }):describe("A word.")
M.shapes.same = M.shapes.point
M.shapes.text = T.string
function M.make(opts) end
function M.many(...) end
function M.nothing() end
function M.binder() end
M.limit = 3
M.deep = { inner = function() end }
M.shapes.api = {
  shapes = { doc = "Schemas.", returns = "table" },
  make = {
    doc = "Makes one\nof two lines.", returns = M.shapes.point:is_optional(),
    args = { { T.partial({ at = M.shapes.point }), "where", name = "opts" }, { M.shapes.word, "which", name = "word", optional = true } },
  },
  many = { doc = "Takes many.", args = { { T.string, "texts", name = "..." } }, returns = "string[], fun(a: string): integer, string" },
  nothing = { doc = "Answers nothing.", args = {}, returns = "nil" },
  binder = {
    doc = "Hands a function back.", args = {}, returns = T.fn,
    members = { bound = { doc = "Bound.", args = { { M.shapes.point, "to", name = "point", optional = true } }, returns = T.any_of{ T.string, T.number }:is_optional() } },
  },
  limit = { doc = "The most.", returns = T.integer },
  deep = { doc = "More.", returns = "table", members = { inner = { doc = "Inside.", args = {}, returns = "..." } } },
}
return M`

const mineStub = `---@meta mine

---@class mine.make_opts
---@field at mine.point

---@class mine.point
---@field tags? string[]
---@field x number @metres

---@alias mine.same mine.point

---@alias mine.text string

--- A word.
---@alias mine.word "a"|"b"

---@class mine
local mine = {}

--- Hands a function back.
---@return fun(point?: mine.point): (string|number)?
function mine.binder() end

--- More.
mine.deep = {}

--- Inside.
---@return any ...
function mine.deep.inner() end

--- The most.
---@type integer
mine.limit = nil

--- Makes one of two lines.
---@param opts mine.make_opts where
---@param word? mine.word which
---@return mine.point?
function mine.make(opts, word) end

--- Takes many.
---@param ... string texts
---@return string[]
---@return fun(a: string): integer, string
function mine.many(...) end

--- Answers nothing.
function mine.nothing() end

--- Schemas.
---@type table
mine.shapes = nil

return mine
`

// TestStubsOfALuaModule: what a module publishes, spelt for an editor.
func TestStubsOfALuaModule(t *testing.T) {
	vm, err := New(Config{Embedded: fstest.MapFS{"mine/init.lua": {Data: []byte(mineModule)}}})
	require.NoError(t, err)
	files, err := vm.Stubs(context.Background())
	require.NoError(t, err)
	require.Equal(t, "mine", files[0].Name)
	require.Equal(t, mineStub, files[0].Text)
	require.NoError(t, vm.Close())
}

func TestStubsNameTheModuleThatDoesNotLoad(t *testing.T) {
	vm, err := New(Config{Embedded: fstest.MapFS{"mine/init.lua": {Data: []byte(`error("odd")`)}}})
	require.NoError(t, err)
	_, err = vm.Stubs(context.Background())
	require.ErrorContains(t, err, `module "embedded.mine": `)
	require.ErrorContains(t, err, "odd")
	require.NoError(t, vm.Close())
}
