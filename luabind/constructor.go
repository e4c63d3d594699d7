package luabind

import (
	"reflect"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// The library's compiler stores the list of a table constructor in blocks of 50
// values. It takes a last x = f() for values of the list, loses what a call
// answers behind a full block, stores a full block again, from registers that are
// used by then, at a named field behind it, and forgets all from the 512th block
// on. mendFields mends the first; a constructor that the others would meet is
// written as
//
//	(function(...)
//	  local (list) = { v1, …, v49 }
//	  (store)((list), 50, v50, …, v98)
//	  (list)[k] = v
//	  (store)((list), 99, f())
//	  return (list)
//	end)(...)
//
// where (store) is a function of the host.

const (
	blockOfList = 50 // values that the compiler stores at once
	lastOfList  = 511 * blockOfList
)

// mendFields makes each named field take one value, as it does in Lua.
func mendFields(t *ast.TableExpr) {
	for _, f := range t.Fields {
		if f.Key == nil {
			continue
		}
		switch v := f.Value.(type) {
		case *ast.FuncCallExpr:
			v.AdjustRet = true
		case *ast.Comma3Expr:
			v.AdjustRet = true
		}
	}
}

// inParts says whether the compiler would get a constructor wrong.
func inParts(t *ast.TableExpr) bool {
	listed := 0
	for i, f := range t.Fields {
		full := listed > 0 && listed%blockOfList == 0
		if full && (f.Key != nil || i == len(t.Fields)-1 && many(f.Value)) {
			return true
		}
		if f.Key == nil {
			listed++
		}
	}
	return listed > lastOfList
}

// many says whether an expression may have more values than one.
func many(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// builtInParts answers the call that stands for a constructor.
func builtInParts(t *ast.TableExpr) ast.Expr {
	b := &builder{like: t}
	for i, f := range t.Fields {
		if f.Key != nil {
			b.flush()
			place := at(t, &ast.AttrGetExpr{Object: b.list(), Key: f.Key})
			b.out = append(b.out, at(f.Key, &ast.AssignStmt{Lhs: []ast.Expr{place}, Rhs: []ast.Expr{f.Value}}))
			continue
		}
		if len(b.pending) == blockOfList-1 || i == len(t.Fields)-1 && many(f.Value) {
			b.flush()
		}
		b.pending = append(b.pending, f.Value)
	}
	b.flush()
	body := at(t, &ast.FunctionExpr{ParList: &ast.ParList{}})
	call := at(t, &ast.FuncCallExpr{Func: body, AdjustRet: true})
	if usesVarargs(t) {
		body.ParList.HasVargs = true
		call.Args = []ast.Expr{at(t, &ast.Comma3Expr{})}
	}
	first := at(t, &ast.LocalAssignStmt{Names: []string{"(list)"}, Exprs: []ast.Expr{at(t, &ast.TableExpr{})}})
	last := at(t, &ast.ReturnStmt{Exprs: []ast.Expr{b.list()}})
	body.Stmts = append(append([]ast.Stmt{first}, b.out...), last)
	return call
}

// builder writes the statements that fill a list.
type builder struct {
	like    ast.PositionHolder
	out     []ast.Stmt
	pending []ast.Expr // values of the list that are not stored yet
	stored  int
}

func (b *builder) list() ast.Expr { return at(b.like, &ast.IdentExpr{Value: "(list)"}) }

func (b *builder) flush() {
	if len(b.pending) == 0 {
		return
	}
	like := b.pending[0]
	from := at(like, &ast.NumberExpr{Value: strconv.Itoa(b.stored + 1)})
	call := hosted(like, storeList, append([]ast.Expr{b.list(), from}, b.pending...)...)
	b.out = append(b.out, at(like, &ast.FuncCallStmt{Expr: call}))
	b.stored += len(b.pending)
	b.pending = nil
}

// usesVarargs says whether ... of the function around a constructor stands in it.
func usesVarargs(t *ast.TableExpr) bool {
	return holds(reflect.ValueOf(t.Fields), func(node any) (found, skip bool) {
		_, found = node.(*ast.Comma3Expr)
		_, skip = node.(*ast.FunctionExpr)
		return found, skip
	})
}
