package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goFile is one parsed file of the module.
type goFile struct {
	name, dir string
	test      bool
	imports   []string
	lines     int
	set       *token.FileSet
	ast       *ast.File
}

func goFiles(t *testing.T) []*goFile {
	t.Helper()
	var out []*goFile
	tree(t, func(name string) {
		if path.Ext(name) != ".go" || fixture(name) {
			return
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments)
		require.NoError(t, err)
		f := &goFile{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), set: set, ast: parsed}
		f.lines = set.File(parsed.Package).LineCount()
		for _, imp := range parsed.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			f.imports = append(f.imports, p)
		}
		out = append(out, f)
	})
	return out
}

func (f *goFile) line(at token.Pos) int { return f.set.Position(at).Line }

// maxLines is the length from which a file says why it is one file.
const maxLines = 400

// long is how a long file's first comment says so.
var long = regexp.MustCompile(`(?i)\blong (file )?because\b`)

func TestHouseFilesAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.lines <= maxLines || len(f.ast.Comments) > 0 && long.MatchString(f.ast.Comments[0].Text()) {
			continue
		}
		t.Errorf("%s: %d lines, want at most %d: split it by noun, or open it with a comment that says \"long because …\"", f.name, f.lines, maxLines)
	}
}

// banned are words that a text never uses, and what stands there instead.
var banned = map[string]string{
	"failed to": `say what happened: "reading x: no such file"`,
	"unable to": `say what happened: "reading x: no such file"`,
}

// TestHouseErrorText looks at the literals of the files that ship.
func TestHouseErrorText(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			for word, instead := range banned {
				if strings.Contains(strings.ToLower(lit.Value), word) {
					t.Errorf("%s:%d: says %q: %s", f.name, f.line(lit.Pos()), word, instead)
				}
			}
			return true
		})
	}
}

// TestHouseNothingLeftOver finds notes of work not done, in Go and Lua.
func TestHouseNothingLeftOver(t *testing.T) {
	note := regexp.MustCompile(`(//|--|/\*).*\b(TO` + `DO|FIX` + `ME|X` + `XX|HA` + `CK)\b`)
	tree(t, func(name string) {
		if ext := path.Ext(name); ext != ".go" && ext != ".lua" {
			return
		}
		for i, line := range strings.Split(read(t, name), "\n") {
			if m := note.FindStringSubmatch(line); m != nil {
				t.Errorf("%s:%d: has a %s: do it now, or file it", name, i+1, m[2])
			}
		}
	})
}

// vague are names that say nothing about what is inside.
var vague = regexp.MustCompile(`(?i)^(utils?|common|helpers?|manager|misc)$`)

func TestHouseNames(t *testing.T) {
	for _, f := range goFiles(t) {
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.name), ".go"), "_test")
		if vague.MatchString(stem) || vague.MatchString(f.ast.Name.Name) {
			t.Errorf("%s: is named for nothing; name it for its noun", f.name)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && regexp.MustCompile(`^Get([A-Z]|$)`).MatchString(fn.Name.Name) {
				t.Errorf("%s:%d: %s: leave out Get", f.name, f.line(fn.Pos()), fn.Name.Name)
			}
		}
	}
}

// TestHouseDocs wants every package explained, and every exported name of the
// files that ship documented: the comment opens with the name and ends with a
// period.
func TestHouseDocs(t *testing.T) {
	explained := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		explained[f.dir] = explained[f.dir] || f.ast.Doc != nil
		for _, d := range f.ast.Decls {
			for _, u := range undocumented(d) {
				t.Errorf("%s:%d: %s: %s", f.name, f.line(u.at), u.name, u.why)
			}
		}
	}
	for dir, ok := range explained {
		if !ok {
			t.Errorf("%s: package has no comment; write its essay in doc.go", dir)
		}
	}
}

type undoc struct {
	name, why string
	at        token.Pos
}

func undocumented(d ast.Decl) (out []undoc) {
	check := func(id *ast.Ident, named bool, docs ...*ast.CommentGroup) {
		if !id.IsExported() {
			return
		}
		if why := docFault(id.Name, named, docs...); why != "" {
			out = append(out, undoc{id.Name, why, id.Pos()})
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || exportedReceiver(d.Recv) {
			check(d.Name, true, d.Doc)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				check(s.Name, true, s.Doc, d.Doc)
			case *ast.ValueSpec:
				for _, id := range s.Names { // a group may be explained as one
					check(id, len(d.Specs) == 1, s.Doc, s.Comment, d.Doc)
				}
			}
		}
	}
	return out
}

// docFault says what is wrong with the first comment that is there.
func docFault(name string, named bool, docs ...*ast.CommentGroup) string {
	for _, doc := range docs {
		if doc == nil {
			continue
		}
		text := strings.TrimSpace(doc.Text())
		switch {
		case !named:
			return ""
		case !strings.HasPrefix(text, name+" ") && !strings.HasPrefix(text, "Deprecated"):
			return "comment opens with something else, want the name"
		case !strings.ContainsAny(text[len(text)-1:], ".:)") && !strings.Contains(text, "\n\t"):
			return "comment does not end with a period"
		}
		return ""
	}
	return "is exported and has no comment"
}

func exportedReceiver(recv *ast.FieldList) bool {
	t := recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
