// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/headgate/headgate/test/testbed"
)

// make runs a target of the Makefile, and passes on what it says.
func (s *stage) make(ctx context.Context, target string) error {
	return testbed.Make(ctx, s.repository, target, &indent{})
}

// indent prints whole lines, moved to the right.
type indent struct{ rest []byte }

func (w *indent) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		if _, err := fmt.Printf("            %s\n", w.rest[:i]); err != nil {
			return 0, err
		}
		w.rest = w.rest[i+1:]
	}
}
