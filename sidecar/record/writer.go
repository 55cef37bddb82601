// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate/sidecar/admission"
)

// Writer appends the records of one process to its file. Its methods may be called by many goroutines.
type Writer struct {
	file *os.File
	// lost counts lines that could not be written. A test that reads the records must see 0.
	lost atomic.Uint64
}

// Create makes the process's file in a folder.
func Create(folder, pod, incarnation string) (*Writer, error) {
	name := strings.ReplaceAll(escape(pod), "/", "_") + "-" + incarnation + Extension
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("creating the record: %w", err)
	}
	w := &Writer{file: file}
	if _, err := fmt.Fprintf(file, "%s %s %s %s\n", header, version, escape(pod), escape(incarnation)); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("writing the record: %w", err)
	}
	return w, nil
}

// Decision records that an account was asked for cost tokens.
func (w *Writer) Decision(now int64, limit string, key admission.KeyHash, cost uint64, admitted bool) {
	mark := deniedMark
	if admitted {
		mark = admittedMark
	}
	b := make([]byte, 0, 160)
	b = append(b, version...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, now, 10)
	b = append(b, ' ')
	b = append(b, escape(limit)...)
	b = append(b, ' ')
	b = hex.AppendEncode(b, key[:])
	b = append(b, ' ')
	b = strconv.AppendUint(b, cost, 10)
	b = append(b, ' ')
	b = append(b, mark...)
	w.line(b)
}

// Share records that the process holds units/WHOLE of a limit from now on.
func (w *Writer) Share(now int64, limit string, units uint64) {
	w.line(fmt.Appendf(nil, "%s %d %s %d", shareMark, now, escape(limit), units))
}

func (w *Writer) line(b []byte) {
	if _, err := w.file.Write(append(b, '\n')); err != nil {
		w.lost.Add(1)
	}
}

// Lost returns how many records could not be written.
func (w *Writer) Lost() uint64 { return w.lost.Load() }

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }
