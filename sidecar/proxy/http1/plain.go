// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/sidecar/respond"
)

// plain is an answer in words, which no limit has anything to do with. It is valid until the next use of the loop's scratch.
func (s *Server) plain(status int, words string, toHead, last bool) []byte {
	a := respond.Answer{Status: status, Fields: []respond.Field{
		{Name: "Content-Type", Value: "text/plain; charset=utf-8"},
		{Name: "X-Content-Type-Options", Value: "nosniff"},
		{Name: "Content-Length", Value: strconv.Itoa(len(words) + 1)},
	}}
	if !toHead {
		a.Body = []byte(words + "\n")
	}
	return s.dated(a.Append(s.Loop.Out[:0], last))
}

// date is the line that says when an answer was made (RFC 9110, 6.6.1), to the second.
type date struct {
	second int64
	line   []byte
}

// dated adds it to an answer of the sidecar's own.
func (s *Server) dated(answer []byte) []byte {
	now := time.Now()
	if s.date.second != now.Unix() {
		s.date.second = now.Unix()
		s.date.line = append(now.UTC().AppendFormat([]byte("Date: "), http.TimeFormat), "\r\n"...)
	}
	return slices.Insert(answer, bytes.IndexByte(answer, '\n')+1, s.date.line...)
}
