package luabind

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// operation is an instruction that failed, in the innermost Lua frame of a thread.
// Its registers are what they were, so errors can say what was nil and what a name
// was near to, in the words of Lua 5.1.
type operation struct {
	l    *lua.LState
	fn   *lua.LFunction
	at   int  // the instruction
	live bool // the registers can be read: no host function was called meanwhile
}

// failedIn answers the operation that the innermost Lua frame of t is in.
func failedIn(t *thread) (o operation, ok bool) {
	live := true
	eachFrame(t.L, func(f *frame) bool {
		if f.fn.IsG {
			live = false
			return true
		}
		o = operation{t.L, f.fn, f.pc - 1, live}
		ok = o.at >= 0 && o.at < len(f.fn.Proto.Code)
		return false
	})
	return o, ok
}

// The parts of an instruction, which the library keeps private.
func opcode(inst uint32) int { return int(inst >> 26) }
func argA(inst uint32) int   { return int(inst>>18) & 0xff }
func argB(inst uint32) int   { return int(inst & 0x1ff) }
func argC(inst uint32) int   { return int(inst>>9) & 0x1ff }
func argBx(inst uint32) int  { return int(inst & 0x3ffff) }

// noJump is what a jump to the next instruction holds.
const noJump = 1<<17 - 1

// constantBit is set in an operand that is no register but a constant.
const constantBit = 1 << 8

func (o operation) inst(at int) uint32 { return o.fn.Proto.Code[at] }

// operand answers what a register or a constant holds now.
func (o operation) operand(rk int) lua.LValue {
	switch {
	case rk&constantBit != 0:
		return o.fn.Proto.Constants[rk&^constantBit]
	case !o.live:
		return lua.LNil
	}
	return o.l.Get(rk + 1)
}

// described names an operand of the operation and its type: "field 'x' (a nil value)".
func (o operation) described(rk int, kind string) string {
	if name := o.name(rk, o.at); name != "" {
		return name + " (a " + kind + " value)"
	}
	return "a " + kind + " value"
}

// name answers what the code calls what a register holds before the instruction at.
func (o operation) name(rk, at int) string {
	if rk&constantBit != 0 {
		return ""
	}
	load := o.loader(at, rk)
	if local, ok := o.local(rk, at); ok && !o.over(local, at, load) && !strings.HasPrefix(local.Name, "(") {
		return "local '" + local.Name + "'" // and not one of the compiler
	}
	if load < 0 {
		return ""
	}
	switch inst := o.inst(load); opcode(inst) {
	case lua.OP_MOVE, lua.OP_MOVEN:
		return o.name(argB(inst), load)
	case lua.OP_GETUPVAL:
		if names := o.fn.Proto.DbgUpvalues; argB(inst) < len(names) {
			return "upvalue '" + names[argB(inst)] + "'"
		}
	case lua.OP_GETGLOBAL:
		return "global '" + o.fn.Proto.Constants[argBx(inst)].String() + "'"
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		return "field '" + o.key(argC(inst)) + "'"
	}
	return ""
}

// key answers a key that is written in the code, and "?" for one that is computed.
func (o operation) key(rk int) string {
	if rk&constantBit != 0 {
		if key, ok := o.operand(rk).(lua.LString); ok {
			return shorten(string(key))
		}
	}
	return "?"
}

// local answers the local variable that a register is at an instruction.
func (o operation) local(register, at int) (*lua.DbgLocalInfo, bool) {
	for _, v := range o.fn.Proto.DbgLocals {
		if v.StartPc <= at && at <= v.EndPc {
			if register == 0 {
				return v, true
			}
			register--
		}
	}
	return nil, false
}

// over says whether a variable may have ended before the instruction at: its block
// ends in the same line, and its register was loaded in that line.
func (o operation) over(v *lua.DbgLocalInfo, at, load int) bool {
	line := o.fn.Proto.DbgSourcePositions
	return v.EndPc < len(line) && load >= v.StartPc && line[load] == line[at] && line[v.EndPc] == line[at]
}

// loader answers the instruction that wrote what a register holds before at, when it
// is one that looks a value up and no way goes around it, and -1 else.
func (o operation) loader(at, register int) int {
	load := o.writer(at, register)
	for i := range max(load, 0) {
		if inst := o.inst(i); opcode(inst) == lua.OP_JMP {
			if to := i + 1 + argBx(inst) - noJump; load < to && to <= at {
				return -1
			}
		}
	}
	return load
}

func (o operation) writer(at, register int) int {
	for i := at - 1; i >= 0; i-- {
		inst := o.inst(i)
		a := argA(inst)
		if register == 0 && o.captures(i) {
			continue
		}
		switch opcode(inst) {
		case lua.OP_GETUPVAL, lua.OP_GETGLOBAL, lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_MOVE, lua.OP_MOVEN:
			if a == register {
				return i
			}
		case lua.OP_SELF:
			if a == register {
				return i
			} else if a+1 == register {
				return -1
			}
		case lua.OP_CALL, lua.OP_TAILCALL, lua.OP_VARARG, lua.OP_LOADNIL, lua.OP_TFORLOOP:
			if a <= register {
				return -1
			}
		case lua.OP_SETGLOBAL, lua.OP_SETUPVAL, lua.OP_SETTABLE, lua.OP_SETTABLEKS, lua.OP_SETLIST, lua.OP_JMP,
			lua.OP_EQ, lua.OP_LT, lua.OP_LE, lua.OP_TEST, lua.OP_RETURN, lua.OP_CLOSE, lua.OP_NOP, lua.OP_FORLOOP, lua.OP_FORPREP:
		default:
			if a == register {
				return -1
			}
		}
	}
	return -1
}

// captures says whether an instruction is none, but says what a closure captures.
func (o operation) captures(at int) bool {
	for i := at; i >= 0; i-- {
		switch inst := o.inst(i); opcode(inst) {
		case lua.OP_MOVE, lua.OP_MOVEN, lua.OP_GETUPVAL:
			continue
		case lua.OP_CLOSURE:
			return at > i && at-i <= int(o.fn.Proto.FunctionPrototypes[argBx(inst)].NumUpvalues)
		}
		return false
	}
	return false
}

// holder answers what the instruction looks a field up in, nil when it looks up none.
func (o operation) holder(at int) lua.LValue {
	inst := o.inst(at)
	switch opcode(inst) {
	case lua.OP_SELF:
		return o.operand(argA(inst) + 1)
	case lua.OP_GETGLOBAL:
		return o.fn.Env
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
		if b := argB(inst); b != argA(inst) {
			return o.operand(b)
		}
		return o.value(o.loader(at, argA(inst))) // it was written over
	}
	return lua.LNil
}

// value answers what the instruction loads.
func (o operation) value(at int) lua.LValue {
	if at < 0 {
		return lua.LNil
	}
	inst := o.inst(at)
	var key lua.LValue = lua.LNil
	switch opcode(inst) {
	case lua.OP_MOVE, lua.OP_MOVEN:
		return o.operand(argB(inst))
	case lua.OP_GETUPVAL:
		return o.fn.Upvalues[argB(inst)].Value()
	case lua.OP_GETGLOBAL:
		key = o.fn.Proto.Constants[argBx(inst)]
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
		key = o.operand(argC(inst))
	}
	if tbl, ok := o.holder(at).(*lua.LTable); ok {
		return tbl.RawGet(key)
	}
	return lua.LNil
}

// meant answers ` (did you mean "x"?)` for a call of a field that has no function,
// where what the field was looked up in has one of a near name.
func (o operation) meant(name string) string {
	load := o.loader(o.at, argA(o.inst(o.at)))
	if load < 0 {
		return ""
	}
	best, bestDistance := "", (len(name)+1)/2
	for _, near := range functionsOf(o.l, o.holder(load)) {
		if d := distance(name, near); d < bestDistance || d == bestDistance && near < best {
			best, bestDistance = near, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + strconv.Quote(best) + "?)"
}

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

// The library's words for an operation on the wrong value, at the end of a message.
var (
	indexFault = regexp.MustCompile(`(?s)attempt to index a non-table object\((\w+)\) with key '(.*)'$`)
	arithFault = regexp.MustCompile(`cannot perform (\w+) operation (?:between (\w+) and|on) (\w+)$`)
	unaryFault = regexp.MustCompile(`__(?:unm|len) undefined$`)
	loopFault  = regexp.MustCompile(`for statement (init|limit|step) must be a number$`)
)

// faults has the words by what stands in each, which is looked for first.
var faults = map[string]struct {
	words *regexp.Regexp
	again func(o operation, parts []string) string
}{
	"attempt to index a non-table": {indexFault, operation.index},
	"cannot perform ":              {arithFault, operation.arithmetic},
	" undefined":                   {unaryFault, operation.unary},
	"for statement ":               {loopFault, operation.loop},
}

// inLuasWords says what an operation of a wrong value was tried on as Lua 5.1 says it;
// the library does not name it.
func inLuasWords(t *thread, text string) string {
	for part, fault := range faults {
		if !strings.Contains(text, part) {
			continue
		}
		m := fault.words.FindStringSubmatch(text)
		if o, ok := failedIn(t); ok && m != nil {
			return strings.TrimSuffix(text, m[0]) + fault.again(o, m)
		}
	}
	return text
}

func (o operation) index(m []string) string {
	kind, key, held := m[1], shorten(m[2]), -1
	switch inst := o.inst(o.at); opcode(inst) {
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		held = argB(inst)
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		held = argA(inst)
	}
	what := "a " + kind + " value" // a host function looked, or an __index was no table
	if held >= 0 && o.live && o.kind(held) == kind {
		what = o.described(held, kind)
	}
	return fmt.Sprintf("attempt to index %s with key '%s'", what, key)
}

func (o operation) unary(m []string) string {
	inst := o.inst(o.at)
	what := o.described(argB(inst), o.kind(argB(inst)))
	switch opcode(inst) {
	case lua.OP_UNM:
		return "attempt to perform arithmetic on " + what
	case lua.OP_LEN:
		return "attempt to get length of " + what
	}
	return m[0]
}

func (operation) loop(m []string) string {
	return "'for' " + strings.Replace(m[1], "init", "initial value", 1) + " must be a number"
}

// arithmetic says which of two operands no number was made of, or no text. The minus
// sign has one.
func (o operation) arithmetic(m []string) string {
	x, y, inst := m[2], m[3], o.inst(o.at)
	tried, fits := "attempt to perform arithmetic on ", func(kind string) bool { return kind == "number" }
	first, second := argB(inst), argC(inst)
	switch op := opcode(inst); {
	case op == lua.OP_UNM:
		return tried + o.described(first, y)
	case op == lua.OP_CONCAT:
		tried, fits = "attempt to concatenate ", func(kind string) bool { return kind == "number" || kind == "string" }
		for second > first+1 && fits(o.kind(second-1)) && fits(o.kind(second)) {
			second-- // what stands right of the fault is joined already
		}
		first = second - 1
	case op < lua.OP_ADD || op > lua.OP_POW:
		return m[0] // of a metamethod
	}
	if !fits(x) {
		return tried + o.described(first, x)
	}
	return tried + o.described(second, y)
}

func (o operation) kind(rk int) string { return o.operand(rk).Type().String() }
