// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestNoRuleIsEverWrittenInTheNetworkOfANode(t *testing.T) {
	pod := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")}
	node := append([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, pod...)
	for name, tc := range map[string]struct {
		network Network
		local   []netip.Addr
		want    string // part of the refusal; empty = rules may be written
	}{
		"a pod's own network":                    {Network{HostIPs: "192.0.2.1", PodIPs: "10.0.0.7", Source: "api"}, pod, ""},
		"a pod's own network of two families":    {Network{HostIPs: "192.0.2.1,2001:db8::1", PodIPs: "10.0.0.7,fd00::7"}, pod, ""},
		"a pod that shares the node's address":   {Network{HostIPs: "192.0.2.1", PodIPs: "192.0.2.1"}, node, "share the address"},
		"two families of which one is shared":    {Network{HostIPs: "192.0.2.1,2001:db8::1", PodIPs: "10.0.0.7,2001:db8::1"}, pod, "share the address"},
		"an interface that has the node's":       {Network{HostIPs: "192.0.2.1", PodIPs: "10.0.0.7"}, node, "the node's own network"},
		"the node's address in a mapped form":    {Network{HostIPs: "::ffff:192.0.2.1", PodIPs: "10.0.0.7"}, node, "the node's own network"},
		"nobody says what the node's address is": {Network{PodIPs: "10.0.0.7"}, pod, "not known"},
		"nobody says what the pod's address is":  {Network{HostIPs: "192.0.2.1"}, pod, "not known"},
		"an address that is none":                {Network{HostIPs: "node1", PodIPs: "10.0.0.7"}, pod, "not known"},
		"a static pod":                           {Network{HostIPs: "192.0.2.1", PodIPs: "10.0.0.7", Source: "file"}, pod, "static pod"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Refuse(tc.network, tc.local)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want a refusal that says %q", err, tc.want)
			}
		})
	}
}
