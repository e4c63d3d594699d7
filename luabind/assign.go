package luabind

import (
	"fmt"
	"reflect"

	"github.com/yuin/gopher-lua/ast"
)

// The library's compiler stores the first value of a, b = b, a before it reads
// the second, so a swap of locals loses one of them. Lua evaluates every
// expression of a statement before it assigns. And of a = t.x and y it assigns
// nothing where t.x is nil: the local keeps what it was. mendSyntax writes each
// such assignment as what Lua means by it, t[k], a = x, y as
//
//	do
//	  local (table 1), (key 1) = t, k
//	  local (value 1), (value 2) = x, y
//	  a = (value 2)
//	  (table 1)[(key 1)] = (value 1)
//	end
//
// with names that no source can spell.

var statements = reflect.TypeFor[[]ast.Stmt]()

// mendSyntax rewrites what the compiler gets wrong below v, which holds syntax: the
// assignments, and then the loops, from the inside out.
func mendSyntax(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			mendSyntax(v.Elem())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			mendSyntax(v.Elem())
			mendLoop(v.Interface())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			mendSyntax(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			mendSyntax(v.Index(i))
		}
		if v.Type() == statements {
			mendStatements(v)
		}
	}
}

// mendStatements mends a list of statements that are mended themselves.
func mendStatements(v reflect.Value) {
	stmts, labels := v.Interface().([]ast.Stmt), false
	for i, stmt := range stmts {
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			if len(stmt.Lhs) > 1 || chooses(stmt) {
				stmts[i] = inOrder(stmt)
			}
		case *ast.LabelStmt:
			labels = true
		}
	}
	if labels && v.CanSet() {
		v.Set(reflect.ValueOf(mendLabels(stmts)))
	}
}

// chooses says whether a statement assigns one of two values to a name.
func chooses(one *ast.AssignStmt) bool {
	_, name := one.Lhs[0].(*ast.IdentExpr)
	_, choice := one.Rhs[0].(*ast.LogicalOpExpr)
	return name && choice
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

// at gives node the lines of another.
func at[N ast.PositionHolder](like ast.PositionHolder, node N) N {
	node.SetLine(like.Line())
	node.SetLastLine(like.LastLine())
	return node
}
