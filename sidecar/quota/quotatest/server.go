// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quotatest

import (
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Stream is the operator's end of one stream.
type Stream struct {
	quotav1.Quota_ConnectServer
}

// Token is the authorization that the sidecar presented.
func (s Stream) Token() string {
	md, _ := metadata.FromIncomingContext(s.Context())
	if values := md.Get("authorization"); len(values) == 1 {
		return values[0]
	}
	return ""
}

// Hello reads the first message.
func (s Stream) Hello() (*quotav1.Hello, error) {
	m, err := s.Recv()
	return m.GetHello(), err
}

// Redirect names a leader.
func (s Stream) Redirect(address string, epoch uint64) error {
	return s.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Redirect{
		Redirect: &quotav1.Redirect{LeaderAddress: address, Epoch: epoch}}})
}

// Welcome welcomes as a leader.
func (s Stream) Welcome(epoch uint64, heartbeatMilliseconds uint32) error {
	return s.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Welcome{
		Welcome: &quotav1.Welcome{Epoch: epoch, HeartbeatMilliseconds: heartbeatMilliseconds}}})
}

// Assign assigns.
func (s Stream) Assign(a *quotav1.Assignment) error {
	return s.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Assignment{Assignment: a}})
}

// Acknowledge answers a heartbeat.
func (s Stream) Acknowledge(nonce uint64) error {
	return s.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_HeartbeatAck{
		HeartbeatAck: &quotav1.HeartbeatAck{Nonce: nonce}}})
}

// Handler is what an operator does with a stream; the stream ends when it returns.
type Handler func(Stream) error

// Server is a running operator.
type Server struct {
	Address string
	server  *grpc.Server
	done    chan struct{}
}

// Serve starts an operator on a free port of 127.0.0.1. It ends with the test, or with Stop.
func (a *Authority) Serve(t testing.TB, handle Handler) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Address: listener.Addr().String(),
		server: grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{a.certificate(t)},
			MinVersion:   tls.VersionTLS13,
		}))),
		done: make(chan struct{}),
	}
	quotav1.RegisterQuotaServer(s.server, service{handle: handle})
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener)
	}()
	t.Cleanup(s.Stop)
	return s
}

// Stop cuts all streams at once, as a killed operator does.
func (s *Server) Stop() {
	s.server.Stop()
	<-s.done
}

type service struct {
	quotav1.UnimplementedQuotaServer
	handle Handler
}

func (s service) Connect(stream quotav1.Quota_ConnectServer) error {
	return s.handle(Stream{stream})
}
