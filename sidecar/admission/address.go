// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// addressPart is the client's address as a part of a key.
type addressPart struct {
	v4, v6 int    // bits that count
	hops   int    // trusted entries of X-Forwarded-For; 0 = none
	header string // canonical; holds the address; empty = none
}

func compileAddress(in *quotav1.ClientIP) (*addressPart, error) {
	out := &addressPart{v4: int(in.GetIpv4Prefix()), v6: int(in.GetIpv6Prefix()), hops: int(in.GetTrustedHops())}
	if out.v4 == 0 {
		out.v4 = 32
	}
	if out.v6 == 0 {
		out.v6 = 64
	}
	if out.v4 < 0 || out.v4 > 32 || out.v6 < 0 || out.v6 > 128 {
		return nil, fmt.Errorf("client address cut to /%d (IPv4) or /%d (IPv6)", out.v4, out.v6)
	}
	if in.GetHeader() != "" {
		out.header = canonical(in.GetHeader())
	}
	if out.hops < 0 || out.hops > maxHops || out.hops > 0 && out.header != "" {
		return nil, fmt.Errorf("client address by %d trusted hops and header %q", out.hops, out.header)
	}
	return out, nil
}

const (
	maxHops      = 16
	forwardedFor = "X-Forwarded-For"
)

// value is the client's address, cut. What a trusted proxy should have written and did not write is no reason to forget who
// opened the connection: the peer counts then.
func (a *addressPart) value(r *reading) (netip.Addr, bool) {
	client := r.Peer
	switch {
	case a.hops > 0:
		lines, _ := r.lines(forwardedFor)
		if written, ok := entryFromRight(lines, a.hops); ok {
			client = written
		}
	case a.header != "":
		if line, ok := r.first(a.header); ok {
			if written, ok := parseAddress(line); ok {
				client = written
			}
		}
	}
	return a.cut(client)
}

// cut drops the bits that do not count.
func (a *addressPart) cut(address netip.Addr) (netip.Addr, bool) {
	address = address.Unmap().WithZone("")
	bits := a.v6
	if address.Is4() {
		bits = a.v4
	}
	prefix, err := address.Prefix(bits)
	return prefix.Addr(), err == nil && address.IsValid()
}

// entryFromRight is the n-th entry from the right of a list that may stand in several lines.
func entryFromRight(lines []string, n int) (netip.Addr, bool) {
	for _, line := range slices.Backward(lines) {
		for rest := line; ; {
			comma := strings.LastIndexByte(rest, ',')
			if n--; n == 0 {
				return parseAddress(rest[comma+1:])
			}
			if comma < 0 {
				break
			}
			rest = rest[:comma]
		}
	}
	return netip.Addr{}, false
}

// parseAddress reads an address as proxies write it: alone, with a port, or in brackets.
func parseAddress(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	if a, err := netip.ParseAddr(s); err == nil {
		return a, true
	}
	if a, err := netip.ParseAddrPort(s); err == nil {
		return a.Addr(), true
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil {
			return a, true
		}
	}
	return netip.Addr{}, false
}
