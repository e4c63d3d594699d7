package spec

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/parse"

	"github.com/knl-run/knl/luabind"
)

func stubs(t *testing.T) []luabind.Stubs {
	t.Helper()
	files, err := specVM(t, ".", false).Stubs(context.Background())
	require.NoError(t, err)
	return files
}

// exported are the places of what every module publishes, by the file that must
// hold them: "knl.open()", "session:append()", "knl.version".
const exported = `
local out = {}
local function file(name)
  out[name] = out[name] or require("knl").array()
  return out[name]
end
local function walk(list, place, exports, entries)
  for name, entry in pairs(entries) do
    local at = place == "" and name or place .. "." .. name
    if type(exports[name]) == "table" and entry.members then
      list[#list + 1] = at
      if at == "assert" then list[#list + 1] = "assert()" end -- it is called too
      walk(list, at, exports[name], entry.members)
    else
      list[#list + 1] = at .. (entry.args and type(exports[name]) ~= "table" and "()" or "")
    end
  end
end
for _, name in ipairs{ "knl", "std", "ports", "mcp", "tools", "policy", "supervisor", "spec", "lshape" } do
  local module = require(name)
  local shapes = name == "lshape" and require("lshape.shapes") or module.shapes
  walk(file(name), name, module, shapes.api)
  for kind, methods in pairs(shapes.objects or {}) do
    for method, entry in pairs(methods) do
      if entry.args and method ~= "__call" then
        file(name)[#file(name) + 1] = kind:match("[^.]+$") .. ":" .. method .. "()"
      end
    end
  end
  for other, entries in pairs(shapes.modules or {}) do
    if entries.args then
      file(other)[1] = other:match("[^.]+$") .. "()"
    else
      walk(file(other), other:match("[^.]+$"), {}, entries)
    end
  end
end
local words = {}
require("spec").start(words)
local api = {}
for word in pairs(words) do api[word] = require("spec").shapes.api[word] end
walk(file("globals"), "", words, api)
file("globals")[#file("globals") + 1] = "arg"
file("globals")[#file("globals") + 1] = "std"
return out`

// TestStubsAreWhatModulesExport: every export has a stub, every stub an export.
func TestStubsAreWhatModulesExport(t *testing.T) {
	out, err := specVM(t, ".", false).RunString(context.Background(), "exported", exported)
	require.NoError(t, err)
	text, err := luabind.AppendJSON(nil, out[0], nil)
	require.NoError(t, err)
	var want map[string][]string
	require.NoError(t, json.Unmarshal(text, &want))
	fn := regexp.MustCompile(`(?m)^(?:local )?function ([\w.:]+)\(.*\) end$`)
	value := regexp.MustCompile(`(?m)^([\w.]+) = (?:nil|\{\})$`)
	got := map[string][]string{}
	for _, f := range stubs(t) {
		for _, m := range fn.FindAllStringSubmatch(f.Text, -1) {
			got[f.Name] = append(got[f.Name], m[1]+"()")
		}
		for _, m := range value.FindAllStringSubmatch(f.Text, -1) {
			got[f.Name] = append(got[f.Name], m[1])
		}
	}
	for name := range want {
		slices.Sort(want[name])
		slices.Sort(got[name])
	}
	assert.Equal(t, want, got)
}

// TestStubsAreLua: each file is Lua that an editor can read.
func TestStubsAreLua(t *testing.T) {
	for _, f := range stubs(t) {
		_, err := parse.Parse(strings.NewReader(f.Text), f.Name)
		assert.NoError(t, err)
		first, _, _ := strings.Cut(f.Text, "\n")
		assert.Equal(t, "---@meta "+f.Name, first)
	}
}

// typesIn answers the types that the stubs may name: Lua's, and each that they
// declare, once.
func typesIn(t *testing.T, files []luabind.Stubs) map[string]bool {
	known := map[string]bool{}
	for _, name := range strings.Fields("any nil string number integer boolean table function userdata true false") {
		known[name] = true
	}
	declared := regexp.MustCompile(`(?m)^---@(?:class|alias) ([\w.]+)`)
	for _, f := range files {
		for _, m := range declared.FindAllStringSubmatch(f.Text, -1) {
			assert.False(t, known[m[1]], "%s is declared twice", m[1])
			known[m[1]] = true
		}
	}
	return known
}

// TestAssertIsSaidAsDeclared: every word that the stubs let a spec say after
// assert leads to an assertion.
func TestAssertIsSaidAsDeclared(t *testing.T) {
	var globals string
	for _, f := range stubs(t) {
		if f.Name == "globals" {
			globals = f.Text
		}
	}
	field := regexp.MustCompile(`(?m)^---@field (\w+) (?:spec|fun)`)
	for class, value := range map[string]string{"spec.assert": "assert", "spec.spied": "assert.spy(spy())"} {
		_, block, _ := strings.Cut(globals, "---@class "+class+"\n")
		block, _, _ = strings.Cut(block, "\n\n")
		words := field.FindAllStringSubmatch(block, -1)
		assert.Greater(t, len(words), 10, class)
		for _, word := range words {
			script := fmt.Sprintf(`require("spec").start(_G) return type(%s[%q])`, value, word[1])
			out, err := specVM(t, ".", false).RunString(context.Background(), "said", script)
			assert.NoError(t, err, word[1])
			assert.NotEmpty(t, out, word[1])
		}
	}
	for _, word := range []string{"are", "is_not_nil", "has_no", "has_no_errors", "spy", "is_not", "errors"} {
		assert.Contains(t, globals, "---@field "+word+" ")
	}
	assert.Contains(t, globals, "---@generic T\n---@param v? T\n")
}

// TestStubsParse reads every annotation by the grammar of LuaCATS, and wants
// every type in them to be Lua's or declared in the stubs.
func TestStubsParse(t *testing.T) {
	files := stubs(t)
	known := typesIn(t, files)
	n := 0
	for _, f := range files {
		for i, line := range strings.Split(f.Text, "\n") {
			if !strings.HasPrefix(line, "---@") {
				continue
			}
			n++
			if err := annotation(line, known); err != nil {
				t.Errorf("%s:%d: %s: %s", f.Name, i+1, line, err)
			}
		}
	}
	require.Greater(t, n, 500)
}

// TestGrammarIsStrict: the reader of annotations refuses what is none.
func TestGrammarIsStrict(t *testing.T) {
	known := map[string]bool{"string": true, "a.b": true, "any": true, "true": true}
	for _, line := range []string{
		"---@meta knl", "---@class a.b", "---@class a.b: a.b", "---@field x? string @what it is", "---@field x string",
		`---@alias a.b "x"|"y"`, "---@param x? (string|a.b)[] words", "---@param ... string", "---@return string?", "---@return any ...",
		"---@type table<string, { x: string, y?: [string, any] }>", "---@overload fun(a: string, b?: any, ...: any): string, ...",
		"---@return (fun(): string)?", "---@return fun()", "---@return { ok: true }",
		`---@field ["x y"]? string`, `---@type { ["end"]: any }`, "---@generic T",
	} {
		assert.NoError(t, annotation(line, known), line)
	}
	for _, line := range []string{
		"---@metaknl", "---@class", "---@class a b", "---@field x", "---@field x strin", "---@field x string what", "---@field x? string|",
		"---@param x: string", "---@return string??", "---@return string,", "---@return strin", "---@return fun(a)", "---@return fun(a: string",
		"---@return { x string }", "---@return { x: string, }", "---@return [string", "---@return table<string>", `---@return "x`,
		"---@overload string", "---@other string", "---@return (string", "---@return string[", "---@type string string",
		`---@field ["x y] string`, "---@field [x] string", `---@field []? string`,
	} {
		assert.Error(t, annotation(line, known), line)
	}
}

// TestDeclarationsParse reads what the Go modules declare, by the same grammar.
func TestDeclarationsParse(t *testing.T) {
	known := typesIn(t, stubs(t))
	var each func(place string, args []luabind.Arg)
	each = func(place string, args []luabind.Arg) {
		for _, a := range args {
			if err := annotation("---@type "+a.LuaType(), known); err != nil {
				t.Errorf("%s(%s): %s", place, a.Name, err)
			}
			each(place+"."+a.Name, a.Fields)
		}
	}
	for _, m := range hostModuleList() {
		m.Walk(func(place string, f *luabind.Func) {
			assert.NotEmpty(t, f.Doc, "%s has no sentence", place)
			each(place, f.Args)
			if f.Returns == "" {
				return
			}
			p := &cats{text: f.Returns, known: known}
			p.returns()
			if p.space(); p.err != nil || p.text != "" {
				t.Errorf("%s returns %q: %v at %q", place, f.Returns, p.err, p.text)
			}
		})
	}
}

// annotation reads one line of LuaCATS.
func annotation(line string, known map[string]bool) error {
	word, rest, _ := strings.Cut(strings.TrimPrefix(line, "---@"), " ")
	p := &cats{text: rest, known: known}
	switch word {
	case "meta":
		p.word()
	case "generic":
		p.known[p.word()] = true
	case "class":
		p.word()
		if p.take(":") {
			p.space()
			p.known[p.word()] = true
		}
	case "field", "param":
		if p.take("..."); word == "field" || p.text == rest {
			p.key()
			p.take("?")
		}
		p.need(" ")
		p.union()
		if mark := map[string]string{"field": " @", "param": " "}[word]; strings.HasPrefix(p.text, mark) {
			return p.err
		}
	case "alias":
		p.word()
		p.need(" ")
		p.union()
	case "return":
		p.union()
		p.take(" ...")
	case "type":
		p.union()
	case "overload":
		p.need("fun(")
		p.signature()
	default:
		return fmt.Errorf("unknown annotation %q", word)
	}
	if p.err == nil && p.text != "" {
		return fmt.Errorf("got %q behind the type", p.text)
	}
	return p.err
}

// cats reads LuaCATS types from the front of text.
type cats struct {
	text  string
	known map[string]bool
	err   error
}

func (p *cats) space() { p.text = strings.TrimLeft(p.text, " ") }

func (p *cats) take(token string) bool {
	rest, ok := strings.CutPrefix(p.text, token)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *cats) need(token string) {
	if !p.take(token) && p.err == nil {
		p.err = fmt.Errorf("want %q at %q", token, p.text)
	}
}

var (
	catsName = regexp.MustCompile(`^[A-Za-z_][\w.]*\w|^[A-Za-z_]`)
	catsText = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
)

func (p *cats) word() string {
	name := catsName.FindString(p.text)
	if name == "" && p.err == nil {
		p.err = fmt.Errorf("want a name at %q", p.text)
	}
	p.text = p.text[len(name):]
	return name
}

// key = word | "[" text "]"
func (p *cats) key() {
	if !p.take("[") {
		p.word()
		return
	}
	text := catsText.FindString(p.text)
	p.need(text)
	if p.need("]"); text == "" && p.err == nil {
		p.err = fmt.Errorf("want a text at %q", p.text)
	}
}

// union = suffixed { "|" suffixed }
func (p *cats) union() {
	for p.suffixed(); p.err == nil && p.take("|"); p.suffixed() {
	}
}

// suffixed = single { "[]" } [ "?" ]
func (p *cats) suffixed() {
	for p.single(); p.err == nil && p.take("[]"); {
	}
	p.take("?")
}

func (p *cats) single() {
	switch text := catsText.FindString(p.text); {
	case p.err != nil:
	case p.take("("):
		p.union()
		p.need(")")
	case p.take("{ "):
		p.list(" }", func() {
			p.key()
			p.take("?")
			p.need(": ")
			p.union()
		})
	case p.take("["):
		p.list("]", p.union)
	case text != "":
		p.text = p.text[len(text):]
	case p.take("fun("):
		p.signature()
	case p.take("table<"):
		p.union()
		p.need(", ")
		p.union()
		p.need(">")
	default:
		if name := p.word(); p.err == nil && !p.known[name] {
			p.err = fmt.Errorf("unknown type %q", name)
		}
	}
}

// list = item { ", " item } end
func (p *cats) list(end string, item func()) {
	for item(); p.err == nil && p.take(", "); item() {
	}
	p.need(end)
}

// signature = [ parameter { ", " parameter } ] ")" [ ": " returns ]
func (p *cats) signature() {
	if !p.take(")") {
		p.list(")", func() {
			if !p.take("...") {
				p.word()
				p.take("?")
			}
			p.need(": ")
			p.union()
		})
	}
	if p.take(": ") {
		p.returns()
	}
}

// returns = type { ", " type }; "..." may end it
func (p *cats) returns() {
	for p.err == nil {
		if p.take("...") {
			return
		}
		if p.union(); !p.take(", ") {
			return
		}
	}
}
