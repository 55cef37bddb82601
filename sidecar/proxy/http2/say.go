// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/sidecar/respond"
)

// say answers a request instead of the application.
func (c *Conn) say(s *stream, a respond.Answer) {
	body := a.Body
	if int64(len(body)) > min(c.window, int64(c.settings.initial), maxPayload) {
		body = nil // the client takes none; it has the status
	}
	list := c.server.fields.list[:0]
	list = append(list, hpack.HeaderField{Name: ":status", Value: strconv.Itoa(a.Status)})
	for _, f := range a.Fields {
		if f.Name == "Content-Length" && (a.TrailersOnly || len(body) < len(a.Body)) {
			continue
		}
		list = append(list, hpack.HeaderField{Name: lower(f.Name), Value: f.Value})
	}
	list = append(list, hpack.HeaderField{Name: "date", Value: time.Now().UTC().Format(http.TimeFormat)})
	c.server.fields.list = list
	c.server.toClient = appendBlock(c.server.toClient, c.server.encode(c.toClient, list), s.id, len(body) == 0)
	if len(body) > 0 {
		c.server.toClient = append(appendHeader(c.server.toClient, len(body), http2.FrameData, http2.FlagDataEndStream, s.id), body...)
		c.window -= int64(len(body))
		c.debt += int64(len(body))
	}
	s.answered, s.refused, s.appEnded = true, true, true
	c.settle(s)
}

// words is an answer in words, which no limit has anything to do with.
func words(status int, text string, toHead bool) respond.Answer {
	a := respond.Answer{Status: status, Fields: []respond.Field{
		{Name: "Content-Type", Value: "text/plain; charset=utf-8"},
		{Name: "X-Content-Type-Options", Value: "nosniff"},
		{Name: "Content-Length", Value: strconv.Itoa(len(text) + 1)},
	}}
	if !toHead {
		a.Body = []byte(text + "\n")
	}
	return a
}

func (s *Server) tooLargeAnswer(method string) respond.Answer {
	status := http.StatusRequestHeaderFieldsTooLarge
	return words(status, http.StatusText(status), method == http.MethodHead)
}

// unreachable answers for an application that is away or broke off: 502, which nobody takes for a denial.
func (c *Conn) unreachable(s *stream) {
	if s.appID != 0 {
		delete(c.asked, s.appID)
		s.appID = 0
	}
	c.say(s, words(http.StatusBadGateway, "headgate: the application did not answer", s.toHead))
}

// lower is a name as HTTP/2 writes it.
func lower(name string) string { return strings.ToLower(name) }

// split cuts the query off a path.
func split(target string) (path, query string) {
	path, query, _ = strings.Cut(target, "?")
	return path, query
}
