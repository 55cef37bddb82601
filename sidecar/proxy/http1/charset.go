// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"encoding/binary"
)

// Classes of bytes.
const (
	isToken  = 1 << iota // RFC 9110, tchar
	isTarget             // what a request target may hold: all but controls and space
	isValue              // what a field value may hold: all but controls, with the tab
	isHost               // RFC 3986: reg-name, IP-literal and port
)

var classes = func() (c [256]uint8) {
	set := func(class uint8, bytes string) {
		for i := range len(bytes) {
			c[bytes[i]] |= class
		}
	}
	const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	set(isToken, alphanumeric+"!#$%&'*+-.^_`|~")
	set(isHost, alphanumeric+"!$%&()*+,-.:;=[']_~")
	for b := range c {
		if b > ' ' && b != 0x7f {
			c[b] |= isTarget
		}
		if b >= ' ' && b != 0x7f || b == '\t' {
			c[b] |= isValue
		}
	}
	return c
}()

// all reports whether all bytes are of a class.
func all(b []byte, class uint8) bool {
	for _, x := range b {
		if classes[x]&class == 0 {
			return false
		}
	}
	return true
}

// allValue is all(b, isValue), eight bytes at a time: most values hold printable ASCII only.
func allValue(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		low := (x - ones*' ') &^ x & highs                         // a byte below the space
		del := ((x ^ ones*0x7f) - ones) &^ (x ^ ones*0x7f) & highs // a byte that is DEL
		if low|del != 0 && !all(b[i:i+8], isValue) {
			return false
		}
	}
	return all(b[i:], isValue)
}

// fold reports whether b is the text, which is in lower case, whatever the case of its letters. Both are as long.
func fold(b []byte, text string) bool {
	for i := range len(text) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != text[i] {
			return false
		}
	}
	return true
}

// is is fold for any lengths.
func is(b []byte, text string) bool { return len(b) == len(text) && fold(b, text) }

// trim cuts spaces and tabs at both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// decimal reads digits and nothing else; more than 18 of them are no length of anything.
func decimal(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// element cuts the first element off a comma-separated list.
func element(list []byte) (first, rest []byte) {
	for i, c := range list {
		if c == ',' {
			return trim(list[:i]), list[i+1:]
		}
	}
	return trim(list), nil
}
