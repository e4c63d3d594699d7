package luabind

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// TaskModule is std.task: tasks that end before the scope that spawned them.
var TaskModule = &Module{
	Name: "std.task",
	Doc:  "Tasks. Their waits overlap, their Lua does not: a task runs until it waits, yields or ends.",
	Funcs: []Func{
		{Name: "scope", Args: []Arg{{Name: "name", Kind: Anything, Doc: "shown in errors; fn may stand here", Type: "string|fun(scope: std.scope): ...", Optional: true}, {Name: "fn", Kind: Function, Type: "fun(scope: std.scope): ...", Doc: "what the scope is for", Optional: true}}, Returns: "...",
			Doc: "Calls fn(scope) and returns what it returned, once every task of the scope has ended. An error of fn cancels them first and is raised again.", Fn: taskScope},
		{Name: "spawn", Args: spawnArgs, Returns: "std.task",
			Doc: "Starts fn as a task of the innermost scope, else of the running task.", Fn: taskSpawn},
		{Name: "join", Args: []Arg{taskArg}, Returns: "...", Doc: "Waits for the task; returns what it returned or raises what it raised.", Fn: taskJoin},
		{Name: "cancel", Args: []Arg{taskArg}, Doc: "Cancels the task: its waits end with \"task cancelled\".", Fn: taskCancel},
		{Name: "with_timeout", Args: []Arg{{Name: "ms", Kind: Milliseconds, Doc: "milliseconds"}, {Name: "fn", Kind: Function, Type: "fun(scope: std.scope): ...", Doc: "what the time is for"},
			{Name: "opts", Kind: Table, Optional: true, Fields: []Arg{{Name: "grace_ms", Kind: Milliseconds, Optional: true, Doc: "how long fn may take to end once cancelled (1000)"}}}}, Returns: "...",
			Doc: "Calls fn(scope) in a task that is cancelled after ms milliseconds and, after the grace, aborted; then raises an error that says \"exceeded\".", Fn: taskWithTimeout},
		{Name: "sleep", Args: []Arg{{Name: "ms", Kind: Milliseconds, Doc: "milliseconds"}}, Doc: "Waits; other tasks run.", Fn: taskSleep},
		{Name: "yield", Doc: "Lets the tasks that are ready run first.", Fn: taskYield},
		{Name: "checkpoint", Doc: "Raises \"task cancelled\" when the running task was cancelled.", Fn: taskCheckpoint},
		{Name: "cancelled", Returns: "boolean", Doc: "Whether the running task was cancelled.", Fn: taskCancelled},
		{Name: "current", Returns: "{ id: integer, name: string, cancelled: boolean }?", Doc: "The running task, nil in the script's own.", Fn: taskCurrent},
		{Name: "unjoined", Args: []Arg{{Name: "fn", Kind: Function, Optional: true, Type: "fun(raised: any, traceback: string, name: string)", Doc: "nothing: the log, as at the start"}}, Returns: "function?",
			Doc: "Sets what is told of the error of a task that nobody joined, in the place of the log; answers what was set before.", Fn: taskUnjoined},
	},
	Types: []*Type{scopeType, taskType},
}

var (
	taskArg   = Arg{Name: "task", Kind: Userdata, Type: "std.task", Doc: "what spawn answered"}
	spawnArgs = []Arg{{Name: "fn", Kind: Function, Type: "fun(): ..."}, {Name: "opts", Kind: Table, Optional: true, Type: "std.spawn_opts", Fields: []Arg{{Name: "name", Kind: Text, Optional: true, Doc: "shown in logs and tracebacks"}}}}
	scopeType = &Type{Name: "scope", Doc: "A set of tasks that end before the function that it was made for returns."}
	taskType  = &Type{Name: "task", Doc: "The handle of a spawned task.", Tostring: func(v any) string { return fmt.Sprintf("task %q", v.(*Task).name) }}
)

// The methods are set here, because they and the types refer to each other.
func init() {
	scopeType.Methods = []Func{
		{Name: "spawn", Args: spawnArgs, Returns: "std.task", Doc: "Starts fn as a task of this scope.", Fn: scopeSpawn},
		{Name: "cancel", Doc: "Cancels every task of the scope; one that goes on regardless is aborted after a second.", Fn: scopeCancel},
	}
	taskType.Methods = []Func{
		{Name: "join", Returns: "...", Doc: "Waits for the task; returns what it returned or raises what it raised.", Fn: taskJoin},
		{Name: "cancel", Doc: "Cancels the task: its waits end with \"task cancelled\".", Fn: taskCancel},
	}
}

func taskScope(c *Call) (int, error) {
	name, body := "scope", 1
	if s, ok := c.Arg(1).(lua.LString); ok {
		name, body = string(s), 2
	}
	fn := c.Func(body)
	s := c.thread.strand
	sc := s.newScope(name)
	out, r := c.thread.child().call(fn, []lua.LValue{c.VM().Wrap(scopeType, sc)})
	s.leave(c.VM(), sc, r)
	if r != nil {
		r.again()
	}
	return c.Return(out...)
}

func taskSpawn(c *Call) (int, error) { return c.spawn(c.thread.strand.innermost()) }

func scopeSpawn(c *Call) (int, error) { return c.spawn(Self[*scope](c)) }

func (c *Call) spawn(sc *scope) (int, error) {
	fn, name := c.Func(1), c.Options(2).String("name", "")
	if sc.closed {
		return 0, c.Mistake("scope %q has ended", sc.name)
	}
	if len(sc.live) >= maxLive {
		return 0, c.Mistake("scope %q has %d live tasks, at most that many (join some first)", sc.name, maxLive)
	}
	return c.Return(c.VM().Wrap(taskType, sc.spawn(c.thread, name, fn)))
}

func scopeCancel(c *Call) (int, error) {
	Self[*scope](c).cancel(errScopeCancelled)
	return 0, nil
}

// task answers the receiver of a method or the first argument of a function.
func (c *Call) task() *Task {
	if c.at.self != nil {
		return Self[*Task](c)
	}
	if ud, ok := c.Arg(1).(*lua.LUserData); ok {
		if t, ok := ud.Value.(*Task); ok {
			return t
		}
	}
	c.fail("%s", c.argText(1, "a task (what spawn returned)"))
	return nil
}

func taskCancel(c *Call) (int, error) {
	c.task().cancel(errScopeCancelled)
	return 0, nil
}

func taskJoin(c *Call) (int, error) {
	t := c.task()
	for w := t; w != nil; w = w.awaits {
		for s := c.thread.strand.home; s != nil; s = s.parent {
			if s.task == w {
				return 0, c.Mistake("%q cannot be joined here, it waits for the running task", t.name)
			}
		}
	}
	if !t.ended() {
		if me := c.thread.strand.home.task; me != nil {
			me.awaits = t
			defer func() { me.awaits = nil }()
		}
		err := c.Block(func(ctx context.Context) error {
			select {
			case <-t.done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return c.joined(t)
}

func (t *Task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// joined answers what an ended task returned or raises what it raised. That a
// task was aborted is an ordinary error for others.
func (c *Call) joined(t *Task) (int, error) {
	t.joined = true
	r := t.failed
	if r == nil {
		return c.Return(t.out...)
	}
	if r.abort == nil {
		(&raised{value: r.value, at: r.at, trace: r.trace, place: r.place}).again()
	}
	var stop *AbortError
	if errors.As(r.abort.err, &stop) && c.VM().meter.run.Err() == nil {
		return 0, &abortedError{t.name, stop}
	}
	panic(r.abort)
}

// abortedError is the abort of another task.
type abortedError struct {
	name string
	stop *AbortError
}

func (e *abortedError) Error() string {
	return fmt.Sprintf("task %q was aborted: %s", e.name, e.stop.Cause)
}

func taskWithTimeout(c *Call) (int, error) {
	after := Span(c.millis(1), time.Millisecond)
	fn := c.Func(2)
	grace := c.Options(3).Millis("grace_ms", defaultGrace)
	s := c.thread.strand
	sc := s.newScope("with_timeout")
	t := sc.spawn(c.thread, "with_timeout", fn)
	t.scoped, t.grace = true, grace // it needs the baton to begin
	var exceeded atomic.Bool
	soft := time.AfterFunc(after, func() {
		exceeded.Store(true)
		t.cancel(errExceeded)
	})
	t.wait()
	soft.Stop()
	t.joined = true
	s.leave(c.VM(), sc, nil)
	if exceeded.Load() {
		return 0, &exceededError{c.Arg(1).String()}
	}
	return c.joined(t)
}

// exceededError is what with_timeout raises; its kind is "timeout".
type exceededError struct{ ms string }

func (e *exceededError) Error() string { return "exceeded " + e.ms + " ms" }
func (e *exceededError) Unwrap() error { return context.DeadlineExceeded }

func taskSleep(c *Call) (int, error) {
	d := Span(c.millis(1), time.Millisecond)
	return 0, c.Block(func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// millis answers argument i, milliseconds.
func (c *Call) millis(i int) float64 {
	if !Milliseconds.accepts(c.L, c.Arg(i)) {
		c.refuse(i, Milliseconds)
	}
	return c.Number(i)
}

func taskYield(c *Call) (int, error) {
	c.VM().yield()
	return 0, nil
}

func taskCheckpoint(c *Call) (int, error) {
	if c.Ctx().Err() != nil {
		return 0, cancelled(c.Ctx())
	}
	return 0, nil
}

func taskCancelled(c *Call) (int, error) {
	return c.Return(lua.LBool(c.Ctx().Err() != nil))
}

func taskCurrent(c *Call) (int, error) {
	t := c.thread.strand.home.task
	if t == nil || t.name == "main" {
		return c.Return(lua.LNil)
	}
	tbl := c.L.CreateTable(0, 3)
	tbl.RawSetString("id", lua.LNumber(t.id))
	tbl.RawSetString("name", lua.LString(t.name))
	tbl.RawSetString("cancelled", lua.LBool(c.Ctx().Err() != nil))
	return c.Return(tbl)
}
