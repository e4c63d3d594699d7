package luabind

import "syscall"

// childAttributes are those of every child. The system kills it when this
// process ends without having done so, as by kill -9; what it started itself it
// does not.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
