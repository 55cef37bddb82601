// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// application serves what all contenders stand in front of: HTTP/1.1 on one address, where the end of the path is the size of
// the answer, and gRPC's health service on the other.
func application(http, rpc string) error {
	l, err := net.Listen("tcp", rpc)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	content := bytes.Repeat([]byte("x"), 1<<20)
	return fasthttp.ListenAndServe(http, func(c *fasthttp.RequestCtx) {
		path := string(c.Path())
		size, err := strconv.Atoi(path[strings.LastIndexByte(path, '/')+1:])
		if err != nil || size < 0 || size > len(content) {
			size = 0
		}
		c.SetBody(content[:size])
	})
}
