package shapes

import _ "embed" // of typesSource and assertSource

var (
	//go:embed types.lua
	typesSource string
	//go:embed types_assert.lua
	assertSource string
)

// TypesSource is the Lua chunk that writes the LuaCATS stubs of modules. It is
// made of two files; what the second answers is a local of the first.
var TypesSource = "local asserts = (function()\n" + assertSource + "end)()\n" + typesSource
