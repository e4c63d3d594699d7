package luabind

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// endGroup ends what the leader left behind.
func (p *process) endGroup(grace time.Duration) {
	defer p.over()
	if p.signal(syscall.SIGTERM) != nil {
		return // nobody is left
	}
	for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !p.live() {
			return
		}
	}
	p.signal(syscall.SIGKILL)
}

// signal sends to the whole group and answers an error when it is empty. The
// number of a group is not given away while it has members.
func (p *process) signal(s syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, s) }

// live says whether anybody in the group still runs. A member that has ended
// stays in it until its parent collects it, which the first process of a
// container may never do: such a one is dead, though it takes a signal.
func (p *process) live() bool {
	return p.signal(0) == nil && groupRuns(p.cmd.Process.Pid)
}

// groupRuns looks for a running member of a process group. Where the system
// does not list its processes the answer is yes.
func groupRuns(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	for _, name := range stats {
		if text, err := os.ReadFile(name); err == nil && runsIn(text, group) {
			return true
		}
	}
	return false
}

// runsIn reads "pid (name) state parent group …"; a name may hold anything.
func runsIn(stat []byte, group int) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
		return false
	}
	return string(fields[0]) != "Z" && string(fields[0]) != "X"
}
