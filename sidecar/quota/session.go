// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

const (
	// dialTimeout bounds the TCP handshake: the leader that a replica names may be a pod that is gone, whose address answers
	// nothing. It leaves time for one packet to be lost.
	dialTimeout = 1500 * time.Millisecond
	// connectTimeout bounds dialling, the TLS handshake and the stream's begin; an operator that all pods come back to at
	// once may take a while for it.
	connectTimeout = 5 * time.Second
	// sendTimeout bounds one message: an end that does not read is an end that is lost.
	sendTimeout = 5 * time.Second
	// maxMessage bounds what the operator may send: some ten thousand limits.
	maxMessage = 8 << 20
)

type stream = grpc.BidiStreamingClient[quotav1.SidecarMessage, quotav1.OperatorMessage]

// session is one stream, from dial to end. When it returns, nothing of it is alive.
func (c *Client) session(ctx context.Context, address string) error {
	c.machine.welcomed = false
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(connectTimeout, func() { cancel(fmt.Errorf("%w within %v", errSilent, connectTimeout)) })
	defer timeout.Stop()

	conn, err := c.dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stream, err := quotav1.NewQuotaClient(conn).Connect(ctx)
	if err != nil {
		return because(ctx, err)
	}
	timeout.Stop()
	if err := send(cancel, stream, c.machine.connected(time.Now())); err != nil {
		return because(ctx, err)
	}

	incoming := make(chan *quotav1.OperatorMessage)
	received := make(chan error, 1)
	go receive(ctx, stream, incoming, received)
	err = c.converse(ctx, cancel, address, stream, incoming, received)
	c.options.Enforcer.Lost()
	cancel(err)
	for range incoming { // until the receiver has ended
	}
	return because(ctx, err)
}

// converse runs the machine until the stream ends.
func (c *Client) converse(ctx context.Context, cancel context.CancelCauseFunc, address string, s stream,
	incoming <-chan *quotav1.OperatorMessage, received <-chan error) error {
	m := c.machine
	draining, finish := c.draining, c.finish
	for {
		out, due, err := m.tick(time.Now())
		if err != nil {
			return err
		}
		if err := send(cancel, s, out); err != nil {
			return err
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case message, ok := <-incoming:
			timer.Stop()
			if !ok {
				return <-received
			}
			out, err := m.receive(message, time.Now())
			if m.welcomed {
				c.welcomed(address)
			}
			if refused, ok := errors.AsType[*refusal](err); ok {
				c.options.Log.Error("Assignment refused, the last good one stays in force", "error", refused.err)
				continue
			}
			if err != nil {
				return err
			}
			if err := send(cancel, s, out); err != nil {
				return err
			}
		case <-draining:
			timer.Stop()
			draining = nil
			if err := send(cancel, s, m.drain(time.Now())); err != nil {
				return err
			}
		case <-finish:
			timer.Stop()
			return c.farewell(ctx, cancel, s, incoming, received)
		case <-c.options.Enforcer.Speak():
			timer.Stop()
			if err := send(cancel, s, m.report()); err != nil {
				return err
			}
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// farewell sends the final report and waits for the operator to end the stream, which says that it was read.
func (c *Client) farewell(ctx context.Context, cancel context.CancelCauseFunc, s stream,
	incoming <-chan *quotav1.OperatorMessage, received <-chan error) error {
	if err := send(cancel, s, c.machine.drained()); err != nil {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for {
		select {
		case _, ok := <-incoming:
			if !ok {
				return <-received
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Client) dial(address string) (*grpc.ClientConn, error) {
	config, err := c.options.Credentials.tls()
	if err != nil {
		return nil, err
	}
	token, err := c.options.Credentials.token()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("dns:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithPerRPCCredentials(bearer(token)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
		}),
		grpc.WithNoProxy(), // an HTTPS_PROXY of the pod is not meant for the operator
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("operator address %q: %w", address, err)
	}
	return conn, nil
}

// bearer presents the pod's token, over TLS only.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (b bearer) RequireTransportSecurity() bool { return true }

// receive passes messages on until the stream ends; then it says why and closes incoming.
func receive(ctx context.Context, s stream, incoming chan<- *quotav1.OperatorMessage, received chan<- error) {
	defer close(incoming)
	for {
		message, err := s.Recv()
		if err != nil {
			received <- err
			return
		}
		select {
		case incoming <- message:
		case <-ctx.Done():
			received <- context.Cause(ctx)
			return
		}
	}
}

// send sends a message, if there is one, within sendTimeout.
func send(cancel context.CancelCauseFunc, s stream, message *quotav1.SidecarMessage) error {
	if message == nil {
		return nil
	}
	timeout := time.AfterFunc(sendTimeout, func() { cancel(fmt.Errorf("%w: it does not read", errSilent)) })
	defer timeout.Stop()
	if err := s.Send(message); !errors.Is(err, io.EOF) {
		return err
	}
	return nil // the stream has ended; what the operator said last, and why it ended, comes from Recv
}

// because prefers the reason for which a context was cancelled to the cancellation.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}
