// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"os"
	"strings"
	"testing"
)

// ofFile is the line of /proc/self/status that counts resident pages of files.
func ofFile(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

var constants = strings.Repeat("x", 10) + "y"

func TestTrimmingLetsGoOfPagesAndBreaksNothing(t *testing.T) {
	before := ofFile(t)
	if err := Trim(); err != nil {
		t.Fatal(err)
	}
	after := ofFile(t)
	if len(after) > len(before) || len(after) == len(before) && after >= before {
		t.Errorf("%s of the program are resident after it, %s before", after, before)
	}
	if constants != "xxxxxxxxxxy" {
		t.Errorf("got %q", constants)
	}
}
