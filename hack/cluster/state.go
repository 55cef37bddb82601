// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// state is what an `up` tells later commands. It is written after every change,
// so that a killed `up` is known up to its last step.
type state struct {
	path      string
	Processes map[string]process `json:"processes"`
	Sysctls   map[string]string  `json:"sysctls"`             // as they were before the first start
	Delegated []string           `json:"delegated,omitempty"` // cgroup v2 controllers that `up` turned on
}

func (s settings) statePath() string { return filepath.Join(s.run, "state.json") }

// loadState returns an empty state when there is no cluster.
func loadState(s settings) (*state, error) {
	st := &state{path: s.statePath(), Processes: map[string]process{}}
	content, err := os.ReadFile(st.path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if err := json.Unmarshal(content, st); err != nil {
		return nil, fmt.Errorf("read state %s: %w", st.path, err)
	}
	return st, nil
}

func (st *state) save() error {
	content, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return writeFile(st.path, append(content, '\n'), 0o600)
}

func (st *state) running(name string) bool { return st.Processes[name].alive() }

// watch returns a check for waitFor: an error once the named process is gone.
func (st *state) watch(s settings, name string) func() error {
	return func() error {
		if st.running(name) {
			return nil
		}
		return fmt.Errorf("%s ended; the end of its log %s:\n%s", name, s.log(name), tail(s.log(name), 12))
	}
}

// writeFile replaces a file in one step: a reader sees the old or the new one.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	if err := os.WriteFile(path+".partial", content, mode); err != nil {
		return fmt.Errorf("file: %w", err)
	}
	return os.Rename(path+".partial", path)
}
