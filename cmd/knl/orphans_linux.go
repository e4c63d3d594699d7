package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knl-run/knl/luabind"
)

// collectOrphans has the first process of a container, as knl is by ENTRYPOINT,
// collect the orphans of all others, which it is given and nobody else can collect
// when they die. The same is true of a process that has asked for those below it.
func collectOrphans() {
	if os.Getpid() != 1 && !isSubreaper() {
		return
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	go func() {
		for range died {
			luabind.CollectAdopted()
		}
	}()
}

// isSubreaper says whether who started knl has made it a subreaper.
func isSubreaper() bool {
	var is int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&is)), 0, 0, 0)
	return err == nil && is != 0
}
