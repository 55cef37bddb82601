//go:build !linux

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redirect

import "fmt"

// Apply refuses: there is no nftables here.
func Apply(Network, []Pair) error {
	return fmt.Errorf("%w: redirects need Linux", ErrRefused)
}
