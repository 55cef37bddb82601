// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package port finds ports for programs that a test starts.
package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Free returns a port that nobody uses now. It lies below those that the kernel gives to connections: one of these may be taken
// by any client between the look and the listen.
func Free() (int, error) {
	const first, count = 20_000, 12_000
	var last error
	for range 100 {
		p := first + rand.IntN(count)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", p))
		if err != nil {
			last = err
			continue
		}
		return p, l.Close()
	}
	return 0, errors.Join(errors.New("no port is free"), last)
}
