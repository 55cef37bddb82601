// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/headgate/headgate/hack/progress"
)

// errLocked is what tryLock returns while another process has the lock.
var errLocked = errors.New("locked by another process")

// tryLock takes a lock that lasts until unlock is called or this process ends,
// however it ends.
func tryLock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, errLocked)
	}
	return func() { f.Close() }, nil
}

// lockCluster keeps a second up or down out.
func lockCluster(s settings) (unlock func(), err error) {
	unlock, err = tryLock(filepath.Join(s.cache, "cluster.lock"))
	if errors.Is(err, errLocked) {
		return nil, errors.New("another up or down is at work; wait until it has finished")
	}
	return unlock, err
}

// lockBuild waits for its turn: several test runs may want the binaries at once.
func lockBuild(ctx context.Context, s settings, p *progress.Progress) (unlock func(), err error) {
	path := filepath.Join(s.cache, "build.lock")
	unlock, err = tryLock(path)
	if !errors.Is(err, errLocked) {
		return unlock, err
	}
	err = p.Step("wait for another build", func() error {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
			unlock, err = tryLock(path)
			if !errors.Is(err, errLocked) {
				return err
			}
		}
	})
	return unlock, err
}
