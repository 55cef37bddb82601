// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import _ "unsafe" // for linkname

// processor is the number of the processor (P) that the goroutine runs on. It may have moved on when this returns, so
// the number is only a hint for which of several words is likely not to be contended.
func processor() int {
	p := procPin()
	procUnpin()
	return p
}

// The runtime pushes these two for sync.Pool and keeps them for others; see the comments at their definitions.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
