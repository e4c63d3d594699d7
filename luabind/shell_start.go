package luabind

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// live is every process that we started and have not ended yet, each the leader
// of a session, and who ends them when we cannot.
var live = struct {
	sync.Mutex
	leaders map[*process]bool
	watcher *watcher
	waited  map[int]bool // children that somebody here waits for, the watcher too
}{leaders: map[*process]bool{}, waited: map[int]bool{}}

// EndProcesses kills every process that scripts have started, with its session,
// at once and without waiting: for a host that ends now. A process that made
// itself a session of its own is out of reach.
func EndProcesses() {
	live.Lock()
	defer live.Unlock()
	for p := range live.leaders {
		p.signal(syscall.SIGKILL)
	}
}

// begin starts the command in a session of its own, by which all that it starts
// is ended: no Ctrl-C of the terminal reaches it, and what asks at the terminal
// for a password fails at once instead of waiting unseen. [process.endSession] is
// its counterpart.
func (p *process) begin() error {
	p.cmd.SysProcAttr = childAttributes()
	live.Lock() // before the start: EndProcesses must not miss it
	defer live.Unlock()
	if err := onStarter(p.cmd); err != nil {
		return err
	}
	live.leaders[p], live.waited[p.cmd.Process.Pid] = true, true
	watch(p)
	return nil
}

// await waits for the leader.
func (p *process) await() {
	p.cmd.Wait() // its answer is in ProcessState
	live.Lock()
	delete(live.waited, p.cmd.Process.Pid)
	live.Unlock()
	close(p.exited)
}

// over takes p from the live ones.
func (p *process) over() {
	live.Lock()
	defer live.Unlock()
	delete(live.leaders, p)
	if live.watcher != nil {
		live.watcher.tell("over", p.cmd.Process.Pid) // else the next to begin finds out
	}
}

// watch tells the watcher of p, or a new one of all that live where there is none
// or it has gone.
func watch(p *process) {
	if live.watcher != nil {
		if live.watcher.tell("begun", p.cmd.Process.Pid) {
			return
		}
		live.watcher.end()
		delete(live.waited, live.watcher.cmd.Process.Pid)
	}
	if live.watcher, _ = newWatcher(); live.watcher == nil {
		return
	}
	live.waited[live.watcher.cmd.Process.Pid] = true
	for p := range live.leaders {
		live.watcher.tell("begun", p.cmd.Process.Pid)
	}
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
