// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const (
	// appIdle is how long a connection to the application is kept for reuse. Dialling loopback costs little; a request
	// written to a connection that the application is just closing costs that request. Applications close idle
	// connections after 2 s (gunicorn) or 5 s (Node) and more.
	appIdle = time.Second
	// appIdleConns is how many of them, so that a burst does not dial anew for each request.
	appIdleConns = 256

	// appPatience is how long a request waits for an application that does not listen yet (or not for a moment).
	appPatience = 500 * time.Millisecond
	appRetry    = 20 * time.Millisecond
	appDial     = 5 * time.Second

	// expectPatience is how long an "Expect: 100-continue" waits for the application's word; many never give one.
	expectPatience = time.Second
)

func newTransport(port int) *http.Transport {
	app := dialer{port: strconv.Itoa(port)}
	t := &http.Transport{
		Protocols:              new(http.Protocols),
		DialContext:            app.dial,
		DisableCompression:     true, // the client's Accept-Encoding is the application's to see
		MaxIdleConns:           appIdleConns,
		MaxIdleConnsPerHost:    appIdleConns,
		IdleConnTimeout:        appIdle,
		ExpectContinueTimeout:  expectPatience,
		MaxResponseHeaderBytes: 1 << 20,
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// dialer reaches the application on loopback, whichever address family it listens on.
type dialer struct{ port string }

func (d dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, appDial)
	defer cancel()
	give := time.Now().Add(appPatience)
	for {
		conn, err := d.once(ctx)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(give) {
			return conn, err
		}
		timer := time.NewTimer(appRetry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

func (d dialer) once(ctx context.Context) (net.Conn, error) {
	var plain net.Dialer
	conn, err := plain.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", d.port))
	if err == nil {
		return conn, nil
	}
	conn, err6 := plain.DialContext(ctx, "tcp6", net.JoinHostPort("::1", d.port))
	if err6 == nil {
		return conn, nil
	}
	return nil, err // the first: most applications listen there
}
