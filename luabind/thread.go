package luabind

import (
	"context"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Sizes of a thread. A registry of the library starts at 80 KB and a call stack
// at 22 KB; both grow here, so that a coroutine costs a few KB.
const (
	registryStart = 64        // slots
	registryGrow  = 256       // slots
	registryMax   = 256 << 10 // slots, 4 MB: a longer list cannot be unpacked
	callDepth     = 4096      // Lua frames of one thread
	nestDepth     = 200       // threads within threads: pcall in pcall, resume in resume
	idleThreads   = 64        // threads kept for reuse
)

// thread is one Lua stack. A protected call runs on a thread of its own, and a
// thread whose function raised is thrown away: nothing can read its registers
// after that but the upvalues that point there, which keep their values. Only
// pcall, which needs no frames, takes it back when all upvalues were closed.
//
// A thread is the context of its LState; that is how the meter counts and how a
// host function finds its thread.
type thread struct {
	vm     *VM
	L      *lua.LState
	strand *strand
	caller *thread // who runs this one, within the strand
	depth  int
	below  string // of a handler: the traceback of the error, in place of its callers'
	calls  *Call  // free list
	thrown lua.LValue
	fresh  lua.LState // L as it was made: no frame, no open upvalue
	errors int        // how often L was made fresh again
}

// strand is a line of execution: a task, an entry from Go, or a coroutine.
type strand struct {
	ctx    context.Context // ends the blocking calls of the strand
	task   *Task
	home   *strand // the task or entry; a coroutine runs in that of its resumer
	parent *strand // whose end ends this one too
	from   *thread // who resumed or entered
	co     *coroutine
	scopes []*scope // open here, innermost last
	top    *thread  // of a home: the thread inside Block
	entry  bool     // its Lua is ended when ctx is, after a grace
	late   time.Time
	stop   atomic.Pointer[AbortError]
}

type strandKey struct{}

// newStrand makes a home whose ctx leads back to it.
func newStrand(ctx context.Context, task *Task, parent *strand) *strand {
	s := &strand{task: task, parent: parent}
	s.home = s
	s.ctx = context.WithValue(ctx, strandKey{}, s)
	return s
}

// aborted answers why the Lua of s must end, nil when it may run.
func (s *strand) aborted() *AbortError {
	for h := s.home; h != nil; h = h.parent {
		if a := h.stop.Load(); a != nil {
			return a
		}
	}
	return nil
}

func (t *thread) Done() <-chan struct{} {
	m := &t.vm.meter
	if m.left--; m.left < 0 {
		m.look(t)
	}
	return nil
}

func (t *thread) Err() error                  { return nil }
func (t *thread) Deadline() (time.Time, bool) { return time.Time{}, false }
func (t *thread) Value(any) any               { return nil }

// threadOf answers the thread that runs l.
func threadOf(l *lua.LState) *thread {
	t, ok := l.Context().(*thread)
	if !ok {
		panic("BUG: luabind: a host function runs outside of a thread")
	}
	return t
}

// borrow answers a thread for a function called from caller, in strand s.
func (vm *VM) borrow(s *strand, caller *thread, depth int) *thread {
	if depth > nestDepth && caller != nil {
		raiseAt(caller.L, 1, "C stack overflow (%d protected calls within each other)", nestDepth)
	}
	var t *thread
	if n := len(vm.idle); n > 0 {
		t, vm.idle = vm.idle[n-1], vm.idle[:n-1]
	} else {
		t = vm.newThread()
	}
	t.strand, t.caller, t.depth = s, caller, depth
	return t
}

func (vm *VM) newThread() *thread {
	l, _ := vm.root.NewThread()
	t := &thread{vm: vm, L: l}
	l.Panic = panicRaised
	l.SetContext(t)
	t.fresh = *l
	return t
}

// A thread is recycled after errors of few frames and a few times, because the
// call stack itself keeps the frames of the error: callDepth less the product.
const recycledFrames, recycledErrors = 16, 8

// recycle gives t back after an error that its own panic function raised. A new
// thread costs 15 KB of garbage, most of it a table of globals it never uses.
func (t *thread) recycle(r *raised) {
	if r.closed != t.L || t.errors == recycledErrors {
		return
	}
	if _, deep := t.L.GetStack(recycledFrames); deep {
		return
	}
	t.errors++
	*t.L = t.fresh
	t.giveBack()
}

// giveBack keeps a thread whose function returned.
func (t *thread) giveBack() {
	t.L.SetTop(0)
	t.strand, t.caller, t.below = nil, nil, ""
	if len(t.vm.idle) < idleThreads {
		t.vm.idle = append(t.vm.idle, t)
	}
}

// child borrows a thread that continues t.
func (t *thread) child() *thread { return t.vm.borrow(t.strand, t, t.depth+1) }

// run calls the function that was pushed below nargs arguments; the results
// stay on the stack. After an error the thread is not used again.
func (t *thread) run(nargs int) (r *raised) {
	defer func() {
		if p := recover(); p != nil {
			r = t.caught(p)
		}
		if err := t.vm.meter.over(t); err != nil {
			r = &raised{abort: &abort{err}, at: t}
		}
	}()
	t.L.Call(nargs, lua.MultRet)
	if t.errors > 0 {
		*t.L = t.fresh // the frame that is current now is a dead one
	}
	return nil
}

// caught turns a Go panic that came out of Lua into the error it stands for.
func (t *thread) caught(p any) *raised {
	switch p := p.(type) {
	case *raised:
		if p.at == nil {
			p.at = t
		}
		return p
	case *abort:
		return &raised{abort: p, at: t}
	case *lua.ApiError:
		return &raised{value: p.Object, at: t}
	case string:
		if strings.Contains(p, "callstack overflow") { // the growing stack has no error of its own
			return &raised{value: lua.LString(t.position(0) + "stack overflow"), at: t}
		}
	}
	bug := &PanicError{Panic: p, Stack: string(debug.Stack())}
	return &raised{value: t.vm.errorValue(bug, ""), at: t}
}

// results answers what the function returned, in a slice of its own.
func (t *thread) results() []lua.LValue {
	n := t.L.GetTop()
	if n == 0 {
		return nil
	}
	out := make([]lua.LValue, n)
	for i := range out {
		out[i] = t.L.Get(i + 1)
	}
	return out
}

// call runs fn on t and gives t back.
func (t *thread) call(fn lua.LValue, args []lua.LValue) ([]lua.LValue, *raised) {
	t.L.Push(fn)
	for _, a := range args {
		t.L.Push(a)
	}
	if r := t.run(len(args)); r != nil {
		return nil, r
	}
	out := t.results()
	t.giveBack()
	return out, nil
}

// invoke is call for Go code: errors are Go errors, and after the end of the
// strand the next instruction of Lua ends it.
func (t *thread) invoke(fn lua.LValue, args []lua.LValue) ([]lua.LValue, error) {
	out, r := t.child().call(fn, args)
	if r == nil {
		return out, nil
	}
	return nil, t.vm.goError(r)
}

// block runs fn without the baton. In a cancelled strand it only lets others run
// first: a loop that goes on regardless must not keep them from ending.
func (t *thread) block(fn func(context.Context) error) error {
	ctx := t.strand.ctx
	if ctx.Err() != nil {
		t.vm.yield()
		return cancelled(ctx)
	}
	err := t.apart(ctx, fn)
	if err != nil && ctx.Err() != nil && isContextError(err) {
		return cancelled(ctx)
	}
	return err
}

// apart runs fn without the baton, whatever has become of the strand.
func (t *thread) apart(ctx context.Context, fn func(context.Context) error) error {
	home := t.strand.home
	before := home.top
	home.top = t
	t.vm.baton.pass()
	defer func() {
		t.vm.baton.take()
		home.top = before
		t.vm.meter.hurry()
	}()
	return fn(ctx)
}

func (t *thread) borrowCall(f *Func, at *bound) *Call {
	c := t.calls
	if c == nil {
		c = &Call{}
	} else {
		t.calls = c.next
	}
	shift := 0
	if at.self != nil {
		shift = 1
	}
	*c = Call{L: t.L, thread: t, fn: f, at: at, shift: shift}
	return c
}

func (t *thread) returnCall(c *Call) {
	c.next, t.calls = t.calls, c
}
