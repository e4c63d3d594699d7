package luabind

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// The compiler writes down where each local variable begins, but ends the wrong ones
// as soon as a block has ended before. Errors name variables, so the ends are found
// again here: the syntax says which variables a block has, in the order of their
// entries, and the block is over where the next one begins or a later line is.

// scopes goes through the syntax of one function as the compiler does.
type scopes struct {
	p      *lua.FunctionProto
	next   int // entry of the next variable
	inner  int // the next function in it
	active []int
	last   int  // line of the block
	lost   bool // the entries are not those of this syntax
}

// endLocals sets the ends of the variables of a chunk and of the functions in it.
func endLocals(p *lua.FunctionProto, chunk []ast.Stmt) {
	s := &scopes{p: p, last: maxCode}
	s.function(chunk, nil)
}

// function goes through a function with those parameters.
func (s *scopes) function(body []ast.Stmt, parameters []string) {
	s.declare(parameters...)
	s.statements(body)
	for _, i := range s.active {
		s.p.DbgLocals[i].EndPc = len(s.p.Code) // to the very end
	}
	if s.lost || s.next != len(s.p.DbgLocals) {
		s.p.DbgLocals = nil // no name is better than another's
	}
}

// declare counts variables.
func (s *scopes) declare(names ...string) {
	for _, name := range names {
		if s.lost = s.lost || s.next >= len(s.p.DbgLocals) || s.p.DbgLocals[s.next].Name != name; s.lost {
			return
		}
		s.active = append(s.active, s.next)
		s.next++
	}
}

// end ends all variables but the outer ones; their block has no line after last.
func (s *scopes) end(outer, last int) {
	if s.lost {
		return
	}
	limit := len(s.p.Code)
	if s.next < len(s.p.DbgLocals) {
		limit = s.p.DbgLocals[s.next].StartPc
	}
	for _, i := range s.active[outer:] {
		v := s.p.DbgLocals[i]
		v.EndPc = v.StartPc - 1
		for end := v.StartPc; end < limit && s.p.DbgSourcePositions[end] <= last; end++ {
			v.EndPc = end
		}
	}
	s.active = s.active[:outer]
}

// block goes through a block whose last line is known, or 0.
func (s *scopes) block(stmts []ast.Stmt, last int, names ...string) {
	outer, around := len(s.active), s.last
	if last > 0 {
		s.last = last
	}
	s.declare(names...)
	s.statements(stmts)
	s.end(outer, s.last)
	s.last = around
}

func (s *scopes) statements(stmts []ast.Stmt) {
	for _, stmt := range stmts {
		s.statement(stmt)
	}
}

func (s *scopes) statement(stmt ast.Stmt) {
	switch n := stmt.(type) {
	case *ast.LocalAssignStmt:
		if len(n.Names) == 1 && len(n.Exprs) == 1 {
			if f, ok := n.Exprs[0].(*ast.FunctionExpr); ok {
				s.declare(n.Names...) // it sees itself
				s.within(f)
				return
			}
		}
		s.functions(n.Exprs)
		s.declare(n.Names...)
	case *ast.DoBlockStmt:
		s.block(n.Stmts, n.LastLine())
	case *ast.WhileStmt:
		s.functions(n.Condition)
		s.block(n.Stmts, n.LastLine())
	case *ast.RepeatStmt:
		outer := len(s.active)
		s.statements(n.Stmts)
		s.functions(n.Condition)
		s.end(outer, n.LastLine())
	case *ast.IfStmt:
		s.functions(n.Condition)
		around := s.last
		if n.LastLine() > 0 { // it is no elseif
			s.last = n.LastLine()
		}
		last := s.last
		if len(n.Else) > 0 && len(n.Then) > 0 {
			last = max(n.Then[len(n.Then)-1].Line(), n.Else[0].Line()-1) // before the condition of an elseif
		}
		s.block(n.Then, last)
		s.block(n.Else, s.last)
		s.last = around
	case *ast.NumberForStmt:
		outer := len(s.active)
		s.declare("(for index)")
		s.functions(n.Init)
		s.declare("(for limit)")
		s.functions(n.Limit)
		s.declare("(for step)")
		s.functions(n.Step)
		s.block(n.Stmts, n.LastLine(), n.Name)
		s.end(outer, n.LastLine())
	case *ast.GenericForStmt:
		outer := len(s.active)
		s.declare("(for generator)", "(for state)", "(for control)")
		s.functions(n.Exprs)
		s.block(n.Stmts, n.LastLine(), n.Names...)
		s.end(outer, n.LastLine())
	case *ast.FuncDefStmt:
		if n.Name.Func == nil {
			s.functions(n.Name.Receiver)
			s.within(n.Func, "self")
			return
		}
		s.functions(n.Name.Func)
		s.within(n.Func)
	default:
		s.functions(stmt)
	}
}

// within goes through a function in this one.
func (s *scopes) within(f *ast.FunctionExpr, parameters ...string) {
	if s.inner >= len(s.p.FunctionPrototypes) {
		s.lost = true
		return
	}
	parameters = append(parameters, f.ParList.Names...)
	if f.ParList.HasVargs {
		parameters = append(parameters, "arg")
	}
	inner := &scopes{p: s.p.FunctionPrototypes[s.inner], last: maxCode}
	s.inner++
	inner.function(f.Stmts, parameters)
}

// functions goes through the functions in an expression or some.
func (s *scopes) functions(in any) {
	holds(reflect.ValueOf(in), func(node any) (found, skip bool) {
		f, ok := node.(*ast.FunctionExpr)
		if ok {
			s.within(f)
		}
		return false, ok
	})
}
