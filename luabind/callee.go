package luabind

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// calleeHint answers ` (did you mean "x"?)` for a call of a field that has no
// function, where what the field was looked up in has one of a near name. f is the
// innermost frame of l, and its call has failed: its registers are what they were.
func calleeHint(l *lua.LState, f *frame, name string) string {
	code := f.fn.Proto.Code
	at := f.pc - 1
	if at < 0 || at >= len(code) {
		return ""
	}
	c := callee{l, f.fn}
	load := c.loader(at, argA(code[at]))
	if load < 0 {
		return ""
	}
	best, bestDistance := "", (len(name)+1)/2
	for _, near := range functionsOf(l, c.holder(load)) {
		if d := distance(name, near); d < bestDistance || d == bestDistance && near < best {
			best, bestDistance = near, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + strconv.Quote(best) + "?)"
}

// callee reads back how the code of a function came by what it calls.
type callee struct {
	l  *lua.LState
	fn *lua.LFunction
}

// The parts of an instruction, which the library keeps private.
func argA(inst uint32) int  { return int(inst>>18) & 0xff }
func argB(inst uint32) int  { return int(inst & 0x1ff) }
func argC(inst uint32) int  { return int(inst>>9) & 0x1ff }
func argBx(inst uint32) int { return int(inst & 0x3ffff) }

// constantBit is set in an operand that is no register but a constant.
const constantBit = 1 << 8

// loader answers the instruction before at that last wrote a register, when it is
// one that looks a value up, and -1 else. The arguments of a call stand in registers
// above it.
func (c callee) loader(at, register int) int {
	for i := at - 1; i >= 0; i-- {
		inst := c.fn.Proto.Code[i]
		switch int(inst >> 26) {
		case lua.OP_MOVE, lua.OP_GETUPVAL, lua.OP_GETGLOBAL, lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
			if argA(inst) == register {
				return i
			}
		}
	}
	return -1
}

// holder answers what the instruction looks a field up in, nil when it looks up none.
func (c callee) holder(at int) lua.LValue {
	inst := c.fn.Proto.Code[at]
	switch int(inst >> 26) {
	case lua.OP_SELF:
		return c.register(argA(inst) + 1)
	case lua.OP_GETGLOBAL:
		return c.fn.Env
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
		if b := argB(inst); b != argA(inst) {
			return c.register(b)
		}
		return c.value(c.loader(at, argA(inst))) // it was written over
	}
	return lua.LNil
}

// value answers what the instruction loads.
func (c callee) value(at int) lua.LValue {
	if at < 0 {
		return lua.LNil
	}
	inst := c.fn.Proto.Code[at]
	var key lua.LValue = lua.LNil
	switch int(inst >> 26) {
	case lua.OP_MOVE:
		return c.register(argB(inst))
	case lua.OP_GETUPVAL:
		return c.fn.Upvalues[argB(inst)].Value()
	case lua.OP_GETGLOBAL:
		key = c.fn.Proto.Constants[argBx(inst)]
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
		if k := argC(inst); k&constantBit != 0 {
			key = c.fn.Proto.Constants[k&^constantBit]
		} else {
			key = c.register(k)
		}
	}
	if tbl, ok := c.holder(at).(*lua.LTable); ok {
		return tbl.RawGet(key)
	}
	return lua.LNil
}

func (c callee) register(r int) lua.LValue { return c.l.Get(r + 1) }

// functionsOf answers the names of the functions that a look-up in v can find.
func functionsOf(l *lua.LState, v lua.LValue) (names []string) {
	for range 8 { // a chain of classes is not longer, a ring would not end
		if tbl, ok := v.(*lua.LTable); ok {
			tbl.ForEach(func(k, v lua.LValue) {
				if name, ok := k.(lua.LString); ok && v.Type() == lua.LTFunction {
					names = append(names, string(name))
				}
			})
		}
		index, ok := l.GetMetaField(v, "__index").(*lua.LTable)
		if !ok {
			return names
		}
		v = index
	}
	return names
}
