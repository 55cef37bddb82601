// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"strings"
	"testing"
)

const routeTable = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
hgbr0	0001F40A	02001EAC	0003	0	0	0	00FFFFFF	0	0	0
`

func TestRoutesAreReadWithTheLowestByteFirst(t *testing.T) {
	routes, err := parseRoutes(routeTable)
	if err != nil {
		t.Fatal(err)
	}
	want := []route{
		{"eth0", netip.MustParsePrefix("0.0.0.0/0")},
		{"eth0", netip.MustParsePrefix("192.0.2.0/24")},
		{"hgbr0", netip.MustParsePrefix("10.244.1.0/24")},
	}
	if len(routes) != len(want) {
		t.Fatalf("got %v, want %v", routes, want)
	}
	for i := range want {
		if routes[i] != want[i] {
			t.Errorf("route %d: got %v, want %v", i, routes[i], want[i])
		}
	}
}

func TestBrokenRoutesAreAnError(t *testing.T) {
	for name, line := range map[string]string{
		"too few fields":       "eth0 00000000",
		"not hexadecimal":      "eth0 0000000x 0 0 0 0 0 00000000",
		"not an IPv4 address":  "eth0 0000 0 0 0 0 0 00000000",
		"not a mask":           "eth0 00000000 0 0 0 0 0 zz",
		"a mask of three byte": "eth0 00000000 0 0 0 0 0 00FFFF",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseRoutes("header\n" + line); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		routes []route
		want   string // part of the error, or empty
	}{
		"the default route is no conflict":                {[]route{{"eth0", netip.MustParsePrefix("0.0.0.0/0")}}, ""},
		"the cluster's own routes are no conflict":        {[]route{{"hgbr0", netip.MustParsePrefix("10.244.1.0/24")}}, ""},
		"a neighbouring network is no conflict":           {[]route{{"eth0", netip.MustParsePrefix("10.245.0.0/16")}}, ""},
		"a part of the wanted network is a conflict":      {[]route{{"wg0", netip.MustParsePrefix("10.244.7.0/24")}}, "10.244.7.0/24 is routed over wg0"},
		"a network around the wanted one is a conflict":   {[]route{{"tun0", netip.MustParsePrefix("10.0.0.0/8")}}, "10.0.0.0/8 is routed over tun0"},
		"every conflict is named, not only the first one": {[]route{{"a", netip.MustParsePrefix("10.244.0.0/16")}, {"b", netip.MustParsePrefix("10.244.3.0/24")}}, "over b"},
	} {
		t.Run(name, func(t *testing.T) {
			err := conflicts(tc.routes, bridgeName, podCIDR)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}
