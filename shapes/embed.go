package shapes

import "embed"

// FS holds require("lshape"), rooted where require looks: lshape.check is
// lshape/check.lua. Every VM of luabind finds it behind the files of a project.
//
//go:embed lshape/*.lua
var FS embed.FS
