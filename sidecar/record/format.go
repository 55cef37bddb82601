// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record keeps what a sidecar decided, for tests of the guarantee: test/oracle replays the records of all pods,
// killed ones included, and checks every interval against the limit.
//
// # Format
//
// A file per process, named <pod>-<incarnation>.rec, of text lines. Each line is written by one write(2) to a file opened
// for appending, so the lines of a killed process survive and only the last one can be torn. The first line is
//
//	headgate-record v1 <pod> <incarnation>
//
// then, in the order of writing (times are nearly, not strictly, ascending):
//
//	v1 <time> <limit-id> <key-hash> <cost> A        cost tokens of the account were spent
//	v1 <time> <limit-id> <key-hash> <cost> D        the account denied the cost
//	S <time> <limit-id> <units>                     the process's share of the limit is units/WHOLE from here on
//
// <time> is CLOCK_BOOTTIME in nanoseconds, comparable between the pods of one machine. <key-hash> is 32 hexadecimal
// digits, the same for the same key in every process; all zeros for a limit without a key. A limit's id holds no space:
// spaces, percent signs and control bytes are percent-encoded.
package record

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	header       = "headgate-record"
	version      = "v1"
	shareMark    = "S"
	admittedMark = "A"
	deniedMark   = "D"
)

// Extension is how the names of record files end.
const Extension = ".rec"

// escape makes a name one word of a line.
func escape(s string) string {
	if s == "" {
		return "%"
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c == '%' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unescape(s string) (string, error) {
	if s == "%" {
		return "", nil
	}
	if !strings.Contains(s, "%") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("cut encoding in %q", s)
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("bad encoding in %q", s)
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}
