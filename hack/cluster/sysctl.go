// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kubeletSysctls are settings that the kubelet wants to change for the whole
// machine, with the values that it wants. Every node sees files with these values
// in the place of the real ones (see hideSysctls), so that the kubelet finds
// nothing to change. restoreSysctls is the second line of defence.
var kubeletSysctls = map[string]string{
	"kernel/keys/root_maxbytes": "25000000",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
}

const sysctlRoot = "/proc/sys"

// recordSysctls remembers the machine's values, once.
func (st *state) recordSysctls() error {
	if st.Sysctls != nil {
		return nil
	}
	st.Sysctls = map[string]string{}
	for name := range kubeletSysctls {
		value, err := os.ReadFile(filepath.Join(sysctlRoot, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // this kernel has no such setting
		}
		if err != nil {
			return fmt.Errorf("sysctl: %w", err)
		}
		st.Sysctls[name] = strings.TrimSpace(string(value))
	}
	return st.save()
}

// restoreSysctls puts back what differs and names it.
func (st *state) restoreSysctls() (changed []string, err error) {
	for name, want := range st.Sysctls {
		path := filepath.Join(sysctlRoot, name)
		value, err := os.ReadFile(path)
		if err != nil {
			return changed, fmt.Errorf("sysctl: %w", err)
		}
		if strings.TrimSpace(string(value)) == want {
			continue
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			return changed, fmt.Errorf("sysctl: %w", err)
		}
		changed = append(changed, name)
	}
	return changed, nil
}
