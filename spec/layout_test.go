package spec

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's folder, seen from this package.
const root = ".."

// layout says which files may stand in which folder; a pattern is matched
// against the file's name. What lies below a folder named testdata, and below
// examples, is fixture and free of form. Folders not listed hold no files.
var layout = map[string][]string{
	".":                      {"go.mod", "go.sum", "Makefile", "*.md", "LICENSE", ".gitignore", ".editorconfig"},
	".ci":                    {"run"},
	"cmd/knl":                {"*.go"},
	"kernel":                 {"*.go"},
	"kernel/store":           {"*.go"},
	"kernel/store/storetest": {"*.go"},
	"kernel/pebblestore":     {"*.go"},
	"kernel/sockstore":       {"*.go"},
	"port":                   {"*.go"},
	"port/internal/field":    {"*.go"},
	"port/script":            {"*.go"},
	"port/internal/change":   {"*.go"},
	"port/cassette":          {"*.go"},
	"port/replay":            {"*.go"},
	"port/anthropic":         {"*.go"},
	"port/openai":            {"*.go"},
	"port/internal/wire":     {"*.go"},
	"port/wiretest":          {"*.go"},
	"luabind":                {"*.go"},
	"lua":                    {"lua.go", "lua_test.go", "*.lua"},
	"lua/policy":             {"*.lua"},
	"lua/prompt":             {"*.lua"},
	"lua/spec":               {"*.lua"},
	"lua/supervisor":         {"*.lua"},
	"lua/tools":              {"*.lua"},
	"shapes":                 {"*.go", "*.lua"},
	"shapes/lshape":          {"*.lua"},
	"spec":                   {"*.go", "*_spec.lua"},
	"docs":                   {"*.md"},
}

// rule says what the Go files of a package may import beside the standard
// library: packages of this module by their folder, others by import path (a
// path ending in "/..." names its subpackages too).
type rule struct {
	may   string // every file
	tests string // _test.go files, and packages that only tests import
	never string // packages of the standard library that even it may not import
}

// anywhere is what every test may import.
const anywhere = "github.com/stretchr/testify/... pgregory.net/rapid go.uber.org/goleak"

// imports is the table of the import directions. A package that is not listed
// may not exist.
var imports = map[string]rule{
	"kernel": {
		may:   "kernel/store github.com/go-json-experiment/json/... github.com/oklog/ulid/v2 github.com/santhosh-tekuri/jsonschema/v6",
		tests: "port port/script kernel/store/storetest",
		never: "os os/exec net net/http io/ioutil",
	},
	"kernel/store":           {tests: "kernel/store/storetest", never: "os net"},
	"kernel/store/storetest": {may: "kernel/store github.com/stretchr/testify/require pgregory.net/rapid"},
	"kernel/pebblestore": {
		may:   "kernel/store github.com/cockroachdb/pebble/v2/... github.com/gofrs/flock",
		tests: "kernel kernel/store/storetest",
	},
	"kernel/sockstore": {
		may:   "kernel/store kernel/pebblestore github.com/gofrs/flock",
		tests: "kernel kernel/store/storetest github.com/cockroachdb/pebble/v2/vfs", // Options.FS is one
	},
	"port": {
		may:   "kernel port/internal/field github.com/go-json-experiment/json/...",
		tests: "kernel/store",
	},
	"port/internal/field":  {may: "github.com/go-json-experiment/json/..."},
	"port/script":          {may: "kernel port port/internal/field", tests: "kernel/store"},
	"port/internal/change": {may: "kernel port/internal/field"},
	"port/cassette": {
		may:   "kernel port port/internal/change port/internal/field github.com/go-json-experiment/json/...",
		tests: "kernel/store port/script",
	},
	"port/anthropic": {
		may:   "kernel port port/internal/field port/internal/wire github.com/anthropics/anthropic-sdk-go/v2/... github.com/go-json-experiment/json/...",
		tests: "kernel/store port/wiretest",
	},
	"port/wiretest": {
		may:   "port",
		tests: "kernel kernel/store github.com/anthropics/anthropic-sdk-go/v2/... github.com/openai/openai-go/v3/...",
	},
	"port/internal/wire": {may: "kernel port"},
	"port/openai": {
		may: "kernel port port/internal/field port/internal/wire github.com/tiktoken-go/tokenizer " +
			"github.com/go-json-experiment/json/...",
		tests: "kernel/store port/wiretest",
	},
	"port/replay": {may: "kernel port port/internal/change", tests: "kernel/store port/script"},
	"shapes":      {may: "kernel"},
	"lua":         {},
	"luabind": {
		may: "kernel kernel/store port port/cassette port/replay port/script shapes github.com/yuin/gopher-lua/... layeh.com/gopher-luar " +
			"github.com/go-json-experiment/json/... github.com/modelcontextprotocol/go-sdk/mcp " +
			"github.com/modelcontextprotocol/go-sdk/jsonrpc github.com/santhosh-tekuri/jsonschema/v6 golang.org/x/sys/unix",
		tests: "kernel/pebblestore lua",
	},
	"cmd/knl": {
		may: "kernel kernel/store kernel/pebblestore kernel/sockstore luabind lua port port/anthropic port/openai port/replay port/script shapes spec " +
			"github.com/spf13/cobra github.com/spf13/pflag charm.land/fang/v2 charm.land/lipgloss/v2/... github.com/charmbracelet/colorprofile " +
			"github.com/charmbracelet/x/term github.com/charmbracelet/x/ansi github.com/modelcontextprotocol/go-sdk/jsonrpc github.com/modelcontextprotocol/go-sdk/mcp " +
			"golang.org/x/sys/unix",
		tests: "port/wiretest github.com/rogpeppe/go-internal/testscript",
	},
	"spec": {
		tests: "kernel kernel/store kernel/pebblestore kernel/sockstore luabind lua port port/anthropic port/openai port/script shapes " +
			"github.com/rogpeppe/go-internal/testscript github.com/yuin/gopher-lua/...",
	},
}

// requires says which modules the Lua files of a folder may require: the host's
// own modules everywhere, else the first part of the name ("policy" covers
// "policy.window").
var requires = map[string]string{
	"lua/policy":     "lshape policy.canonical policy.cuts policy.log policy.shapes policy.space policy.toolset",
	"lua/prompt":     "lshape policy prompt",
	"lua/spec":       "lshape spec",
	"lua/supervisor": "lshape supervisor",
	"lua/tools":      "lshape tools",
	"shapes/lshape":  "lshape",
}

// hostModules are the modules that Go makes; every Lua file may require them.
const hostModules = "knl std ports mcp"

// built are the endings of what go test leaves behind; git ignores it too.
var built = map[string]bool{".test": true, ".out": true, ".prof": true}

// tree calls visit with every file of the module, by its path from the root.
func tree(t *testing.T, visit func(name string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(p, root), string(filepath.Separator)))
		switch {
		case !d.IsDir() && !built[path.Ext(name)]:
			visit(name)
		case !d.IsDir():
		case name == ".git" || name == "bin" || d.Name() == ".knl":
			return fs.SkipDir
		}
		return nil
	})
	require.NoError(t, err)
}

// fixture says whether a file is data of a test or part of an example.
func fixture(name string) bool {
	return strings.HasPrefix(name, "examples/") || strings.Contains(name, "testdata/")
}

func TestLayout(t *testing.T) {
	tree(t, func(name string) {
		if !fixture(name) && !placed(name) {
			t.Error(misplaced(name))
		}
	})
}

func placed(name string) bool {
	for _, pattern := range layout[path.Dir(name)] {
		if ok, _ := path.Match(pattern, path.Base(name)); ok {
			return true
		}
	}
	return false
}

func misplaced(name string) string {
	dir := path.Dir(name)
	if patterns, ok := layout[dir]; ok {
		return fmt.Sprintf("%s: %s/ holds %s; move the file, or list it in layout with the reason in RATIONALE.md",
			name, dir, strings.Join(patterns, " "))
	}
	return fmt.Sprintf("%s: folder %s is not in layout; put the file where its noun lives, or list the folder here and in imports", name, dir)
}

func TestImports(t *testing.T) {
	for _, f := range goFiles(t) {
		r, listed := imports[f.dir]
		if !listed {
			t.Errorf("%s: package %s is not in imports; say there what it may import", f.name, f.dir)
			continue
		}
		for _, imp := range f.imports {
			if why := r.refuses(imp, f); why != "" {
				t.Errorf("%s: imports %s, %s", f.name, imp, why)
			}
		}
	}
}

const module = "github.com/knl-run/knl"

// refuses answers why f may not import imp, or "". A test may always import
// the package it tests.
func (r rule) refuses(imp string, f *goFile) string {
	allowed := r.may
	if f.test {
		allowed += " " + r.tests + " " + anywhere + " " + f.dir
	}
	local, inside := strings.CutPrefix(imp, module+"/")
	switch {
	case inside && covers(allowed, local):
	case inside:
		return "which points against the import table; move the code to where both may see it, or pass a value or an interface in"
	case !strings.Contains(strings.Split(imp, "/")[0], "."):
		if !f.test && covers(r.never, imp) {
			return "which this package has handed to its caller; take it as an argument"
		}
	case !covers(allowed, imp):
		return fmt.Sprintf("want one of: %s; a new module takes a line in imports and one in RATIONALE.md", strings.TrimSpace(allowed))
	}
	return ""
}

func covers(list, imp string) bool {
	for _, entry := range strings.Fields(list) {
		below, all := strings.CutSuffix(entry, "/...")
		if entry == imp || all && (imp == below || strings.HasPrefix(imp, below+"/")) {
			return true
		}
	}
	return false
}

// TestImportsOfLua holds the shipped Lua modules against requires. The init.lua
// of a folder may require what lies below it.
func TestImportsOfLua(t *testing.T) {
	call := regexp.MustCompile(`require\s*\(?\s*["']([\w.]+)["']`)
	tree(t, func(name string) {
		dir := path.Dir(name)
		allowed, ruled := requires[dir]
		if !ruled || path.Ext(name) != ".lua" || strings.HasSuffix(name, "_spec.lua") {
			return
		}
		if path.Base(name) == "init.lua" {
			allowed += " " + path.Base(dir)
		}
		allowed += " " + hostModules
		for _, m := range call.FindAllStringSubmatch(read(t, name), -1) {
			first, _, _ := strings.Cut(m[1], ".")
			if !covers(allowed, first) && !covers(allowed, m[1]) {
				t.Errorf("%s: requires %q, want one of: %s; take what it needs as an option", name, m[1], allowed)
			}
		}
	})
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}
