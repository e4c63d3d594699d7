package luabind

import "syscall"

// childAttributes are those of every child. The system kills it when this
// process ends without having done so, before the [watcher] knew of it too.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
