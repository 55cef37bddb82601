// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Lock keeps a second demo or test run away from the local cluster: they install the same release. It lasts until unlock is
// called or this process ends.
func Lock() (unlock func(), err error) {
	if !Local() {
		return func() {}, nil
	}
	cache, err := Cache()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(cache, "testbed.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errors.New("another demo or end-to-end test is at work on the cluster; wait until it has finished")
	}
	return func() { f.Close() }, nil
}
