// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"log"
	"net/http"
	"time"
)

const (
	// headPatience bounds how long a request's head may take (slowloris).
	headPatience = 10 * time.Second
	// maxHead bounds a request's head; Envoy allows 60 KiB.
	maxHead = 64 << 10
	// clientIdle is longer than load balancers keep idle connections (600 s on Google's), so that they close first and
	// no request meets a closing connection.
	clientIdle = 620 * time.Second
)

// server is an http.Server for one protocol, fed through a queue.
type server struct {
	http  *http.Server
	queue *queue
	ended chan struct{} // nil before start
}

func (p *Proxy) newServer(h2 bool) *server {
	s := &server{queue: newQueue(p.listener.Addr())}
	s.http = &http.Server{
		Handler:           p.handler,
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: headPatience,
		IdleTimeout:       clientIdle,
		MaxHeaderBytes:    maxHead,
		// OPTIONS * is the application's to answer, and ours to decide, as any other request.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // what clients do wrong is not for our log
	}
	if h2 {
		s.http.Protocols.SetUnencryptedHTTP2(true)
	} else {
		s.http.Protocols.SetHTTP1(true)
	}
	return s
}

func (s *server) start() {
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(s.queue) // always ErrServerClosed
	}()
}

func (s *server) wait() {
	if s.ended != nil {
		<-s.ended
	}
}
