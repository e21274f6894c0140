//go:build !linux

package servers

import "syscall"

// dieWithParent asks for nothing where the kernel cannot do it. A server that outlives its test process ends there when it
// next prints something, since nobody reads it.
func dieWithParent() *syscall.SysProcAttr { return nil }
