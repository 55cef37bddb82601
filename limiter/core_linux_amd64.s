// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func core() int
TEXT ·core(SB), NOSPLIT, $0-8
	BYTE $0xf3; BYTE $0x0f; BYTE $0xc7; BYTE $0xf8 // RDPID RAX, which the assembler does not know
	ANDL $0xfff, AX // above: the number of the NUMA node
	MOVQ AX, ret+0(FP)
	RET

// func hasCore() bool
TEXT ·hasCore(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JB   done
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $22, CX
	ANDL $1, CX
	MOVB CX, ret+0(FP)
done:
	RET
