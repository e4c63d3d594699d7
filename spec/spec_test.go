package spec

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
	"github.com/knl-run/knl/lua"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/port"
	"github.com/knl-run/knl/port/anthropic"
	"github.com/knl-run/knl/port/openai"
	"github.com/knl-run/knl/port/script"
)

// caseResult is one case of a spec file, as require("spec").run answers it.
type caseResult struct {
	Name, Status, Message, Traceback, File string
	Path                                   []string
	Line                                   int
}

// specFiles answers every spec file of the tree.
func specFiles(t *testing.T) (files []string) {
	tree(t, func(name string) {
		if strings.HasSuffix(name, "_spec.lua") {
			files = append(files, name)
		}
	})
	require.NotEmpty(t, files)
	return files
}

// specVM makes a VM over an empty project and a fresh store.
func specVM(t *testing.T, dir string, dev bool) *luabind.VM {
	t.Helper()
	mem := store.NewMem()
	open := func(string) (store.Store, error) { return mem, nil }
	modules := luabind.KnlModules(&luabind.Kernel{
		Open:    open,
		Options: kernel.Options{},
		Version: "0.0.0-spec",
	})
	modules = append(modules, luabind.Std(luabind.StdOptions{Log: io.Discard, Store: open})...)
	modules = append(modules, luabind.PortsModule(&luabind.Ports{Registry: port.Registry{
		script.Name: script.New(nil), anthropic.Name: anthropic.New(port.Host{}), openai.Name: openai.New(port.Host{}),
	}}))
	modules = append(modules, luabind.MCPModule(&luabind.MCP{Version: "0.0.0-spec"}))
	vm, err := luabind.New(luabind.Config{
		Embedded:  lua.FS,
		Project:   t.TempDir(),
		ScriptDir: dir,
		Modules:   modules,
		Warn:      func(text string) { t.Log(text) },
		Env: func(name string) (string, bool) {
			if name == "LSHAPE_CHECK" {
				return "1", dev
			}
			return os.LookupEnv(name)
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, vm.Close()) })
	return vm
}

// runSpec runs one spec file.
func runSpec(t *testing.T, name string, dev bool) (cases []caseResult) {
	t.Helper()
	ctx := context.Background()
	vm := specVM(t, filepath.Join(root, filepath.Dir(name)), dev)
	_, err := vm.RunString(ctx, "spec", `require("spec").start(_G)`)
	require.NoError(t, err)
	_, err = vm.RunString(ctx, name, read(t, name))
	require.NoError(t, err)
	out, err := vm.RunString(ctx, "spec", `return require("spec").run()`)
	require.NoError(t, err)
	text, err := luabind.AppendJSON(nil, out[0], nil)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &cases))
	return cases
}

// TestSpecs runs every spec file as knl spec does, with the checks of dev mode
// and without them, and then holds them against what a script can reach.
func TestSpecs(t *testing.T) {
	var described []string
	for _, mode := range []string{"dev", "prod"} {
		for _, name := range specFiles(t) {
			t.Run(mode+"/"+name, func(t *testing.T) {
				for _, c := range runSpec(t, name, mode == "dev") {
					described = append(described, c.Path[:len(c.Path)-1]...)
					if c.Status != "passed" {
						t.Errorf("%s:%d: %s\n%s\n%s", c.File, c.Line, c.Name, c.Message, c.Traceback)
					}
				}
			})
		}
	}
	t.Run("every function", func(t *testing.T) {
		for _, place := range reachable(t) {
			named := func(block string) bool { return block == place || strings.HasPrefix(block, place+" ") }
			if !slices.ContainsFunc(described, named) {
				t.Errorf("%s: has no case; write one under describe(%q, …) in the spec of its noun", place, place)
			}
		}
	})
}

// reachable answers the functions of the host modules and of the modules that
// ship, as scripts call them.
func reachable(t *testing.T) (places []string) {
	out, err := specVM(t, ".", false).RunString(context.Background(), "reach", `
		local knl = require("knl")
		local places = knl.array()
		for place in pairs(knl.api()) do places[#places + 1] = place end
		for name in pairs(require("tools")) do places[#places + 1] = "tools." .. name end
		for name in pairs(require("spec").assert) do places[#places + 1] = "assert." .. name end
		local host = { start = true, plan = true, run = true, count = true, shapes = true }
		for name in pairs(require("spec")) do places[#places + 1] = (host[name] and "spec." or "") .. name end
		return places`)
	require.NoError(t, err)
	text, err := luabind.AppendJSON(nil, out[0], nil)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &places))
	slices.Sort(places)
	require.Greater(t, len(places), 80)
	return places
}
