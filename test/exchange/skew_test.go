// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// later says everything as a later release would: with a field more, that this release does not know. Operator and sidecars
// of every test here hear only such messages.
type later struct{ encoding.CodecV2 }

func (l later) Marshal(v any) (mem.BufferSlice, error) {
	out, err := l.CodecV2.Marshal(v)
	if err != nil {
		return nil, err
	}
	more := protowire.AppendTag(nil, 1999, protowire.BytesType)
	more = protowire.AppendBytes(more, []byte("of a later release"))
	return append(out, mem.SliceBuffer(more)), nil
}

func init() { encoding.RegisterCodecV2(later{encoding.GetCodecV2("proto")}) }
