// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/http2"
)

// connError ends a connection, streamError a stream.
type (
	connError   struct{ code http2.ErrCode }
	streamError struct {
		stream uint32
		code   http2.ErrCode
	}
)

func (e connError) Error() string   { return fmt.Sprintf("connection error: %v", e.code) }
func (e streamError) Error() string { return fmt.Sprintf("stream %d: %v", e.stream, e.code) }

const (
	headerLength = 9
	// maxPayload is the most that a frame may carry: HTTP/2's own default, in both directions.
	maxPayload = 16384
)

// frame is a whole frame. raw is its bytes, header included.
type frame struct {
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
	raw    []byte
}

func (f *frame) payload() []byte { return f.raw[headerLength:] }

// cutFrame returns the first frame of the bytes, and false when it has not come whole.
func cutFrame(b []byte) (f frame, ok bool, err error) {
	if len(b) < headerLength {
		return f, false, nil
	}
	length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if length > maxPayload {
		return f, false, connError{http2.ErrCodeFrameSize}
	}
	if len(b) < headerLength+length {
		return f, false, nil
	}
	return frame{
		kind:   http2.FrameType(b[3]),
		flags:  http2.Flags(b[4]),
		stream: binary.BigEndian.Uint32(b[5:]) & (1<<31 - 1),
		raw:    b[:headerLength+length],
	}, true, nil
}

// check refuses frames that mean nothing whatever the connection's state (RFC 9113, 6).
func (f *frame) check() error {
	protocol, size := connError{http2.ErrCodeProtocol}, connError{http2.ErrCodeFrameSize}
	n := len(f.payload())
	switch f.kind {
	case http2.FrameData, http2.FrameHeaders, http2.FrameContinuation, http2.FrameRSTStream, http2.FramePriority:
		if f.stream == 0 {
			return protocol
		}
	case http2.FrameSettings, http2.FramePing, http2.FrameGoAway:
		if f.stream != 0 {
			return protocol
		}
	}
	switch f.kind {
	case http2.FrameRSTStream, http2.FrameWindowUpdate:
		if n != 4 {
			return size
		}
	case http2.FramePing:
		if n != 8 {
			return size
		}
	case http2.FrameGoAway:
		if n < 8 {
			return size
		}
	case http2.FrameSettings:
		if n%6 != 0 || n > 0 && f.flags.Has(http2.FlagSettingsAck) {
			return size
		}
	case http2.FramePriority:
		if n != 5 {
			return streamError{f.stream, http2.ErrCodeFrameSize}
		}
		if f.dependency(f.payload()) == f.stream {
			return streamError{f.stream, http2.ErrCodeProtocol}
		}
	}
	return nil
}

func (f *frame) dependency(b []byte) uint32 { return binary.BigEndian.Uint32(b) & (1<<31 - 1) }

// content is the payload of DATA or HEADERS without what pads it and without priorities.
func (f *frame) content() ([]byte, error) {
	b := f.payload()
	padding := 0
	if f.flags.Has(http2.FlagDataPadded) { // the same bit for HEADERS
		if len(b) < 1 {
			return nil, connError{http2.ErrCodeFrameSize}
		}
		padding, b = int(b[0]), b[1:]
	}
	if f.kind == http2.FrameHeaders && f.flags.Has(http2.FlagHeadersPriority) {
		if len(b) < 5 {
			return nil, connError{http2.ErrCodeFrameSize}
		}
		if f.dependency(b) == f.stream {
			return nil, connError{http2.ErrCodeProtocol} // the block in it belongs to the compression
		}
		b = b[5:]
	}
	if padding > len(b) {
		return nil, connError{http2.ErrCodeProtocol}
	}
	return b[:len(b)-padding], nil
}

// appendHeader appends a frame's header.
func appendHeader(dst []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	dst = append(dst, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(dst, stream)
}

// appendNumber appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
func appendNumber(dst []byte, kind http2.FrameType, stream, number uint32) []byte {
	dst = appendHeader(dst, 4, kind, 0, stream)
	return binary.BigEndian.AppendUint32(dst, number)
}

func appendGoAway(dst []byte, last uint32, code http2.ErrCode) []byte {
	dst = appendHeader(dst, 8, http2.FrameGoAway, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, last)
	return binary.BigEndian.AppendUint32(dst, uint32(code))
}

func appendPing(dst []byte, flags http2.Flags, data []byte) []byte {
	return append(appendHeader(dst, 8, http2.FramePing, flags, 0), data...)
}

func appendSettings(dst []byte, settings ...http2.Setting) []byte {
	dst = appendHeader(dst, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		dst = binary.BigEndian.AppendUint16(dst, uint16(s.ID))
		dst = binary.BigEndian.AppendUint32(dst, s.Val)
	}
	return dst
}

func appendSettingsAck(dst []byte) []byte {
	return appendHeader(dst, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
}

// appendRaw appends a frame as it came, for another stream.
func appendRaw(dst []byte, f *frame, stream uint32) []byte {
	begin := len(dst)
	dst = append(dst, f.raw...)
	binary.BigEndian.PutUint32(dst[begin+5:], stream)
	return dst
}

// appendBlock appends a block of headers as frames.
func appendBlock(dst, block []byte, stream uint32, end bool) []byte {
	flags := http2.Flags(0)
	if end {
		flags = http2.FlagHeadersEndStream
	}
	for kind := http2.FrameHeaders; ; kind, flags = http2.FrameContinuation, 0 {
		n := min(len(block), maxPayload)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders
		}
		dst = append(appendHeader(dst, n, kind, flags, stream), block[:n]...)
		if block = block[n:]; len(block) == 0 {
			return dst
		}
	}
}

// eachSetting calls with every setting of a SETTINGS frame.
func eachSetting(b []byte, f func(http2.Setting) error) error {
	for ; len(b) >= 6; b = b[6:] {
		s := http2.Setting{ID: http2.SettingID(binary.BigEndian.Uint16(b)), Val: binary.BigEndian.Uint32(b[2:])}
		if err := s.Valid(); err != nil {
			code := http2.ErrCodeProtocol
			if s.ID == http2.SettingInitialWindowSize {
				code = http2.ErrCodeFlowControl
			}
			return connError{code}
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}
