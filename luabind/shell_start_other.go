//go:build !linux

package luabind

import "syscall"

// childAttributes are those of every child.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
