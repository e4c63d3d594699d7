package luabind

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// live is every process group that we started and have not ended yet.
var live struct {
	sync.Mutex
	groups map[*process]bool
}

// EndProcesses kills every process that scripts have started, with its group, at
// once and without waiting: for a host that ends now. A process that made itself
// a session of its own is out of reach.
func EndProcesses() {
	live.Lock()
	defer live.Unlock()
	for p := range live.groups {
		p.signal(syscall.SIGKILL)
	}
}

// begin starts the command in a session of its own: it has a process group to
// be ended by, no Ctrl-C of the terminal reaches it, and what asks at the
// terminal for a password fails at once instead of waiting unseen.
// [process.endGroup] is its counterpart.
func (p *process) begin() error {
	p.cmd.SysProcAttr = childAttributes()
	live.Lock() // before the start: EndProcesses must not miss it
	defer live.Unlock()
	if err := onStarter(p.cmd); err != nil {
		return err
	}
	if live.groups == nil {
		live.groups = map[*process]bool{}
	}
	live.groups[p] = true
	return nil
}

// over takes p from the live ones.
func (p *process) over() {
	live.Lock()
	defer live.Unlock()
	delete(live.groups, p)
}

// starter starts every command on one thread that lasts as long as the process:
// where a child is told of its parent's end, that is the end of the thread.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go starting(work)
	return work
})

func starting(work <-chan func()) {
	runtime.LockOSThread()
	for do := range work {
		do()
	}
}

func onStarter(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}
