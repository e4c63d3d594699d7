package luabind

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endSession ends what the leader left behind.
func (p *process) endSession(grace time.Duration) {
	defer p.over()
	if !p.signal(syscall.SIGTERM) {
		return // nobody is left
	}
	for end := time.Now().Add(grace); p.live(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.signal(syscall.SIGKILL)
			return
		}
	}
}

// signal sends to the whole session and says whether anybody was there: to the
// group of the leader at one blow, and to each process that has a group of its
// own, as a job of an interactive shell and what runs under timeout(1) have. The
// number of a session is not given away while it has members.
func (p *process) signal(s syscall.Signal) bool {
	leader := p.cmd.Process.Pid
	reached := syscall.Kill(-leader, s) == nil
	for _, pid := range inSession(leader) {
		if group, err := unix.Getpgid(pid); err == nil && group != leader && syscall.Kill(pid, s) == nil {
			reached = true
		}
	}
	return reached
}

// live says whether anybody in the session still runs. A member that has ended
// stays in it until its parent collects it, which the first process of a
// container may never do: such a one is dead, though it takes a signal.
func (p *process) live() bool {
	leader := p.cmd.Process.Pid
	members := inSession(leader)
	for _, pid := range members {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && runs(stat) {
			return true
		}
	}
	return len(members) == 0 && syscall.Kill(-leader, 0) == nil // the system lists no processes
}

// inSession lists the processes of a session, none where the system does not
// list its processes.
func inSession(leader int) (members []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if session, err := unix.Getsid(pid); err == nil && session == leader {
			members = append(members, pid)
		}
	}
	return members
}

// runs reads the state in "pid (name) state parent group …"; a name may hold
// anything.
func runs(stat []byte) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 2 && string(fields[0]) != "Z" && string(fields[0]) != "X"
}
