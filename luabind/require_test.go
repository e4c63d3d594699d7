package luabind

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

// lshape is there whatever the host embeds, and is one module by all its names.
func TestEveryVMHasLshape(t *testing.T) {
	for name, config := range map[string]Config{
		"without modules of its own": {},
		"beside modules of its own":  {Embedded: fstest.MapFS{"mine.lua": {Data: []byte("return 1")}}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{"true", "true", "true"}, eval(t, newVM(t, config), `
				local lshape = require("lshape")
				return lshape.check == require("lshape.check"),
					require("embedded.lshape").check == require("embedded.lshape.check"),
					lshape.check == require("embedded.lshape").check`))
		})
	}
}

func TestPlacesNameTheModuleOfAFile(t *testing.T) {
	vm := newVM(t, Config{Embedded: fstest.MapFS{
		"pack/init.lua":  {Data: []byte(`return package.places["embedded/pack/init.lua"]`)},
		"pack/inner.lua": {Data: []byte(`return {}`)},
	}})
	assert.Equal(t, []string{"pack", "pack.inner", "nil"}, eval(t, vm, `
		local own = require("pack") -- while it loads, too
		require("embedded.pack.inner")
		return own, package.places["embedded/pack/inner.lua"], package.places["test.lua"]`))
}

// A spec isolates a module by taking it out of package.loaded.
func TestRequireAgain(t *testing.T) {
	vm := newVM(t, Config{Embedded: fstest.MapFS{
		"counted.lua": {Data: []byte(`runs = (runs or 0) + 1 return { run = runs }`)},
	}})
	assert.Equal(t, []string{"1", "1", "2", "2", "2"}, eval(t, vm, `
		local first = require("counted")
		local other = require("embedded.counted")
		package.loaded["counted"] = nil
		local again = require("counted")
		return first.run, other.run, again.run, require("counted").run, runs`))
}

// The host's modules outlive a script that clears the table of modules.
func TestHostModulesStay(t *testing.T) {
	assert.Equal(t, []string{"true", "true"}, eval(t, newVM(t, Config{}), `
		local std, task = require("std"), require("std.task")
		for name in pairs(package.loaded) do package.loaded[name] = nil end
		return std == require("std"), task == require("std.task")`))
}
