package luabind

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endSession ends the session: what is in it may go by itself for as long as
// patience and ctx last, then come TERM, grace and KILL. It answers what it could
// not end, and why, or "".
func (p *process) endSession(ctx context.Context, patience, grace time.Duration) (left string) {
	defer p.over()
	if p.gone(ctx, patience) || p.signal(syscall.SIGTERM) && p.gone(context.Background(), grace) {
		return ""
	}
	p.signal(syscall.SIGKILL)
	if p.gone(context.Background(), killGrace) {
		return ""
	}
	return p.unended(p.running())
}

// gone says whether the leader is collected and nobody in the session runs, or so
// it is before limit and ctx end.
func (p *process) gone(ctx context.Context, limit time.Duration) bool {
	for end := time.Now().Add(limit); !p.hasExited() || len(p.running()) > 0; time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
	}
	return true
}

// hasExited says whether the leader is collected.
func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// unended says why processes could not be ended, and what to do.
func (p *process) unended(pids []int) string {
	var all []string
	for i, pid := range pids {
		if i == 3 {
			all = append(all, fmt.Sprintf("so it is with %d more", len(pids)-i))
			break
		}
		why := "does not heed KILL: it waits in the kernel, as for a file system that does not answer, and ends when that does"
		if p.kill(pid, 0) == syscall.EPERM || p.kill(-pid, 0) == syscall.EPERM {
			why = fmt.Sprintf("cannot be ended, for it is another user's, as what sudo starts is: it runs on until "+
				"that user ends it, as sudo kill -KILL %d does; give such a command its own limit: sudo timeout 60 …", pid)
		}
		all = append(all, fmt.Sprintf("process %d%s %s", pid, nameOf(pid), why))
	}
	return strings.Join(all, "; ")
}

// nameOf answers " (name)", or nothing where the system does not say it.
func nameOf(pid int) string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (%s)", bytes.TrimSpace(name))
}

// signal sends to the whole session and says whether anybody took it: to the
// group of the leader at one blow, and to each process that has a group of its
// own, as a job of an interactive shell and what runs under timeout(1) have. The
// number of a session is not given away while it has members.
func (p *process) signal(s syscall.Signal) bool {
	leader := p.cmd.Process.Pid
	reached := p.kill(-leader, s) == nil
	for _, pid := range inSession(leader) {
		if group, err := unix.Getpgid(pid); err == nil && group != leader && p.kill(pid, s) == nil {
			reached = true
		}
	}
	return reached
}

// running lists who in the session still runs; where the system lists no
// processes, the leader stands for its group. A member that has ended stays until
// its parent collects it, which the first process of a container may never do:
// such a one is dead, though it takes a signal.
func (p *process) running() (pids []int) {
	leader := p.cmd.Process.Pid
	members := inSession(leader)
	if len(members) == 0 && syscall.Kill(-leader, 0) != syscall.ESRCH {
		return []int{leader}
	}
	for _, pid := range members {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && runs(stat) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inSession lists the processes of a session, none where the system does not
// list its processes.
func inSession(leader int) (members []int) {
	for _, pid := range processes() {
		if session, err := unix.Getsid(pid); err == nil && session == leader {
			members = append(members, pid)
		}
	}
	return members
}

// processes lists what the system runs, nothing where it does not say it.
func processes() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// runs says whether a process has not ended, by its state.
func runs(stat []byte) bool {
	fields := statFields(stat)
	return len(fields) > 2 && string(fields[0]) != "Z" && string(fields[0]) != "X"
}

// statFields answers "state parent group …" of "pid (name) state parent group …";
// a name may hold anything.
func statFields(stat []byte) [][]byte {
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}
