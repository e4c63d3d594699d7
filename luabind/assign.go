package luabind

import (
	"fmt"
	"reflect"

	"github.com/yuin/gopher-lua/ast"
)

// The library's compiler stores the first value of a, b = b, a before it reads
// the second, so a swap of locals loses one of them. Lua evaluates every
// expression of a statement before it assigns. And of a = t.x and y it assigns
// nothing where t.x is nil: the local keeps what it was. mendStatements
// writes each such assignment as what Lua means by it, t[k], a = x, y as
//
//	do
//	  local (table 1), (key 1) = t, k
//	  local (value 1), (value 2) = x, y
//	  a = (value 2)
//	  (table 1)[(key 1)] = (value 1)
//	end
//
// with names that no source can spell.

// mendStatements mends a list of statements that are mended themselves.
func mendStatements(v reflect.Value) {
	stmts, labels := v.Interface().([]ast.Stmt), false
	for i, stmt := range stmts {
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			if len(stmt.Lhs) > 1 || len(stmt.Rhs) > 1 || inPlace(stmt) {
				stmts[i] = inOrder(stmt)
			}
		case *ast.GenericForStmt:
			if len(stmt.Exprs) != 1 || !plainCall(stmt.Exprs[0]) {
				stmts[i] = iteratorFirst(stmt)
			}
		case *ast.GotoStmt:
			stmts[i] = at(stmt, &ast.DoBlockStmt{Stmts: append(captured(stmt), stmt)})
		case *ast.LabelStmt:
			labels = true
		}
	}
	if labels && v.CanSet() {
		v.Set(reflect.ValueOf(mendLabels(stmts)))
	}
}

// inPlace says whether a statement assigns what the compiler would make in the
// place of a local itself: one of two values, or the one value of a call or of
// "...", s = (s:gsub(a, b)), for which it uses the registers behind that place too.
func inPlace(one *ast.AssignStmt) bool {
	if _, name := one.Lhs[0].(*ast.IdentExpr); !name {
		return false
	}
	switch value := one.Rhs[0].(type) {
	case *ast.LogicalOpExpr, *ast.Comma3Expr:
		return true
	case *ast.FuncCallExpr:
		return value.AdjustRet
	}
	return false
}

// inOrder answers the block that stands for an assignment.
func inOrder(many *ast.AssignStmt) *ast.DoBlockStmt {
	block := at(many, &ast.DoBlockStmt{})
	values := at(many, &ast.LocalAssignStmt{Exprs: many.Rhs})
	assign := make([]ast.Stmt, len(many.Lhs))
	for i, place := range many.Lhs {
		if field, ok := place.(*ast.AttrGetExpr); ok {
			block.Stmts = append(block.Stmts, keep(field, i+1)...)
		}
		name := fmt.Sprintf("(value %d)", i+1)
		values.Names = append(values.Names, name)
		value := at(place, &ast.IdentExpr{Value: name})
		// The last place first, as the reference does.
		assign[len(assign)-1-i] = at(place, &ast.AssignStmt{Lhs: []ast.Expr{place}, Rhs: []ast.Expr{value}})
	}
	block.Stmts = append(append(block.Stmts, values), assign...)
	return block
}

// keep answers the statements that evaluate the table and the key of field now,
// and makes field use what they found.
func keep(field *ast.AttrGetExpr, n int) (stmts []ast.Stmt) {
	for i, part := range []*ast.Expr{&field.Object, &field.Key} {
		if _, constant := (*part).(ast.ConstExpr); constant {
			continue
		}
		name := fmt.Sprintf("(%s %d)", [...]string{"table", "key"}[i], n)
		stmts = append(stmts, at(field, &ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{*part}}))
		*part = at(field, &ast.IdentExpr{Value: name})
	}
	return stmts
}

// mendLocalFunction keeps local f = function … end from knowing itself as f, as
// local function f does, which alone has a last line. The compiler takes one for
// the other, but where there is a second name: one that no source can spell.
func mendLocalFunction(s *ast.LocalAssignStmt) {
	if len(s.Names) != 1 || len(s.Exprs) != 1 || s.LastLine() != 0 {
		return
	}
	fn, ok := s.Exprs[0].(*ast.FunctionExpr)
	if ok && mentions(fn, s.Names[0]) {
		s.Names = append(s.Names, "(function)")
	}
}

// mentions says whether a name stands in a function.
func mentions(fn *ast.FunctionExpr, name string) bool {
	return holds(reflect.ValueOf(fn.Stmts), func(node any) (found, skip bool) {
		ident, ok := node.(*ast.IdentExpr)
		return ok && ident.Value == name, false
	})
}

// plainCall says whether e is a call that gives a loop all of its iterator, state and
// control, and whose function the compiler finds: it loses one that is itself what a
// call answered. What else a loop goes over, next, t or a name, leaves the control to
// what stood there before.
func plainCall(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok {
		return false
	}
	of := call.Func
	if of == nil {
		of = call.Receiver
	}
	return !holds(reflect.ValueOf(&of), func(node any) (found, skip bool) {
		switch node.(type) {
		case *ast.FuncCallExpr, *ast.Comma3Expr, *ast.FunctionExpr, *ast.LogicalOpExpr:
			return true, true
		}
		return false, false
	})
}

// iteratorFirst answers a loop whose iterator is made before it begins.
func iteratorFirst(loop *ast.GenericForStmt) ast.Stmt {
	names := []string{"(iterator)", "(state)", "(control)"}
	made := at(loop, &ast.LocalAssignStmt{Names: names, Exprs: loop.Exprs})
	made.SetLastLine(0)
	loop.Exprs = nil
	for _, name := range names {
		loop.Exprs = append(loop.Exprs, at(loop, &ast.IdentExpr{Value: name}))
	}
	return at(loop, &ast.DoBlockStmt{Stmts: []ast.Stmt{made, loop}})
}

// captured is a local that a function uses, which never is: the compiler closes
// what functions use on the way out by goto and break, and asks only whether the
// block that is left has such a local itself. For goto it closes else all of the
// function; for break, where the blocks within have some, none.
func captured(like ast.PositionHolder) []ast.Stmt {
	uses := at(like, &ast.ReturnStmt{Exprs: []ast.Expr{at(like, &ast.IdentExpr{Value: "(captured)"})}})
	function := at(like, &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{uses}})
	never := at(like, &ast.LocalAssignStmt{Names: []string{"(function)"}, Exprs: []ast.Expr{function}})
	return []ast.Stmt{
		at(like, &ast.LocalAssignStmt{Names: []string{"(captured)"}}),
		at(like, &ast.IfStmt{Condition: at(like, &ast.FalseExpr{}), Then: []ast.Stmt{never}}),
	}
}
