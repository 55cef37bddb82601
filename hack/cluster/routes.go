// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// route is one line of the kernel's IPv4 routing table.
type route struct {
	link   string
	prefix netip.Prefix
}

// parseRoutes reads the form of /proc/net/route: addresses are hexadecimal, with
// the lowest byte first.
func parseRoutes(table string) ([]route, error) {
	var routes []route
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		fields := strings.Fields(line)
		if i == 0 {
			continue // the header
		}
		if len(fields) < 8 {
			return nil, fmt.Errorf("routes: line %d: too few fields", i+1)
		}
		address, err := reversed(fields[1])
		if err != nil {
			return nil, fmt.Errorf("routes: line %d: %w", i+1, err)
		}
		mask, err := reversed(fields[7])
		if err != nil {
			return nil, fmt.Errorf("routes: line %d: %w", i+1, err)
		}
		ones := 0
		for _, b := range mask {
			ones += bits.OnesCount8(b)
		}
		routes = append(routes, route{fields[0], netip.PrefixFrom(netip.AddrFrom4(address), ones)})
	}
	return routes, nil
}

func reversed(field string) ([4]byte, error) {
	b, err := hex.DecodeString(field)
	if err != nil {
		return [4]byte{}, err
	}
	if len(b) != 4 {
		return [4]byte{}, fmt.Errorf("address %q: not four bytes", field)
	}
	slices.Reverse(b)
	return [4]byte(b), nil
}

// conflicts reports every wanted network that something else has a route to. The
// default route does not count, nor do routes over own, the cluster's bridge.
func conflicts(routes []route, own string, wanted ...string) error {
	var errs []error
	for _, w := range wanted {
		want := netip.MustParsePrefix(w)
		for _, r := range routes {
			if r.link == own || r.prefix.Bits() == 0 || !r.prefix.Overlaps(want) {
				continue
			}
			errs = append(errs, fmt.Errorf("network %s is needed, but %s is routed over %s: remove that route or link", want, r.prefix, r.link))
		}
	}
	return errors.Join(errs...)
}
