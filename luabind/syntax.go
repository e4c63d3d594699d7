package luabind

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/gopher-lua/ast"
)

// What the library's compiler gets wrong is written another way before it sees
// it: assignments and what else is a statement (assign.go), loops (jumps.go), tables
// (constructor.go), and here numerals, which it reads as Go's: 0010 as eight, 1e as
// no number.

var statements = reflect.TypeFor[[]ast.Stmt]()

// maxConstantWork bounds what the compiler spends on the constants of a function:
// it looks for each among all that came before. This is about a second.
const maxConstantWork = 200e6

// mender mends the syntax of a chunk.
type mender struct {
	name              string
	pool              *pool // of the function that is walked
	functions, breaks int   // so far
}

// pool is the constants of a function, each with its place.
type pool struct {
	outer *pool
	place map[string]int
	work  int
}

// asMeant answers chunk written so that it is compiled as it is meant, or where it
// is no Lua after all.
func asMeant(name string, chunk []ast.Stmt) (out []ast.Stmt, err error) {
	defer func() {
		if r := recover(); r != nil {
			fault, ours := r.(*SyntaxError)
			if !ours {
				panic(r)
			}
			err = fault
		}
	}()
	m := &mender{name: name, pool: &pool{place: map[string]int{}}}
	m.below(reflect.ValueOf(&chunk))
	return chunk, nil
}

// fail ends the work.
func (m *mender) fail(at ast.PositionHolder, format string, args ...any) {
	panic(&SyntaxError{fmt.Sprintf("%s:%d: ", m.name, at.Line()) + fmt.Sprintf(format, args...)})
}

// below mends what v holds, from the inside out.
func (m *mender) below(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		m.below(v.Elem())
		if table, ok := v.Interface().(*ast.TableExpr); ok && inParts(table) {
			v.Set(reflect.ValueOf(builtInParts(table)))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			m.node(v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			m.below(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			m.below(v.Index(i))
		}
		if v.Type() == statements {
			mendStatements(v)
		}
	}
}

// node mends one node and those below it.
func (m *mender) node(v reflect.Value) {
	functions, breaks := m.functions, m.breaks
	switch n := v.Interface().(type) {
	case *ast.BreakStmt:
		m.breaks++
	case *ast.FunctionExpr:
		m.functions++
		m.pool = &pool{outer: m.pool, place: map[string]int{}}
		m.below(v.Elem())
		m.pool = m.pool.outer
		return
	case *ast.NumberExpr:
		m.numeral(n)
	case *ast.StringExpr:
		m.constant(n, "s"+n.Value)
	case *ast.IdentExpr:
		m.constant(n, "s"+n.Value) // the name of a global is one
	case *ast.FuncCallExpr:
		m.constant(n, "s"+n.Method)
	}
	m.below(v.Elem())
	switch n := v.Interface().(type) {
	case *ast.TableExpr:
		mendFields(n)
	case *ast.LocalAssignStmt:
		mendLocalFunction(n)
	default:
		mendLoop(n, m.functions > functions && m.breaks > breaks)
	}
}

// numeral writes a number so that Go reads what Lua means.
func (m *mender) numeral(n *ast.NumberExpr) {
	value, ok := numeral(n.Value)
	if !ok {
		m.fail(n, "malformed number near %q", strings.TrimFunc(n.Value, endsNumeral)) // the scanner keeps what ended it
	}
	n.Value = strconv.FormatFloat(value, 'g', -1, 64)
	m.constant(n, "n"+n.Value)
}

func endsNumeral(r rune) bool { return r == utf8.RuneError || r <= ' ' }

// constant counts the use of a constant.
func (m *mender) constant(at ast.PositionHolder, key string) {
	p := m.pool
	place, known := p.place[key]
	if !known {
		place = len(p.place)
		p.place[key] = place
	}
	if p.work += place; p.work > maxConstantWork {
		m.fail(at, "a function with %d different constants, too many to compile; keep data in a file and read it with std.json", len(p.place))
	}
}

// holds says whether v holds a node that look finds; it does not look below what
// look skips.
func holds(v reflect.Value, look func(node any) (found, skip bool)) bool {
	switch v.Kind() {
	case reflect.Interface:
		return !v.IsNil() && holds(v.Elem(), look)
	case reflect.Pointer:
		if v.IsNil() {
			return false
		}
		found, skip := look(v.Interface())
		return found || !skip && holds(v.Elem(), look)
	case reflect.Struct:
		for i := range v.NumField() {
			if holds(v.Field(i), look) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if holds(v.Index(i), look) {
				return true
			}
		}
	}
	return false
}

// at gives node the lines of another.
func at[N ast.PositionHolder](like ast.PositionHolder, node N) N {
	node.SetLine(like.Line())
	node.SetLastLine(like.LastLine())
	return node
}
