package luabind

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// Limits bound one run. Zero means the default: no bound on instructions and
// time (Ctrl-C always works), 1 GiB of memory, 256 MiB for one string. A
// negative number means no bound.
type Limits struct {
	Instructions int64         // of the VM, over all tasks and coroutines
	Time         time.Duration // wall time of the run
	Memory       int64         // bytes of the process's heap and stacks
	String       int64         // bytes of one string that a builtin or .. makes
}

const (
	defaultMemory = 1 << 30
	defaultString = 256 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Memory == 0 {
		l.Memory = defaultMemory
	}
	if l.String == 0 {
		l.String = defaultString
	}
	return l
}

const (
	lookEvery   = 1024 // instructions between two looks
	sampleEvery = 64   // looks between two samples of the memory
)

// meter counts the instructions of a VM and looks now and then whether its Lua
// may go on. The baton guards it.
//
// Every thread of the VM is its LState's context, and the main loop asks the
// context's Done before each instruction: that is the count. It is exact,
// because the grant never goes beyond what is left of the budget.
type meter struct {
	left    int   // of the grant
	grant   int   // instructions until the next look
	total   int64 // instructions before this grant
	limits  Limits
	run     context.Context // the run's; its end is the end of all Lua
	end     context.CancelCauseFunc
	looks   int
	charged int64 // bytes made by builtins since the last sample
	used    int64 // bytes at the last sample
	spent   error // the limit that was hit; for good
}

// begin starts the count of a new run, which a limit ends by end.
func (m *meter) begin(ctx context.Context, end context.CancelCauseFunc, limits Limits) {
	*m = meter{run: ctx, end: end, limits: limits}
}

// spend ends the run because of err: its Lua, and whatever any of it waits for.
func (m *meter) spend(err error) error {
	m.spent = err
	m.end(err)
	return err
}

// over answers what has ended the run of t. A call that a limit or the end of the
// run cut short may be the last of its function: no instruction comes to see it.
func (m *meter) over(t *thread) error {
	if m.spent == nil && m.run.Err() != nil {
		return m.spend(t.runEnded(context.Cause(m.run)))
	}
	return m.spent
}

// hurry makes the next instruction look.
func (m *meter) hurry() {
	m.total += int64(m.grant - max(m.left, 0))
	m.grant, m.left = 0, 0
}

// look settles the grant and gives the next one, or ends the Lua of t.
func (m *meter) look(t *thread) {
	m.total += int64(m.grant)
	m.grant, m.left = 0, 0
	if err := m.overdrawn(t); err != nil {
		panic(&abort{err})
	}
	if err := t.ended(); err != nil {
		panic(&abort{err})
	}
	m.grant = lookEvery
	if n := m.limits.Instructions; n > 0 {
		m.grant = int(min(lookEvery, n-m.total))
	}
	m.left = m.grant - 1
}

// overdrawn answers what has ended the run, or ends it now.
func (m *meter) overdrawn(t *thread) error {
	if err := m.over(t); err != nil {
		return err
	}
	if n := m.limits.Instructions; n > 0 && m.total >= n {
		return m.spend(t.limit("instructions", "limit of %d instructions reached", n))
	}
	if m.looks++; m.looks >= sampleEvery {
		return m.sample(t)
	}
	return nil
}

// sample measures the memory. Above the limit it collects first, and what then
// still fills three quarters of it is too much: a script at the brim would
// otherwise spend its time in the collector.
func (m *meter) sample(t *thread) error {
	m.looks, m.charged = 0, 0
	limit := m.limits.Memory
	if limit < 0 {
		return nil
	}
	if m.used = memoryUsed(); m.used <= limit {
		return nil
	}
	runtime.GC()
	if m.used = memoryUsed(); m.used <= limit/4*3 {
		return nil
	}
	return m.spend(t.limit("memory", "memory limit of %d MiB reached", limit>>20))
}

// charge counts n bytes that a builtin is about to make, and ends the Lua of t
// before they would pass the limit.
func (m *meter) charge(t *thread, n int64) {
	m.charged += n
	limit := m.limits.Memory
	if limit < 0 || (m.used+m.charged <= limit && m.charged < limit/8) {
		return
	}
	pending := n
	err := m.spent
	if err == nil {
		err = m.sample(t)
	}
	if err == nil && m.used+pending > limit { // a sample within the limit has not asked the collector
		runtime.GC()
		m.used = memoryUsed()
	}
	if err == nil && m.used+pending > limit {
		err = m.spend(t.limit("memory", "memory limit of %d MiB reached by a string of %d MiB", limit>>20, pending>>20))
	}
	if err != nil {
		m.hurry()
		panic(&abort{err})
	}
	m.charged = pending
}

// step counts n instructions of work inside a builtin and looks when a grant
// is used up.
func (t *thread) step(n int) {
	m := &t.vm.meter
	for m.left -= n; m.left < 0; {
		over := -m.left
		m.left = 0
		m.look(t)
		m.left -= over
	}
}

// room raises when a builtin is about to make a string of n bytes that is
// longer than the limit, and charges it.
func (t *thread) room(n int64, what string) {
	if n < 1<<12 {
		return
	}
	if limit := t.vm.meter.limits.String; limit > 0 && n > limit {
		raiseAt(t.L, t.hostLevel(), "%s: the result would have %d bytes, at most %d are allowed", what, n, limit)
	}
	t.vm.meter.charge(t, n)
}

// hostLevel answers the level of who is to blame: the caller of the running Go
// function, or the running Lua function for an operator.
func (t *thread) hostLevel() int {
	level := 0
	eachFrame(t.L, func(f *frame) bool {
		if f.fn.IsG {
			level = 1
		}
		return false
	})
	return level
}

// ended answers why the strand of t must stop.
func (t *thread) ended() error {
	s := t.strand.home
	if a := s.aborted(); a != nil {
		return &AbortError{Cause: a.Cause, Traceback: t.traceback(0)}
	}
	if !s.entry || s.ctx.Err() == nil {
		return nil
	}
	if s.late.IsZero() {
		s.late = time.Now()
	}
	if time.Since(s.late) < defaultGrace {
		return nil
	}
	return &AbortError{Cause: cancelled(s.ctx), Traceback: t.traceback(0)}
}

func (t *thread) limit(name, format string, args ...any) *LimitError {
	return &LimitError{Limit: name, Message: t.where() + fmt.Sprintf(format, args...), Traceback: t.traceback(0)}
}

// errTime is the cause of a run's context when its wall time is over.
var errTime = errors.New("time limit reached")

func (t *thread) runEnded(cause error) error {
	if errors.Is(cause, errTime) {
		return t.limit("time", "time limit of %s reached", t.vm.meter.limits.Time)
	}
	return &AbortError{Cause: fmt.Errorf("%srun cancelled: %w", t.where(), cause), Traceback: t.traceback(0)}
}

// memoryUsed answers the bytes of the process's heap objects and stacks.
func memoryUsed() int64 {
	s := [2]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64() + s[1].Value.Uint64())
}

// Charge counts n bytes that the host function is about to make for the script
// against the memory limit.
func (c *Call) Charge(n int) { c.thread.vm.meter.charge(c.thread, int64(n)) }
