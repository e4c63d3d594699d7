package luabind

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CollectAdopted collects the dead that the system has made children of this
// process, as it does with the orphans of the first process of a container, and
// answers how many those were: until somebody collects it, a dead process keeps
// its place in the table of processes. What this package has started is left to
// who waits for it; a program that starts others by itself must not call it.
func CollectAdopted() (collected int) {
	live.Lock() // a child is known as ours from its first moment on
	defer live.Unlock()
	for _, pid := range deadChildren() {
		if live.waited[pid] {
			continue
		}
		if got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == pid {
			collected++
		}
	}
	return collected
}

// deadChildren lists the children of this process that nobody has collected.
func deadChildren() (pids []int) {
	self := strconv.Itoa(os.Getpid())
	for _, pid := range processes() {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		if fields := statFields(stat); len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == self {
			pids = append(pids, pid)
		}
	}
	return pids
}
