// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"syscall"
	"unsafe"
)

// core is the number of the core that the thread runs on (RDPID), in half the time that asking the runtime for its
// processor takes. The thread may have moved on when this returns.
//
//go:noescape
func core() int

// hasCore reports whether the processor has RDPID (CPUID 7, ECX bit 22).
//
//go:noescape
func hasCore() bool

// trustCore reports whether core tells what the kernel does: a kernel that is not Linux's own, such as a sandbox's, may
// leave the register that it reads unset.
func trustCore() bool {
	if !hasCore() {
		return false
	}
	for range 16 {
		before, found, after := kernelCore(), core(), kernelCore()
		if before == after { // else the thread has moved meanwhile
			return found == before
		}
	}
	return false
}

// kernelCore asks the kernel (getcpu, which package syscall has no number for), -1 if it does not say.
func kernelCore() int {
	const getcpu = 309
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(getcpu, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int(cpu)
}
