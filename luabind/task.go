package luabind

import (
	"context"
	"fmt"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Task is a line of Lua with its own goroutine, spawned in a scope. A task ends
// after every task that it spawned: nothing runs on when a run has ended.
type Task struct {
	vm     *VM
	id     int64
	name   string
	strand *strand
	cancel context.CancelCauseFunc
	grace  time.Duration // that it may run on when it was cancelled
	watch  func() bool   // ends what aborts it then; nil for the script itself
	scoped bool          // fn gets a scope of its own
	origin string        // the traceback of who spawned it
	done   chan struct{}
	out    []lua.LValue
	failed *raised
	joined bool
	awaits *Task // whose end it waits for; the baton guards it

	mu      sync.Mutex
	aborted bool
	onAbort []func()
}

// scope is a set of tasks that end before the body that opened it returns. The
// baton guards it.
type scope struct {
	name   string
	ctx    context.Context
	cancel context.CancelCauseFunc
	live   map[*Task]struct{}
	failed []*Task // ended with an error
	closed bool
}

// maxLive bounds the tasks of one scope that have not ended: a loop that spawns
// without end is an error and not an outage.
const maxLive = 1024

// defaultGrace is how long a cancelled body may take to end by itself. Then its
// Lua is ended: in a cancelled task every wait ends at once, so that a loop which
// goes on regardless would keep all others from running.
const defaultGrace = time.Second

// cancelCause is why a task is cancelled; it is a [context.Canceled].
type cancelCause string

func (c cancelCause) Error() string { return string(c) }
func (c cancelCause) Unwrap() error { return context.Canceled }

const (
	errScopeCancelled cancelCause = "task cancelled"                // by a script
	errExceeded       cancelCause = "task cancelled: time exceeded" // by with_timeout
)

// TaskOf answers the task that a host function's context belongs to, nil when
// the context does not come from a script.
func TaskOf(ctx context.Context) *Task {
	if s, ok := ctx.Value(strandKey{}).(*strand); ok {
		return s.task
	}
	return nil
}

// ID answers the number of the task in its VM.
func (t *Task) ID() int64 { return t.id }

// Name answers what the task was called at its spawn, "main" for the script.
func (t *Task) Name() string { return t.name }

// Aborted says whether the task's Lua was ended because it outlived its grace.
func (t *Task) Aborted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.aborted
}

// OnAbort calls fn when the task is aborted, at once if it was: for what must
// not wait until its Lua is gone. fn runs without the baton.
func (t *Task) OnAbort(fn func()) {
	t.mu.Lock()
	if !t.aborted {
		t.onAbort = append(t.onAbort, fn)
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	fn()
}

// abort ends the Lua of the task; blocking calls end with its context.
func (t *Task) abort(cause error) {
	t.strand.stop.CompareAndSwap(nil, &AbortError{Cause: cause})
	t.mu.Lock()
	fns := t.onAbort
	t.aborted, t.onAbort = true, nil
	t.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
}

// abortLate aborts the task when its grace is over. It runs when the task's
// context is done, whoever ended it: a scope, a script, the timeout of a tool.
func (t *Task) abortLate() {
	time.AfterFunc(t.grace, func() {
		if !t.ended() {
			t.abort(context.Cause(t.strand.ctx))
		}
	})
}

func (vm *VM) newTask(ctx context.Context, name string) *Task {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &Task{vm: vm, id: vm.taskIDs.Add(1), name: name, cancel: cancel, grace: defaultGrace, done: make(chan struct{})}
	t.strand = newStrand(ctx, t, nil)
	return t
}

// body runs fn and then waits for all that it spawned. It needs the baton.
func (t *Task) body(fn lua.LValue, args []lua.LValue) ([]lua.LValue, *raised) {
	defer func() {
		if t.watch != nil {
			t.watch()
		}
		t.cancel(nil)
	}()
	if t.scoped {
		args = append(args, t.vm.Wrap(scopeType, t.strand.newScope(t.name)))
	}
	out, r := t.vm.borrow(t.strand, nil, 0).call(fn, args)
	return out, t.strand.endBase(t.vm, r)
}

// spawn starts fn as a task of sc, called by th. It has the grace of the task
// that spawns it.
func (sc *scope) spawn(th *thread, name string, fn lua.LValue) *Task {
	t := th.vm.newTask(sc.ctx, name)
	if by := th.strand.task; by != nil {
		t.grace = by.grace
	}
	t.strand.parent = th.strand.home
	if t.name == "" {
		t.name = fmt.Sprintf("task %d", t.id)
	}
	t.origin = fmt.Sprintf("\t(spawned as %q by)\n%s", t.name, th.traceback(1))
	sc.live[t], th.vm.tasks[t] = struct{}{}, struct{}{}
	go t.main(sc, fn, th.vm.baton.ask())
	return t
}

// main is the goroutine of a spawned task. Its turn was asked for at the spawn,
// so that tasks start in the order they were spawned.
func (t *Task) main(sc *scope, fn lua.LValue, turn <-chan struct{}) {
	defer close(t.done)
	<-turn
	defer t.vm.baton.pass()
	if ctx := t.strand.ctx; ctx.Err() != nil {
		t.failed = &raised{value: t.vm.errorValue(cancelled(ctx), "")}
		t.cancel(nil)
	} else {
		t.watch = context.AfterFunc(ctx, t.abortLate)
		t.out, t.failed = t.body(fn, nil)
	}
	delete(sc.live, t)
	delete(t.vm.tasks, t)
	if t.failed != nil {
		t.failed.keepTrace()
		sc.failed = append(sc.failed, t)
	}
}

// newScope opens a scope in s.
func (s *strand) newScope(name string) *scope {
	ctx, cancel := context.WithCancelCause(s.ctx)
	sc := &scope{name: name, ctx: ctx, cancel: cancel, live: map[*Task]struct{}{}}
	s.scopes = append(s.scopes, sc)
	return sc
}

// innermost answers the scope that a spawn without one means. A task and an
// entry from Go have one of their own around everything.
func (s *strand) innermost() *scope {
	for _, of := range []*strand{s, s.home} {
		if n := len(of.scopes); n > 0 {
			return of.scopes[n-1]
		}
	}
	return s.home.newScope("task")
}

// endBase leaves the scope around everything, when one was opened.
func (s *strand) endBase(vm *VM, r *raised) *raised {
	for len(s.scopes) > 0 {
		s.leave(vm, s.scopes[len(s.scopes)-1], r)
	}
	return r
}

// leave waits for the tasks of sc, having cancelled them when its body failed
// with r, and reports what went wrong in those that nobody joined.
func (s *strand) leave(vm *VM, sc *scope, r *raised) {
	if r != nil {
		r.keepTrace()
		sc.cancel(errScopeCancelled)
	}
	for len(sc.live) > 0 {
		for t := range sc.live {
			t.wait()
			break
		}
	}
	sc.closed = true
	sc.cancel(nil)
	for i, open := range s.scopes {
		if open == sc {
			s.scopes = append(s.scopes[:i:i], s.scopes[i+1:]...)
			break
		}
	}
	for _, t := range sc.failed {
		t.report(s)
	}
}

// endTasks ends what is left of a run: tasks of scopes that a coroutine opened
// and never left, because nobody resumed it.
func (vm *VM) endTasks() {
	for len(vm.tasks) > 0 {
		for t := range vm.tasks {
			t.abort(errScopeCancelled)
			t.cancel(errScopeCancelled)
			t.wait()
			break
		}
	}
}

// yield lets the Lua that is ready run first.
func (vm *VM) yield() {
	vm.baton.pass()
	vm.baton.take()
	vm.meter.hurry()
}

// wait lets other Lua run until t has ended, whatever happens to the waiting
// task: nobody leaves a scope before its tasks.
func (t *Task) wait() {
	t.vm.baton.pass()
	<-t.done
	t.vm.baton.take()
	t.vm.meter.hurry()
}

// report tells the error of a task that nobody joined, on the strand that leaves
// its scope, or logs it. That a task was cancelled is no news, and a limit or the
// end of the run is the run's own error.
func (t *Task) report(s *strand) {
	if t.joined || t.vm.meter.run.Err() != nil {
		return
	}
	if t.failed.abort != nil {
		if stop, ok := t.failed.abort.err.(*AbortError); ok {
			t.vm.config.Warn(fmt.Sprintf("task %q was aborted: %s\n%s", t.name, stop, stop.Traceback))
		}
		return
	}
	if err, ok := ErrorFrom(t.failed.value); ok {
		if _, ok := err.(*CancelError); ok {
			return
		}
	}
	if !s.tellUnjoined(t) {
		t.vm.config.Warn(fmt.Sprintf("task %q: %s\n%s", t.name, t.vm.textOf(t.failed), t.failed.trace))
	}
}
