// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import "bytes"

// kind is how a body's end is told.
type kind uint8

const (
	absent   kind = iota
	counted       // by Content-Length
	chunked       // by a chunk of no length, and trailers
	untilEnd      // by the connection's
)

// framing follows a body through the bytes of a connection, whatever way they are cut. It keeps none of them.
type framing struct {
	kind kind
	step step
	left uint64 // bytes to come: of the body, or of the chunk
	size int    // digits of the chunk's size, or bytes of its extension or of the trailers, so far

	name   [longestForbidden]byte // of the trailer, in lower case
	length int

	kept *[]byte // the trailers as they came; nil when nobody wants them
}

// step is a place in a chunked body.
type step uint8

const (
	atSize step = iota
	inExtension
	afterSize // a CR has been read
	inData
	afterData
	afterDataCR
	atTrailer // or at the last line's CR
	inTrailerName
	inTrailerValue
	afterTrailer
	atEnd // the last line's CR has been read
	ended
)

const (
	// maxChunkDigits bounds a chunk's size below what any recipient's integer may wrap at.
	maxChunkDigits = 15
	// maxExtension bounds what may stand behind a chunk's size. Nobody uses it; recipients must ignore it.
	maxExtension = 256
	// maxTrailers bounds the trailers together.
	maxTrailers = 16 << 10
	// longestForbidden is the length of the longest name that no trailer may have.
	longestForbidden = len("transfer-encoding")
)

// over reports whether the body has ended. One that ends with the connection never has.
func (f *framing) over() bool {
	switch f.kind {
	case counted:
		return f.left == 0
	case chunked:
		return f.step == ended
	case untilEnd:
		return false
	}
	return true
}

// take returns how many of the bytes belong to the body. It fails where a chunked body is not what it should be; what
// comes before that still belongs to it.
func (f *framing) take(b []byte) (int, error) {
	switch f.kind {
	case counted:
		n := min(uint64(len(b)), f.left)
		f.left -= n
		return int(n), nil
	case chunked:
		return f.takeChunks(b)
	case untilEnd:
		return len(b), nil
	}
	return 0, nil
}

func (f *framing) takeChunks(b []byte) (int, error) {
	for i := 0; i < len(b); {
		switch f.step {
		case inData:
			n := min(uint64(len(b)-i), f.left)
			f.left -= n
			i += int(n)
			if f.left == 0 {
				f.step = afterData
			}
			continue
		case inTrailerValue:
			// Up to the CR at once.
			n := bytes.IndexByte(b[i:], '\r')
			if n < 0 {
				n = len(b) - i
			}
			if f.size += n; f.size > maxTrailers || !allValue(b[i:i+n]) {
				return i, errSyntax
			}
			f.keep(b[i : i+n])
			if i += n; i < len(b) {
				f.keep(b[i : i+1])
				i++
				f.step = afterTrailer
			}
			continue
		case ended:
			return i, nil
		}
		if !f.advance(b[i]) {
			return i, errSyntax
		}
		i++
	}
	return len(b), nil
}

// advance takes one byte of what surrounds the data.
func (f *framing) advance(c byte) bool {
	switch f.step {
	case atSize:
		digit, ok := hexadecimal(c)
		switch {
		case ok && f.size < maxChunkDigits:
			f.left, f.size = f.left<<4|digit, f.size+1
		case c == ';' && f.size > 0:
			f.step, f.size = inExtension, 0
		case c == '\r' && f.size > 0:
			f.step = afterSize
		default:
			return false
		}
	case inExtension:
		f.size++
		if c == '\r' {
			f.step = afterSize
			return true
		}
		return classes[c]&isValue != 0 && f.size <= maxExtension
	case afterSize:
		f.size = 0
		f.step = inData
		if f.left == 0 {
			f.step = atTrailer
		}
		return c == '\n'
	case afterData:
		f.step = afterDataCR
		return c == '\r'
	case afterDataCR:
		f.step = atSize
		return c == '\n'
	case atTrailer:
		if c == '\r' {
			f.step = atEnd
			return true
		}
		f.step, f.length = inTrailerName, 0
		return f.trailerName(c)
	case inTrailerName:
		if c == ':' {
			f.keep([]byte{c})
			f.step = inTrailerValue
			return f.length > 0 && !f.forbidden()
		}
		return f.trailerName(c)
	case afterTrailer:
		f.keep([]byte{c})
		f.step = atTrailer
		return c == '\n'
	case atEnd:
		if c != '\n' {
			return false
		}
		f.step = ended
	}
	return true
}

func (f *framing) trailerName(c byte) bool {
	if classes[c]&isToken == 0 {
		return false // also a line that continues another
	}
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	if f.length < len(f.name) {
		f.name[f.length] = c
	}
	f.keep([]byte{c})
	f.length++
	f.size++
	return f.size <= maxTrailers
}

// keep keeps a part of the trailers where somebody wants them. Their size is bounded.
func (f *framing) keep(b []byte) {
	if f.kept != nil {
		*f.kept = append(*f.kept, b...)
	}
}

// forbidden reports whether a trailer would change how the message is read, if a recipient merged it into the header.
func (f *framing) forbidden() bool {
	if f.length > len(f.name) {
		return false
	}
	switch string(f.name[:f.length]) {
	case "content-length", "transfer-encoding", "host", "connection", "trailer", "upgrade", "expect":
		return true
	}
	return false
}

func hexadecimal(c byte) (uint64, bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return uint64(c|0x20-'a') + 10, true
	}
	return 0, false
}
