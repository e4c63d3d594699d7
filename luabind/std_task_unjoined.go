package luabind

import lua "github.com/yuin/gopher-lua"

// taskUnjoined is std.task.unjoined(fn?).
func taskUnjoined(c *Call) (int, error) {
	before := c.VM().unjoined
	c.VM().unjoined = nil
	if c.Given(1) {
		c.VM().unjoined = c.Func(1)
	}
	if before == nil {
		return c.Return(lua.LNil)
	}
	return c.Return(before)
}

// tellUnjoined hands the error of t, which nobody joined, to what the script
// set, on the strand that leaves its scope. It answers false when nothing is set,
// or what is set raised.
func (s *strand) tellUnjoined(t *Task) bool {
	vm := t.vm
	if vm.unjoined == nil {
		return false
	}
	args := []lua.LValue{t.failed.value, lua.LString(t.failed.trace), lua.LString(t.name)}
	_, r := vm.borrow(s, nil, 0).call(vm.unjoined, args)
	return r == nil
}
