package servers

import "syscall"

// dieWithParent has the kernel kill a server whose test process died without stopping it, by a timeout for example.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
