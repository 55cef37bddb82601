// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"

	"github.com/panjf2000/gnet/v2"
)

// gnetRelay passes bytes on with an event-loop library, and looks at none of them: what is left for a proxy built on it to
// spend is the difference to the others.
func gnetRelay(listen, app string) error {
	return gnet.Run(&relay{app: app}, "tcp://"+listen, gnet.WithNumEventLoop(1), gnet.WithTCPNoDelay(gnet.TCPNoDelay))
}

type relay struct {
	gnet.BuiltinEventEngine
	app string
}

// OnOpen connects to the application on the client's loop.
func (r *relay) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	if client, ok := c.Context().(gnet.Conn); ok {
		client.SetContext(c)
		return nil, r.OnTraffic(client)
	}
	address, err := net.ResolveTCPAddr("tcp", r.app)
	if err != nil {
		return nil, gnet.Close
	}
	if _, err := c.EventLoop().Register(gnet.NewContext(context.Background(), c), address); err != nil {
		return nil, gnet.Close
	}
	return nil, gnet.None
}

// OnTraffic passes on what has come.
func (r *relay) OnTraffic(c gnet.Conn) gnet.Action {
	other, ok := c.Context().(gnet.Conn)
	if !ok {
		return gnet.None // it waits until the application is connected
	}
	b, err := c.Next(-1)
	if err == nil && len(b) > 0 {
		_, err = other.Write(b)
	}
	if err != nil {
		return gnet.Close
	}
	return gnet.None
}

// OnClose closes the other side, too.
func (r *relay) OnClose(c gnet.Conn, _ error) gnet.Action {
	if other, ok := c.Context().(gnet.Conn); ok {
		other.SetContext(nil)
		_ = other.Close()
	}
	return gnet.None
}
