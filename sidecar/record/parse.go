// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/headgate/headgate/sidecar/admission"
)

// File is what one process recorded.
type File struct {
	Pod         string
	Incarnation string
	Decisions   []Decision
	Shares      []Share
	// Torn says that the last line had no end: the process was killed while writing it, or had no room.
	Torn bool
}

// Decision is one account's answer to one request.
type Decision struct {
	Time     int64 // CLOCK_BOOTTIME, nanoseconds
	Limit    string
	Key      admission.KeyHash
	Cost     uint64
	Admitted bool
}

// Share is a change of the process's part of a limit.
type Share struct {
	Time  int64
	Limit string
	Units uint64
}

// maxLine bounds a line, so that a file that is no record is refused early.
const maxLine = 64 << 10

// Parse reads a file of records. Anything but the format is an error, except a torn last line.
func Parse(r io.Reader) (*File, error) {
	b := bufio.NewReaderSize(r, maxLine)
	f := &File{}
	for n := 1; ; n++ {
		line, err := b.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			f.Torn = len(line) > 0
			if n == 1 {
				return nil, fmt.Errorf("line 1: no header")
			}
			return f, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		words := strings.Split(strings.TrimSuffix(string(line), "\n"), " ")
		if n == 1 {
			err = f.header(words)
		} else {
			err = f.line(words)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func (f *File) header(words []string) (err error) {
	if len(words) != 4 || words[0] != header || words[1] != version {
		return fmt.Errorf("not a record of version %s", version)
	}
	if f.Pod, err = unescape(words[2]); err != nil {
		return err
	}
	f.Incarnation, err = unescape(words[3])
	return err
}

func (f *File) line(words []string) error {
	switch {
	case words[0] == version && len(words) == 6:
		return f.decision(words[1:])
	case words[0] == shareMark && len(words) == 4:
		return f.share(words[1:])
	}
	return fmt.Errorf("unknown kind of line %q with %d words", words[0], len(words))
}

func (f *File) decision(words []string) (err error) {
	var d Decision
	if d.Time, err = strconv.ParseInt(words[0], 10, 64); err != nil {
		return err
	}
	if d.Limit, err = unescape(words[1]); err != nil {
		return err
	}
	if n, err := hex.Decode(d.Key[:], []byte(words[2][:min(len(words[2]), 2*len(d.Key))])); err != nil || len(words[2]) != 2*n || n != len(d.Key) {
		return fmt.Errorf("bad key hash %q", words[2])
	}
	if d.Cost, err = strconv.ParseUint(words[3], 10, 64); err != nil {
		return err
	}
	switch words[4] {
	case admittedMark:
		d.Admitted = true
	case deniedMark:
	default:
		return fmt.Errorf("unknown verdict %q", words[4])
	}
	f.Decisions = append(f.Decisions, d)
	return nil
}

func (f *File) share(words []string) (err error) {
	var s Share
	if s.Time, err = strconv.ParseInt(words[0], 10, 64); err != nil {
		return err
	}
	if s.Limit, err = unescape(words[1]); err != nil {
		return err
	}
	if s.Units, err = strconv.ParseUint(words[2], 10, 64); err != nil {
		return err
	}
	f.Shares = append(f.Shares, s)
	return nil
}
