// Package shapes says what Lua values look like: require("lshape"), which the
// scripts see, and the shapes of the kernel's own values, each made from the Go
// type that it describes.
//
//	Schema    a schema, as plain data                                   schema.go
//	Form      how a Go struct reaches Lua: names, order, what is left out   form.go
//	ParseType reads a LuaCATS type as a schema                         luacats.go
//	Kernel    the shapes of the kernel's values, by name               kernel.go
//	FS        the Lua side                                             embed.go
//
// One declaration serves three: the host makes tables of a [Form], the checks
// of dev mode hold values against the schema of the same Form, and `knl types`
// prints it.
//
//	I1 one name  a field of a published struct is named once: in its Form
//	I2 closed    a word of a closed list stands in the kernel's own list of it
package shapes
