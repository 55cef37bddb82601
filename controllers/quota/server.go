// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

const (
	// A Hello with a thousand holdings is about 100 KiB, a Report with ten thousand claims 600.
	maxMessageBytes = 1 << 20
	// helloPatience is how long a stream may take to say who it is.
	helloPatience = 10 * time.Second
	// interregnum is how long a stream is held while nobody leads. The sidecar waits for ten seconds.
	interregnum = 5 * time.Second
	// messagesPerSecond bounds what one stream may cost.
	messagesPerSecond = 1000
)

// Authenticator tells whose a token is; *Reviewer is one.
type Authenticator interface {
	Review(ctx context.Context, token string) (Identity, error)
}

// Elector tells who leads, and raises the epoch when a pod has seen a higher one.
type Elector interface {
	// Leader returns the leader's address, empty when nobody leads, and its epoch.
	Leader(ctx context.Context) (address string, epoch uint64, err error)
	// Raise makes the epoch of this replica, the leader, higher than floor.
	Raise(ctx context.Context, floor uint64) error
}

// Server serves the streams of all sidecars.
type Server struct {
	quotav1.UnimplementedQuotaServer
	Home    *Home
	Auth    Authenticator
	Elector Elector
	Log     logr.Logger
}

// Serve accepts streams on the listener until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	g := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{GetCertificate: cert, MinVersion: tls.VersionTLS13})),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxConcurrentStreams(4), // a sidecar needs one
		grpc.ConnectionTimeout(helloPatience),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	quotav1.RegisterQuotaServer(g, s)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		g.Stop() // sidecars go on with their shares and find the next leader
	}()
	err := g.Serve(l)
	if ctx.Err() != nil {
		<-stopped
		return nil
	}
	return fmt.Errorf("serve quota: %w", err)
}

// Connect implements quotav1.QuotaServer.
func (s *Server) Connect(stream grpc.BidiStreamingServer[quotav1.SidecarMessage, quotav1.OperatorMessage]) error {
	ctx := stream.Context()
	id, err := s.Auth.Review(ctx, bearer(ctx))
	if errors.Is(err, ErrUnauthenticated) {
		refused.WithLabelValues(refusedUnauthenticated).Inc()
		return status.Error(codes.Unauthenticated, err.Error())
	} else if err != nil {
		refused.WithLabelValues(refusedReview).Inc()
		return status.Error(codes.Unavailable, err.Error())
	}
	inbox := receive(stream)
	hello, err := awaitHello(ctx, inbox)
	if err != nil {
		refused.WithLabelValues(refusedHello).Inc()
		return err
	}
	epoch, redirect, err := s.lead(ctx)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	if redirect != nil {
		return stream.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Redirect{Redirect: redirect}})
	}
	if hello.Epoch > epoch {
		s.Log.Info("Raising the epoch: a pod has seen a higher one", "pod", id.Namespace+"/"+id.Pod, "seen", hello.Epoch, "epoch", epoch)
		if err := s.Elector.Raise(ctx, hello.Epoch); err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		return status.Error(codes.Aborted, "epoch raised: connect again")
	}
	return s.serve(stream, inbox, id, hello, epoch)
}

func (s *Server) serve(stream quotav1.Quota_ConnectServer, inbox <-chan received, id Identity, hello *quotav1.Hello, epoch uint64) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	err := stream.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Welcome{Welcome: &quotav1.Welcome{
		Epoch: epoch, HeartbeatMilliseconds: uint32(heartbeat / time.Millisecond), SentNanoseconds: s.Home.opts.Now(),
	}}})
	if err != nil {
		return err
	}
	ses, err := s.Home.attach(id.UID, hello, cancel)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	streams.Inc()
	defer streams.Dec()
	defer s.Home.detach(id.UID, ses)
	log := s.Log.WithValues("pod", id.Namespace+"/"+id.Pod, "incarnation", hello.Incarnation)
	log.V(1).Info("Sidecar connected", "version", hello.Version)
	defer log.V(1).Info("Sidecar disconnected")

	budget := messagesPerSecond
	refillBudget := time.NewTicker(time.Second)
	defer refillBudget.Stop()
	for {
		select {
		case <-ctx.Done():
			return status.Error(codes.Aborted, "stream ended by the operator: silent, unacknowledged or replaced")
		case <-refillBudget.C:
			budget = messagesPerSecond
		case <-ses.ready:
			if err := s.send(stream, ses); err != nil {
				return err
			}
		case m, ok := <-inbox:
			if !ok || m.err != nil {
				return m.err
			}
			if budget--; budget < 0 {
				refused.WithLabelValues(refusedRate).Inc()
				return status.Error(codes.ResourceExhausted, "too many messages")
			}
			if done := s.handle(id, ses, m.msg); done {
				return nil
			}
		}
	}
}

// send writes what waits. Only this goroutine writes to the stream.
func (s *Server) send(stream quotav1.Quota_ConnectServer, ses *session) error {
	assignment, beat := s.Home.take(ses)
	if assignment != nil {
		pushes.Inc()
		if err := stream.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Assignment{Assignment: assignment}}); err != nil {
			return err
		}
	}
	if grant := s.Home.granted(ses); grant != nil {
		grants.Inc()
		if err := stream.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Grant{Grant: grant}}); err != nil {
			return err
		}
	}
	if beat != nil {
		return stream.Send(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_HeartbeatAck{HeartbeatAck: beat}})
	}
	return nil
}

func (s *Server) handle(id Identity, ses *session, m *quotav1.SidecarMessage) (done bool) {
	switch m := m.Message.(type) {
	case *quotav1.SidecarMessage_Ack:
		s.Home.ack(id.UID, ses, m.Ack)
	case *quotav1.SidecarMessage_Usage:
		s.Home.report(id.UID, ses, m.Usage)
	case *quotav1.SidecarMessage_Report:
		s.Home.hear(id.UID, ses, m.Report)
	case *quotav1.SidecarMessage_Drained:
		s.Home.drained(id.UID, ses, m.Drained.GetLast())
		return true
	}
	return false // a message of a newer version is ignored
}

// lead finds out who leads: this replica, under the epoch returned, or another. Where nobody does the stream is held for a
// while: after a fail-over the sidecars are then here already when this replica takes over.
func (s *Server) lead(ctx context.Context) (epoch uint64, redirect *quotav1.Redirect, err error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(interregnum)
	defer late.Stop()
	for {
		if epoch, ok := s.Home.Leading(); ok {
			return epoch, nil, nil
		}
		address, epoch, err := s.Elector.Leader(ctx)
		if err != nil || address != "" {
			return 0, &quotav1.Redirect{LeaderAddress: address, Epoch: epoch}, err
		}
		select {
		case <-again.C:
		case <-late.C:
			return 0, &quotav1.Redirect{Epoch: epoch}, nil
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

type received struct {
	msg *quotav1.SidecarMessage
	err error
}

// receive reads the stream until it ends. The channel is unbuffered: a sidecar that talks faster than it is heard waits.
func receive(stream quotav1.Quota_ConnectServer) <-chan received {
	out := make(chan received)
	go func() {
		defer close(out)
		for {
			m, err := stream.Recv()
			select {
			case out <- received{m, err}:
			case <-stream.Context().Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

func awaitHello(ctx context.Context, inbox <-chan received) (*quotav1.Hello, error) {
	late := time.NewTimer(helloPatience)
	defer late.Stop()
	select {
	case m := <-inbox:
		if m.err != nil {
			return nil, m.err
		}
		hello := m.msg.GetHello()
		if hello == nil || hello.StartedAt == nil {
			return nil, status.Error(codes.InvalidArgument, "the first message must be a Hello with started_at")
		}
		if hello.Protocol < quotav1.Protocol {
			return nil, status.Errorf(codes.FailedPrecondition, "protocol %d is older than %d: restart the pod to get the current sidecar", hello.Protocol, quotav1.Protocol)
		}
		return hello, nil
	case <-late.C:
		return nil, status.Error(codes.DeadlineExceeded, "no Hello")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bearer reads the token of a call.
func bearer(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("authorization") {
		if token, ok := strings.CutPrefix(v, "Bearer "); ok {
			return token
		}
	}
	return ""
}
