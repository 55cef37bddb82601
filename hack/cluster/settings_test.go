// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestTheCacheFolder(t *testing.T) {
	for name, tc := range map[string]struct {
		cache string
		ok    bool
	}{
		"may be any folder of its own":                {"/srv/headgate", true},
		"is not the root, whose run is the machine's": {"/", false},
		"is not below what nodes hide":                {"/var/lib/headgate", false},
		"is not what nodes hide":                      {"/run", false},
		"may only look like what nodes hide":          {"/runner/headgate", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSettings(func(string) string { return tc.cache })
			if (err == nil) != tc.ok {
				t.Errorf("got %v, want ok=%v", err, tc.ok)
			}
		})
	}
}

func TestMountsBelowAFolderDoNotIncludeItsNeighbours(t *testing.T) {
	const mounts = "a /cache/run/x tmpfs rw 0 0\nb /cache/run/x/y tmpfs rw 0 0\nc /cache/runner tmpfs rw 0 0\nd /cache/run tmpfs rw 0 0\n"
	if got, want := mountsBelow(mounts, "/cache/run"), []string{"/cache/run/x", "/cache/run/x/y"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheVersionOfTheCurrentCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		minor  int
		ok     bool
	}{
		"a plain one":            {`{"serverVersion":{"major":"1","minor":"37","gitVersion":"v1.37.2"}}`, 37, true},
		"a provider's with plus": {`{"serverVersion":{"major":"1","minor":"33+","gitVersion":"v1.33.1-x"}}`, 33, true},
		"another major":          {`{"serverVersion":{"major":"2","minor":"0","gitVersion":"v2.0.0"}}`, 0, false},
		"no server":              {`{"clientVersion":{"major":"1","minor":"37"}}`, 0, false},
		"not JSON":               {`error`, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, minor, err := serverVersion([]byte(tc.answer))
			if (err == nil) != tc.ok || minor != tc.minor {
				t.Errorf("got %d, %v; want %d, ok=%v", minor, err, tc.minor, tc.ok)
			}
		})
	}
}
