package luabind

import (
	"math"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// The operator .. makes strings without calling anything that a host could
// replace: `s = s .. s` in a loop asks for more memory than there is within a
// few dozen instructions, long before the meter looks. So the instruction
// itself is wrapped, once for the process; it acts only for the threads of a VM.
func init() {
	lua.MaxArrayIndex = maxArray
	stock := jumpTable[lua.OP_CONCAT]
	jumpTable[lua.OP_CONCAT] = func(l *lua.LState, inst uint32, base unsafe.Pointer) int {
		if t, ok := l.Context().(*thread); ok {
			t.guardConcat(int(inst&0x1ff), int(inst>>9)&0x1ff)
		}
		return stock(l, inst, base)
	}
}

// maxArray is the highest index of the array part of a table: t[n] = v makes
// room for all indices below n at once, so it must not be near the memory limit.
const maxArray = 16 << 20

// instruction is the library's type of an entry; base is a private call frame.
type instruction func(l *lua.LState, inst uint32, base unsafe.Pointer) int

//go:linkname jumpTable github.com/yuin/gopher-lua.jumpTable
var jumpTable [lua.OP_NOP + 1]instruction

// guardConcat checks the length of registers first to last joined, and writes what is
// not finite as tostring does.
func (t *thread) guardConcat(first, last int) {
	size := int64(0)
	for i := first; i <= last; i++ {
		switch v := t.L.Get(i + 1).(type) {
		case lua.LString:
			size += int64(len(v))
		case lua.LNumber:
			if f := float64(v); math.IsInf(f, 0) || math.IsNaN(f) {
				t.L.Replace(i+1, lua.LString(numberText(f)))
			}
		}
	}
	t.room(size, "..")
}
