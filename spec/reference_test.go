package spec

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/luabind"
)

// hostModuleList answers the modules that Go makes, in the order of the
// reference.
func hostModuleList() (modules []*luabind.Module) {
	modules = append(modules, luabind.KnlModules(&luabind.Kernel{})...)
	modules = append(modules, luabind.PortsModule(&luabind.Ports{}))
	return append(modules, luabind.Std(luabind.StdOptions{})...)
}

// TestReference holds docs/reference.md against what the modules declare.
// UPDATE=1 in the environment writes it anew.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Reference\n\nEvery function a script can reach, as the modules declare it; `require(\"tools\")` is\nin `lua/tools`, the words of a spec in `lua/spec`. `?` marks what may be left out.\n`knl types` writes all of it for an editor.\n")
	for _, m := range hostModuleList() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", m.Name, m.Doc)
		m.Walk(func(place string, f *luabind.Func) {
			b.WriteString("\n" + strings.TrimRight("**`"+f.Signature(place)+"`** "+f.Doc, " ") + "\n")
			for _, a := range f.Args {
				describe(&b, "", a)
			}
		})
	}
	b.WriteString("\n## Types\n\nThe tables that these functions take and answer; `require(\"knl\").shapes` holds them as\nschemas.\n\n```lua\n" + types(t) + "```\n")
	const path = "../docs/reference.md"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(have), "UPDATE=1 go test ./spec -run TestReference writes it anew")
}

// types answers the classes and aliases of knl and ports, as knl types writes
// them.
func types(t *testing.T) string {
	var b strings.Builder
	for _, f := range stubs(t) {
		if f.Name != "knl" && f.Name != "ports" {
			continue
		}
		for _, block := range strings.Split(f.Text, "\n\n") {
			last := block[strings.LastIndex(block, "\n")+1:]
			if strings.HasPrefix(last, "---@class ") || strings.HasPrefix(last, "---@alias ") || strings.HasPrefix(last, "---@field ") {
				b.WriteString(block + "\n\n")
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// describe writes what is to be said of an argument, and of its fields.
func describe(b *strings.Builder, indent string, a luabind.Arg) {
	if a.Doc == "" && len(a.Fields) == 0 {
		return
	}
	optional := ""
	if a.Optional {
		optional = "?"
	}
	line := fmt.Sprintf("%s- `%s%s: %s` %s", indent, a.Name, optional, a.LuaType(), a.Doc)
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	for _, f := range a.Fields {
		if f.Doc == "" && len(f.Fields) == 0 {
			f.Doc = " "
		}
		describe(b, indent+"  ", f)
	}
}
