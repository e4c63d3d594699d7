package main

import (
	"os"
	"strconv"
	"syscall"
)

// keepInherited keeps from every process that knl starts what knl itself was
// started with above stderr: a command of a script gets descriptors 0 to 2 and no
// others, so no file that a shell had opened for knl alone and no lock of its.
func keepInherited() {
	if closeOnExecFrom(3) {
		return
	}
	entries, _ := os.ReadDir("/dev/fd") // the descriptors of this process, where a system lists them
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= 3 {
			syscall.CloseOnExec(fd)
		}
	}
}
