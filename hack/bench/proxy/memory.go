// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

const (
	memoryCase = "memory"
	// crowd is how many connections are open in the second measurement.
	crowd = 1000
)

// memory is what a contender occupies, in bytes.
type memory struct {
	contender   string
	idle, crowd int
}

// memory starts everything anew, and measures before any request, and with connections of which each has served one.
func (s *setup) memory(ctx context.Context, o options) ([]memory, error) {
	fresh, err := setUp()
	if err != nil {
		return nil, err
	}
	defer fresh.tearDown()
	var all []memory
	for _, c := range fresh.contenders {
		if c.name == direct || len(o.contenders) > 0 && !slices.Contains(o.contenders, c.name) {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(2 * time.Second):
		}
		m := memory{contender: c.name, idle: c.resident()}
		conns := make([]net.Conn, 0, crowd)
		for range crowd {
			conn, err := net.Dial("tcp", c.http)
			if err != nil {
				return nil, err
			}
			conns = append(conns, conn)
			if _, err := fmt.Fprint(conn, "GET /ok/128 HTTP/1.1\r\nHost: bench\r\n\r\n"); err != nil {
				return nil, err
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			_ = response.Body.Close()
		}
		m.crowd = c.resident()
		for _, conn := range conns {
			_ = conn.Close()
		}
		fmt.Fprintf(os.Stderr, "%-45s %-18s idle %6.1f MB  %d connections %6.1f MB\n", memoryCase, c.name, megabytes(m.idle), crowd, megabytes(m.crowd))
		all = append(all, m)
	}
	return all, nil
}

func megabytes(n int) float64 { return float64(n) / 1e6 }
