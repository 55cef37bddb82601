// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel leads to the ports of a pod, its loopback ports among them, through the API server. No port is opened on this
// machine: whoever could connect to one could drain the pod.
type tunnel struct {
	connection httpstream.Connection
	streams    atomic.Int64
}

// dig opens a tunnel to a pod.
func (s *session) dig(ctx context.Context, namespace, pod string) (*tunnel, error) {
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return nil, err
	}
	url := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, s.config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	dialer := portforward.NewFallbackDialerForStreaming(websocket, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type result struct {
		connection httpstream.Connection
		err        error
	}
	dialled := make(chan result, 1)
	go func() {
		c, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err == nil && ctx.Err() != nil {
			_ = c.Close() // nobody waits for it any more
		}
		dialled <- result{c, err}
	}()
	select {
	case r := <-dialled:
		if r.err != nil {
			return nil, r.err
		}
		return &tunnel{connection: r.connection}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends every connection through the tunnel.
func (t *tunnel) close() { _ = t.connection.Close() }

// dial connects to a port of the pod. That nothing listens there shows at the first read.
func (t *tunnel) dial(port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(t.streams.Add(1), 10))
	failures, err := t.connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("port %d: %w", port, err)
	}
	_ = failures.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.connection.CreateStream(headers)
	if err != nil {
		t.connection.RemoveStreams(failures)
		return nil, fmt.Errorf("port %d: %w", port, err)
	}
	return &stream{Stream: data, failures: failures, tunnel: t}, nil
}

// stream is one connection through a tunnel.
type stream struct {
	httpstream.Stream
	failures httpstream.Stream
	tunnel   *tunnel
}

// errRefused is what the end of a stream means when nothing listens on the pod's port.
var errRefused = errors.New("connection refused")

// Read says why a connection ended, where the far end has said so.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	said, _ := io.ReadAll(io.LimitReader(s.failures, 4<<10))
	switch text := strings.TrimSpace(string(said)); {
	case strings.Contains(text, errRefused.Error()):
		return 0, errRefused
	case text != "":
		return 0, errors.New(text)
	}
	return 0, io.EOF
}

// Close implements net.Conn.
func (s *stream) Close() error {
	err := s.Reset()
	_ = s.failures.Reset()
	s.tunnel.connection.RemoveStreams(s.Stream, s.failures)
	return err
}

// What callers of a net.Conn ask for; whoever uses a stream bounds it by a context.

func (s *stream) LocalAddr() net.Addr              { return address{} }
func (s *stream) RemoteAddr() net.Addr             { return address{} }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "tunnel" }
func (address) String() string  { return "pod" }
