// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redirect leads what comes to the app's ports from outside of the pod to the sidecar's listeners, by rules of
// nftables in the pod's own network. It is the init container of mode Redirect. What the pod sends to itself over loopback,
// the sidecar's own way to the app among it, stays as it is.
//
//	table inet headgate {
//	  chain inbound {
//	    type nat hook prerouting priority dstnat;
//	    iifname != "lo" tcp dport 8080 redirect to :14101
//	  }
//	}
package redirect

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Pair is a port of the app and the sidecar's listener that stands before it.
type Pair struct{ Listener, App uint16 }

// Network is what the kubelet says of the pod's network.
type Network struct {
	HostIPs string // of the node, separated by commas
	PodIPs  string // of the pod
	Source  string // "file" for a static pod
}

// ErrRefused wraps why no rule was written.
var ErrRefused = errors.New("refused")

// Refuse says why rules must not be written where the program runs, whose interfaces have the given addresses. In the
// network of a node they would cut the node's own services off. So the proof that it is another one is asked for, and its
// absence refuses, too.
func Refuse(n Network, local []netip.Addr) error {
	if n.Source == "file" {
		return fmt.Errorf("%w: a static pod is not managed by the operator", ErrRefused)
	}
	hosts, err := addresses(n.HostIPs)
	if err != nil || len(hosts) == 0 {
		return fmt.Errorf("%w: the node's addresses are not known (%q), so this may be the node's own network", ErrRefused, n.HostIPs)
	}
	pods, err := addresses(n.PodIPs)
	if err != nil || len(pods) == 0 {
		return fmt.Errorf("%w: the pod's addresses are not known (%q), so this may be the node's own network", ErrRefused, n.PodIPs)
	}
	for _, host := range hosts {
		if slices.Contains(pods, host) {
			return fmt.Errorf("%w: pod and node share the address %s: hostNetwork pods are never redirected", ErrRefused, host)
		}
		if slices.Contains(local, host) {
			return fmt.Errorf("%w: an interface here has the node's address %s: this is the node's own network", ErrRefused, host)
		}
	}
	return nil
}

func addresses(text string) ([]netip.Addr, error) {
	var out []netip.Addr
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		a, err := netip.ParseAddr(word)
		if err != nil {
			return nil, err
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}
