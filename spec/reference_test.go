package spec

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/luabind"
)

// TestReference holds docs/reference.md against what the modules declare.
// UPDATE=1 in the environment writes it anew.
func TestReference(t *testing.T) {
	var modules []*luabind.Module
	modules = append(modules, luabind.KnlModules(&luabind.Kernel{})...)
	modules = append(modules, luabind.PortsModule(&luabind.Ports{}))
	modules = append(modules, luabind.Std(luabind.StdOptions{})...)
	var b strings.Builder
	b.WriteString("# Reference\n\nEvery function a script can reach, as the modules declare it; `require(\"tools\")` is\nin `lua/tools`, the words of a spec in `lua/spec`. `?` marks what may be left out.\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", m.Name, m.Doc)
		m.Walk(func(place string, f *luabind.Func) {
			b.WriteString("\n" + strings.TrimRight("**`"+f.Signature(place)+"`** "+f.Doc, " ") + "\n")
			for _, a := range f.Args {
				describe(&b, "", a)
			}
		})
	}
	const path = "../docs/reference.md"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(have), "UPDATE=1 go test ./spec -run TestReference writes it anew")
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
