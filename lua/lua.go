// Package lua holds the Lua modules that ship with knl, as the files they are:
// require("tools") finds tools/init.lua here, require("spec") spec/init.lua. A
// file of the same name in the script's folder or in the project's lua folder
// stands in front of them.
package lua

import "embed"

// FS is rooted where require looks: the module a.b is a/b.lua or a/b/init.lua.
//
//go:embed policy/*.lua spec/*.lua supervisor/*.lua tools/*.lua
var FS embed.FS
