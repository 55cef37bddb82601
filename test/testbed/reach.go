// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/headgate/headgate/test/load"
)

// inARow is how many connections must succeed, one after the other, before a Service is taken to lead to live pods only:
// with one dead pod among four, all of them would miss it once in 5000 times.
const inARow = 30

// WaitReachable waits until this machine reaches the Service at address, and every connection leads somewhere: kube-proxy
// goes on for a moment to lead some to pods that are gone. No request is sent.
func (c *Cluster) WaitReachable(ctx context.Context, timeout time.Duration, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	return Wait(ctx, timeout, "the Service at "+u.Host+" to be reachable from this machine", func(ctx context.Context) error {
		for range inARow {
			conn, err := load.Dial(ctx, u.Host, 500*time.Millisecond)
			if err != nil {
				return err
			}
			if err := conn.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}
