// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/netip"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// exemption says which requests a policy's limits do not count.
type exemption struct {
	cidrs   []netip.Prefix
	paths   []*pathMatcher
	headers []headerMatcher
}

// compileExempt returns nil where nothing is exempt.
func compileExempt(in *quotav1.Exempt) (*exemption, error) {
	if in == nil {
		return nil, nil
	}
	out := &exemption{}
	for _, c := range in.GetCidrs() {
		prefix, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, fmt.Errorf("exempt: %w", err)
		}
		out.cidrs = append(out.cidrs, prefix.Masked())
	}
	for _, p := range in.GetPaths() {
		path, err := compilePath(p)
		if err != nil {
			return nil, fmt.Errorf("exempt: %w", err)
		}
		out.paths = append(out.paths, path)
	}
	for _, h := range in.GetHeaders() {
		header, err := compileHeader(h)
		if err != nil {
			return nil, fmt.Errorf("exempt: %w", err)
		}
		out.headers = append(out.headers, header)
	}
	return out, nil
}

// holds reports whether a request is exempt. The exemption may be nil.
func (x *exemption) holds(r *reading) bool {
	if x == nil {
		return false
	}
	peer := r.Peer.Unmap().WithZone("")
	for _, c := range x.cidrs {
		if c.Contains(peer) {
			return true
		}
	}
	for _, p := range x.paths {
		if p.holdsAlways(r) {
			return true
		}
	}
	for i := range x.headers {
		if x.headers[i].holds(r) {
			return true
		}
	}
	return false
}
