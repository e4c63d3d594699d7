package shapes

import _ "embed" // of TypesSource

// TypesSource is the Lua chunk that writes the LuaCATS stubs of modules.
//
//go:embed types.lua
var TypesSource string
