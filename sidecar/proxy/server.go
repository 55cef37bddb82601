// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"log"
	"net/http"
)

// server is an http.Server for one protocol, fed through a queue.
type server struct {
	http  *http.Server
	queue *queue
	ended chan struct{} // nil before start
}

func (p *Proxy) newServer() *server {
	s := &server{queue: newQueue(p.listener.Addr())}
	s.http = &http.Server{
		Handler:           p.handler,
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: p.options.limits.HeadTime,
		IdleTimeout:       p.options.limits.Idle,
		MaxHeaderBytes:    p.options.limits.Head,
		// OPTIONS * is the application's to answer, and ours to decide, as any other request.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // what clients do wrong is not for our log
	}
	s.http.Protocols.SetUnencryptedHTTP2(true)
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
