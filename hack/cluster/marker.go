// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// runMarker is in the environment of every process of a cluster. It tells them
// from others that run the same binaries, envtest's for one.
const runMarker = "HEADGATE_CLUSTER_RUN"

// marked lists the running processes that carry the marker of this run folder.
func marked(run string) ([]process, error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	want := runMarker + "=" + run
	var found []process
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !hasEntry(environ, want) {
			continue // ended meanwhile, or not ours to read
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if p, err := identify(pid); err == nil {
			found = append(found, p)
		}
	}
	return found, nil
}

func hasEntry(environ []byte, want string) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == want {
			return true
		}
	}
	return false
}
