// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"net/http"
	"strconv"
)

// Asker is what an answer depends on of the request that gets it.
type Asker struct {
	// Method tells whether the answer may have a body.
	Method string
	// ContentType tells whether the client speaks gRPC.
	ContentType string
}

// AskerOf reads net/http's request.
func AskerOf(r *http.Request) Asker {
	return Asker{Method: r.Method, ContentType: r.Header.Get("Content-Type")}
}

// Field is one line of a header: the name in its canonical form (HTTP/2 writes it in lower case).
type Field struct {
	Name, Value string
}

// Answer is a whole answer of the sidecar's own. It is a value: every protocol writes the same one.
type Answer struct {
	Status int
	// Fields stand in the order in which they are written. Content-Length is among them, so that the answer to HEAD tells
	// the length of the body that it lacks.
	Fields []Field
	// Body is empty in the answer to HEAD.
	Body []byte
	// TrailersOnly tells that HTTP/2 ends the stream with the header: gRPC's form of an answer without messages.
	TrailersOnly bool
}

// Write writes the answer through net/http. It does not read the request's body.
func (a *Answer) Write(w http.ResponseWriter) {
	h := w.Header()
	for _, f := range a.Fields {
		h.Add(f.Name, f.Value)
	}
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		_, _ = w.Write(a.Body) // a client that has gone away needs no answer
	}
}

// Append appends the answer's bytes in HTTP/1.1. last says that the connection ends after it.
func (a *Answer) Append(dst []byte, last bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(a.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http.StatusText(a.Status)...)
	dst = append(dst, "\r\n"...)
	dst = AppendFields(dst, a.Fields)
	if last {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return append(dst, a.Body...)
}

// AppendFields appends header lines as HTTP/1.1 writes them.
func AppendFields(dst []byte, fields []Field) []byte {
	for _, f := range fields {
		dst = append(dst, f.Name...)
		dst = append(dst, ": "...)
		dst = append(dst, f.Value...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// body gives an answer its body, or only the length of it where the client asked for the header alone.
func (a *Answer) body(to Asker, body []byte) {
	a.Fields = append(a.Fields, Field{"Content-Length", strconv.Itoa(len(body))})
	if to.Method != http.MethodHead {
		a.Body = body
	}
}
