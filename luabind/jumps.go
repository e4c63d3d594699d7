package luabind

import "github.com/yuin/gopher-lua/ast"

// The library's compiler threads a jump through the jumps it leads to, and reads
// one that it has threaded already, which lies before it, as one that it has not.
// So a jump back to a place that begins with a jump leads anywhere: a loop whose
// body begins with "if false then" or "break" skips its body, runs what is
// switched off, or never ends. mendLoop puts an instruction without effect in
// front of each place that a jump leads back to, where it may begin with a jump:
// loops, and labels.

// mendLoop mends a node whose parts are mended. Where it closes what functions of
// its body use, a break closes it too.
func mendLoop(node any, closes bool) {
	if closes {
		defer closeAtBreak(node)
	}
	switch s := node.(type) {
	case *ast.WhileStmt:
		if !always(s.Condition) {
			if steadyCondition(s.Condition) {
				return // the jump leads to the condition
			}
			leave := at(s, &ast.IfStmt{Condition: at(s, &ast.UnaryNotOpExpr{Expr: s.Condition}), Then: []ast.Stmt{at(s, &ast.BreakStmt{})}})
			s.Condition, s.Stmts = at(s, &ast.TrueExpr{}), append([]ast.Stmt{leave}, s.Stmts...)
		}
		s.Stmts = begun(s.Stmts, s)
	case *ast.RepeatStmt:
		if len(s.Stmts) == 0 && !steadyCondition(s.Condition) {
			s.Stmts = []ast.Stmt{nothing(s)}
		}
		s.Stmts = begun(s.Stmts, s)
	case *ast.GenericForStmt:
		s.Stmts = begun(s.Stmts, s)
	}
}

// closeAtBreak makes a break out of a loop close the locals of the blocks within.
func closeAtBreak(node any) {
	switch s := node.(type) {
	case *ast.WhileStmt:
		s.Stmts = append(captured(s), s.Stmts...)
	case *ast.RepeatStmt:
		s.Stmts = append(captured(s), s.Stmts...)
	case *ast.NumberForStmt:
		s.Stmts = append(captured(s), s.Stmts...)
	case *ast.GenericForStmt:
		s.Stmts = append(captured(s), s.Stmts...)
	}
}

// mendLabels answers statements in which what follows a label is no jump. Nothing
// leads back to the last label of a block.
func mendLabels(stmts []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for i, s := range stmts {
		out = append(out, s)
		if _, label := s.(*ast.LabelStmt); label && i+1 < len(stmts) && !steadyStart(stmts[i+1:]) {
			out = append(out, at(s, &ast.DoBlockStmt{Stmts: []ast.Stmt{nothing(s)}}))
		}
	}
	return out
}

// begun answers the body of a loop with nothing in front where that is needed.
func begun(stmts []ast.Stmt, like ast.PositionHolder) []ast.Stmt {
	if len(stmts) == 0 || steadyStart(stmts) {
		return stmts
	}
	return append([]ast.Stmt{nothing(like)}, stmts...)
}

// nothing is an instruction without effect: a local of a name that no source can
// spell.
func nothing(like ast.PositionHolder) ast.Stmt {
	return at(like, &ast.LocalAssignStmt{Names: []string{"(start)"}})
}

// steadyStart says whether statements certainly begin with an instruction that is
// no jump.
func steadyStart(stmts []ast.Stmt) bool {
	if len(stmts) == 0 {
		return false
	}
	switch s := stmts[0].(type) {
	case *ast.LocalAssignStmt:
		return len(s.Exprs) == 0 || steady(s.Exprs[0])
	case *ast.AssignStmt:
		_, moves := s.Rhs[0].(*ast.IdentExpr) // x = x is no instruction at all
		return !moves && steady(s.Rhs[0])
	case *ast.FuncCallStmt:
		return steady(s.Expr)
	case *ast.ReturnStmt:
		return len(s.Exprs) == 0 || steady(s.Exprs[0])
	case *ast.NumberForStmt:
		return steady(s.Init)
	case *ast.GenericForStmt:
		return steady(s.Exprs[0])
	case *ast.IfStmt:
		return steadyCondition(s.Condition)
	case *ast.WhileStmt:
		return steadyCondition(s.Condition) || always(s.Condition) && steadyStart(s.Stmts)
	case *ast.RepeatStmt:
		return steadyStart(s.Stmts)
	case *ast.DoBlockStmt:
		return steadyStart(s.Stmts)
	}
	return false
}

// always says whether a condition is no instruction.
func always(e ast.Expr) bool {
	switch e.(type) {
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return true
	}
	return false
}

// steadyCondition says whether a condition certainly begins with an instruction
// that is no jump.
func steadyCondition(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.UnaryNotOpExpr:
		return steadyCondition(e.Expr)
	case *ast.LogicalOpExpr:
		return steadyCondition(e.Lhs)
	case ast.ConstExpr:
		return false
	}
	return steady(e)
}

// steady says the same of a value.
func steady(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.IdentExpr, ast.ConstExpr, *ast.TableExpr, *ast.FunctionExpr, *ast.Comma3Expr:
		return true
	case *ast.AttrGetExpr:
		return steadyPair(e.Object, e.Key)
	case *ast.ArithmeticOpExpr:
		return steadyPair(e.Lhs, e.Rhs)
	case *ast.RelationalOpExpr:
		return steadyPair(e.Lhs, e.Rhs)
	case *ast.FuncCallExpr:
		if e.Func != nil {
			return steady(e.Func)
		}
		return steady(e.Receiver)
	case *ast.LogicalOpExpr, *ast.UnaryNotOpExpr:
		return steadyCondition(e)
	case *ast.StringConcatOpExpr:
		return steady(e.Lhs)
	case *ast.UnaryMinusOpExpr:
		return steady(e.Expr)
	case *ast.UnaryLenOpExpr:
		return steady(e.Expr)
	}
	return false
}

// steadyPair says the same of an operation, whose first operand may be no
// instruction: a local, or a constant.
func steadyPair(first, second ast.Expr) bool {
	switch first.(type) {
	case *ast.IdentExpr, ast.ConstExpr:
		return steady(second)
	}
	return steady(first)
}
