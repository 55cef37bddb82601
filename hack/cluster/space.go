// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Kinds of file systems, from statfs(2).
const (
	overlayMagic = 0x794c7630
	cgroup2Magic = 0x63677270
)

func statfs(path string) (syscall.Statfs_t, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return st, fmt.Errorf("file system of %s: %w", path, err)
	}
	return st, nil
}

func freeSpace(dir string) (uint64, error) {
	st, err := statfs(dir)
	return st.Bavail * uint64(st.Bsize), err
}

// existing returns the path's first parent that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

var errLarge = errors.New("large enough")

// folderLargerThan stops reading as soon as it knows.
func folderLargerThan(dir string, size int64) bool {
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // what cannot be read does not count
		}
		if info, err := entry.Info(); err == nil {
			size -= info.Size()
		}
		if size < 0 {
			return errLarge
		}
		return nil
	})
	return errors.Is(err, errLarge)
}
