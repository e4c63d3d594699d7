package spec

import "embed"

// FS holds the specs, so that knl vendor can write those of a module beside it.
//
//go:embed *_spec.lua
var FS embed.FS
