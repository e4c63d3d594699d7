package spec

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/lua"
	"github.com/knl-run/knl/luabind"
	"github.com/knl-run/knl/shapes"
)

// hostModuleList answers the modules that Go makes, in the order of the
// reference.
func hostModuleList() (modules []*luabind.Module) {
	modules = append(modules, luabind.KnlModules(&luabind.Kernel{})...)
	modules = append(modules, luabind.PortsModule(&luabind.Ports{}))
	modules = append(modules, luabind.MCPModule(&luabind.MCP{}))
	return append(modules, luabind.Std(luabind.StdOptions{})...)
}

const referenceHead = "# Reference\n\n" +
	"Every function a script can reach, as its module declares it: first the modules that\n" +
	"are made in Go, then those that are written in Lua, `globals` being the words of a spec\n" +
	"file. `?` marks what may be left out. `knl types` writes all of it for an editor.\n"

func isHostModule(name string) bool {
	return slices.ContainsFunc(hostModuleList(), func(m *luabind.Module) bool {
		root, _, _ := strings.Cut(m.Name, ".")
		return root == name
	})
}

// TestReference holds docs/reference.md against what the modules declare.
// UPDATE=1 in the environment writes it anew.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, m := range hostModuleList() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", m.Name, m.Doc)
		m.Walk(func(place string, f *luabind.Func) {
			b.WriteString("\n" + strings.TrimRight("**`"+f.Signature(place)+"`** "+f.Doc, " ") + "\n")
			for _, a := range f.Args {
				describe(&b, "", a)
			}
		})
	}
	files := stubs(t)
	known := typesIn(t, files)
	for _, f := range files {
		if m := newLuaModule(t, f, known); m.text.Len() > 0 && !isHostModule(f.Name) {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n%s", f.Name, m.about, m.text.String())
		}
	}
	b.WriteString("\n## Types\n\nThe tables that knl and ports take and answer; `require(\"knl\").shapes` holds them as\nschemas.\n\n```lua\n" + types(t) + "```\n")
	const path = "../docs/reference.md"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(have), "UPDATE=1 go test ./spec -run TestReference writes it anew")
}

// types answers the classes and aliases of knl, ports and mcp, as knl types writes
// them.
func types(t *testing.T) string {
	var b strings.Builder
	for _, f := range stubs(t) {
		if f.Name != "knl" && f.Name != "ports" && f.Name != "mcp" {
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

// luaModule is the part of the reference about one module that is written in Lua,
// read off its stubs.
type luaModule struct {
	about  string
	text   strings.Builder
	known  map[string]bool
	fields map[string][]luaField // of the classes of the module
}

// luaField is a line "---@param" or "---@field".
type luaField struct{ name, typ, doc string }

var (
	stubFunction = regexp.MustCompile(`^(?:local )?function ([\w.:]+)\(.*\) end$`)
	specWord     = regexp.MustCompile(`^spec\.(?:assert\.|describe$|it$|before_each$|after_each$|pending$|tags$|spy$|stub$)`) // a global
	stubField    = regexp.MustCompile(`^---@(?:param|field) ([\w.]+\??|\["[^"]*"\]\??) (.*)$`)
)

func newLuaModule(t *testing.T, f luabind.Stubs, known map[string]bool) *luaModule {
	m := &luaModule{about: luaAbout(t, f.Name), known: known, fields: map[string][]luaField{}}
	for _, block := range strings.Split(f.Text, "\n\n") {
		lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
		for i, line := range lines {
			if class, ok := strings.CutPrefix(line, "---@class "); ok {
				m.fields[class] = m.read(lines[i+1:])
			}
		}
		if fn := stubFunction.FindStringSubmatch(lines[len(lines)-1]); fn != nil && !specWord.MatchString(fn[1]) {
			m.function(fn[1], lines)
		}
	}
	return m
}

// luaAbout answers the first sentence of the file of a module.
func luaAbout(t *testing.T, name string) string {
	if name == "globals" {
		return "The words of a spec file. Any name of an assertion may be said with is, are, was, has, " +
			"have\nor does in front, joined by `_` or a dot; not or no turns it round."
	}
	path := strings.ReplaceAll(name, ".", "/")
	for _, lib := range []fs.FS{lua.FS, shapes.FS} {
		for _, tail := range []string{"/init.lua", ".lua"} {
			if text, err := fs.ReadFile(lib, path+tail); err == nil {
				first, _, _ := strings.Cut(string(text), "\n")
				_, about, ok := strings.Cut(first, ": ")
				require.True(t, ok, "%s%s opens with %q", path, tail, first)
				return strings.ToUpper(about[:1]) + about[1:]
			}
		}
	}
	return "" // a part of one that stands here whole
}

// read reads the parameters, or the fields, among the lines.
func (m *luaModule) read(lines []string) (list []luaField) {
	for _, line := range lines {
		if f := stubField.FindStringSubmatch(line); f != nil {
			p := &cats{text: f[2], known: m.known}
			p.union()
			doc := strings.TrimPrefix(strings.TrimSpace(p.text), "@")
			list = append(list, luaField{f[1], strings.TrimSuffix(f[2], p.text), doc})
		}
	}
	return list
}

func (m *luaModule) function(place string, lines []string) {
	var doc string
	var returns, names []string
	params := m.read(lines)
	for _, p := range params {
		names = append(names, p.name)
	}
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "--- "); ok {
			doc = text
		} else if text, ok := strings.CutPrefix(line, "---@return "); ok {
			returns = append(returns, text)
		}
	}
	signature := place + "(" + strings.Join(names, ", ") + ")"
	if len(returns) > 0 {
		signature += " -> " + strings.Join(returns, ", ")
	}
	fmt.Fprintf(&m.text, "\n**`%s`** %s\n", signature, doc)
	for _, p := range params {
		m.item("", p)
	}
}

// item writes a parameter, and the fields of the options that it is.
func (m *luaModule) item(indent string, f luaField) {
	line := fmt.Sprintf("%s- `%s: %s` %s", indent, f.name, f.typ, f.doc)
	m.text.WriteString(strings.TrimRight(line, " ") + "\n")
	for _, field := range m.fields[strings.TrimSuffix(f.typ, "[]")] {
		m.item(indent+"  ", field)
	}
}
