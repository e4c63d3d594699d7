package luabind

import (
	"crypto/rand"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// hostFunction is a function of the host that mended syntax calls. It is compiled
// as a text, which no source holds for it is another in each process, and the
// function then takes the text's place among the constants.
type hostFunction lua.LString

var (
	mark      = rand.Text()
	storeList = hostFunction("(store) " + mark)
)

var hostFunctions = map[lua.LValue]*lua.LFunction{
	lua.LString(storeList): {IsG: true, GFunction: luaStoreList},
}

// hosted is a call of it.
func hosted(like ast.PositionHolder, f hostFunction, args ...ast.Expr) *ast.FuncCallExpr {
	return at(like, &ast.FuncCallExpr{Func: at(like, &ast.StringExpr{Value: string(f)}), Args: args})
}

// bindHosted puts the functions of the host in their places.
func bindHosted(p *lua.FunctionProto) {
	for i, c := range p.Constants {
		if c.Type() != lua.LTString {
			continue
		}
		if f := hostFunctions[c]; f != nil {
			p.Constants[i] = f
		}
	}
}

// luaStoreList is (store)(list, from, ...): it stores the values from that place on.
func luaStoreList(l *lua.LState) int {
	list, from := l.CheckTable(1), l.CheckInt(2)
	for i := 3; i <= l.GetTop(); i++ {
		list.RawSetInt(from+i-3, l.Get(i))
	}
	return 0
}
