package luabind

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"weak"

	lua "github.com/yuin/gopher-lua"
)

// The coroutine library of the host. A coroutine runs on a goroutine of its own
// and hands control over, so that it may yield anywhere: under pcall, in a
// metamethod, in a comparator of table.sort, in a host function that called
// back. Its instructions count like all others.
//
// What a script holds is a handle; the goroutine knows it by a weak pointer
// only. When the last handle is gone the coroutine can never be resumed: the
// collector then puts it on a list, and the next coroutine to be made ends it.
// One whose own body holds its handle lives until the VM closes.

type coState uint8

const (
	coSuspended coState = iota
	coRunning
	coNormal // it resumed another one
	coDead
)

var coNames = [...]string{"suspended", "running", "normal", "dead"}

// coroutine is the context of its handle, an LState that never runs.
type coroutine struct {
	context.Context
	vm     *VM
	fn     lua.LValue
	strand *strand
	state  coState
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	moved  []lua.LValue // what crosses on a resume or yield
	failed *raised
	at     *thread // the thread inside yield
	handle weak.Pointer[lua.LState]
}

// coroutines are those of a VM that have a goroutine.
type coroutines struct {
	live map[*coroutine]struct{} // guarded by the baton
	mu   sync.Mutex
	lost []*coroutine // no handle is left; guarded by mu
}

// errKilled unwinds a coroutine that will not be resumed.
var errKilled = errors.New("coroutine was collected")

func (vm *VM) newCoroutine(fn lua.LValue) *lua.LState {
	vm.coros.reap()
	co := &coroutine{vm: vm, fn: fn, strand: &strand{}}
	co.strand.co = co
	handle := &lua.LState{G: vm.root.G, Env: vm.root.Env}
	handle.SetContext(co)
	co.handle = weak.Make(handle)
	runtime.AddCleanup(handle, vm.coros.lose, co)
	return handle
}

// coroutineOf answers the coroutine of a handle.
func coroutineOf(v lua.LValue) *coroutine {
	if l, ok := v.(*lua.LState); ok {
		co, _ := l.Context().(*coroutine)
		return co
	}
	return nil
}

// resume runs co until it yields or ends. The values that cross are in
// co.moved before and after.
func (co *coroutine) resume(t *thread) *raised {
	if t.depth >= nestDepth {
		raiseAt(t.L, 1, "C stack overflow (%d calls and coroutines within each other)", nestDepth)
	}
	s := co.strand
	s.ctx, s.home, s.from = t.strand.ctx, t.strand.home, t
	if co.next == nil {
		co.start(t.depth + 1)
	}
	outer := t.strand.co
	if outer != nil {
		outer.state = coNormal
	}
	co.state = coRunning
	_, alive := co.next()
	s.from = nil // the resumer may hold the handle
	if outer != nil {
		outer.state = coRunning
	}
	if !alive {
		co.over()
		return co.failed
	}
	return nil
}

// start makes the goroutine; it runs at the first next.
func (co *coroutine) start(depth int) {
	co.vm.coros.add(co)
	co.next, co.stop = iter.Pull(func(yield func(struct{}) bool) {
		co.yield = yield
		t := co.vm.borrow(co.strand, nil, depth)
		t.L.Push(co.fn)
		n := co.deliver(t.L)
		if r := t.run(n); r != nil {
			r.keepTrace()
			co.moved, co.failed = nil, r
			return
		}
		co.moved = t.results()
		t.giveBack()
	})
}

// over is called when the body has ended.
func (co *coroutine) over() {
	co.state, co.fn, co.at = coDead, nil, nil
	delete(co.vm.coros.live, co)
}

// innermost answers the thread whose frames are the coroutine's.
func (co *coroutine) innermost() *thread { return co.at }

// pause is yield, called on the coroutine's goroutine.
func (co *coroutine) pause(t *thread) {
	co.state, co.at = coSuspended, t
	if !co.yield(struct{}{}) {
		panic(&abort{errKilled})
	}
	co.at = nil
}

func (cs *coroutines) add(co *coroutine) {
	if cs.live == nil {
		cs.live = map[*coroutine]struct{}{}
	}
	cs.live[co] = struct{}{}
}

// lose is called by the collector, without the baton.
func (cs *coroutines) lose(co *coroutine) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.lost = append(cs.lost, co)
}

// reap ends the coroutines that nothing can resume.
func (cs *coroutines) reap() {
	cs.mu.Lock()
	lost := cs.lost
	cs.lost = nil
	cs.mu.Unlock()
	for _, co := range lost {
		cs.end(co)
	}
}

// end unwinds a suspended coroutine.
func (cs *coroutines) end(co *coroutine) {
	if _, live := cs.live[co]; live && co.state == coSuspended {
		co.stop()
		co.over()
	}
}

func (cs *coroutines) endAll() {
	for len(cs.live) > 0 {
		before := len(cs.live)
		for co := range cs.live {
			cs.end(co)
		}
		if len(cs.live) == before {
			return // what is not suspended ends with its run
		}
	}
}

// openCoroutine makes the coroutine library.
func (vm *VM) openCoroutine() {
	vm.library("coroutine", map[string]lua.LGFunction{
		"create": coCreate, "resume": coResume, "yield": coYield, "status": coStatus,
		"wrap": coWrap, "running": coRunningNow, "isyieldable": coIsYieldable,
	})
}

func coCreate(l *lua.LState) int {
	l.Push(threadOf(l).vm.newCoroutine(checkCallable(l, "coroutine.create")))
	return 1
}

func checkCallable(l *lua.LState, place string) lua.LValue {
	v := l.Get(1)
	if !callable(l, v) {
		raiseAt(l, 1, "%s: argument 1: got %s, want a function", place, show(v))
	}
	return v
}

func checkCoroutine(l *lua.LState, place string) *coroutine {
	co := coroutineOf(l.Get(1))
	if co == nil {
		raiseAt(l, 1, "%s: argument 1: got %s, want a coroutine", place, show(l.Get(1)))
	}
	return co
}

func coResume(l *lua.LState) int {
	co := checkCoroutine(l, "coroutine.resume")
	if co.state != coSuspended {
		l.Push(lua.LFalse)
		l.Push(lua.LString("cannot resume " + coNames[co.state] + " coroutine"))
		return 2
	}
	r := co.resumeWith(l, 2)
	runtime.KeepAlive(l.Get(1))
	if r == nil {
		l.Push(lua.LTrue)
		return 1 + co.deliver(l)
	}
	if r.abort != nil {
		panic(r.abort)
	}
	l.Push(lua.LFalse)
	l.Push(r.value)
	return 2
}

// resumeWith hands over the arguments of l from index first on.
func (co *coroutine) resumeWith(l *lua.LState, first int) *raised {
	co.collect(l, first)
	return co.resume(threadOf(l))
}

// collect moves the values of l from index first on into the crossing.
func (co *coroutine) collect(l *lua.LState, first int) {
	co.moved = co.moved[:0]
	for i := first; i <= l.GetTop(); i++ {
		co.moved = append(co.moved, l.Get(i))
	}
}

// deliver pushes what crossed to l.
func (co *coroutine) deliver(l *lua.LState) int {
	for _, v := range co.moved {
		l.Push(v)
	}
	n := len(co.moved)
	clear(co.moved)
	return n
}

func coYield(l *lua.LState) int {
	t := threadOf(l)
	co := t.strand.co
	if co == nil {
		raiseAt(l, 1, "attempt to yield from outside a coroutine")
	}
	co.collect(l, 1)
	co.pause(t)
	return co.deliver(l)
}

func coStatus(l *lua.LState) int {
	l.Push(lua.LString(coNames[checkCoroutine(l, "coroutine.status").state]))
	return 1
}

// coWrap answers a function that resumes and raises what the body raised, the
// very value.
func coWrap(l *lua.LState) int {
	handle := threadOf(l).vm.newCoroutine(checkCallable(l, "coroutine.wrap"))
	l.Push(l.NewFunction(func(l *lua.LState) int {
		co := coroutineOf(handle)
		if co.state != coSuspended {
			raiseAt(l, 1, "cannot resume %s coroutine", coNames[co.state])
		}
		r := co.resumeWith(l, 1)
		runtime.KeepAlive(handle)
		if r != nil {
			r.again()
		}
		return co.deliver(l)
	}))
	return 1
}

// coRunningNow answers the running coroutine, nil outside of one.
func coRunningNow(l *lua.LState) int {
	if co := threadOf(l).strand.co; co != nil {
		if h := co.handle.Value(); h != nil {
			l.Push(h)
			return 1
		}
	}
	l.Push(lua.LNil)
	return 1
}

func coIsYieldable(l *lua.LState) int {
	l.Push(lua.LBool(threadOf(l).strand.co != nil))
	return 1
}
