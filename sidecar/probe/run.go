// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

const (
	schemeHTTP  = "HTTP"
	schemeHTTPS = "HTTPS"
	// maxRedirects is how many redirects the kubelet follows.
	maxRedirects = 10
)

// dialApp connects to the port of an address on loopback, whatever the address: an app listens on all addresses or on one
// of the two loopbacks, as the proxy expects it to.
func dialApp(ctx context.Context, _, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
	if err == nil {
		return conn, nil
	}
	if six, err6 := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", port)); err6 == nil {
		return six, nil
	}
	return nil, err
}

// unreachable is the status for an app that gave no answer.
func unreachable(ctx context.Context, err error) int {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

func tcpRunner(p quotav1.TCPProbe) runner {
	return func(ctx context.Context, _ caller) int {
		conn, err := dialApp(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(int(p.Port))))
		if err != nil {
			return unreachable(ctx, err)
		}
		_ = conn.Close()
		return http.StatusOK
	}
}

func grpcRunner(p quotav1.GRPCProbe) runner {
	target := "passthrough:///" + net.JoinHostPort("127.0.0.1", strconv.Itoa(int(p.Port)))
	return func(ctx context.Context, from caller) int {
		conn, err := grpc.NewClient(target, grpc.WithUserAgent(from.agent), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dialApp(ctx, "tcp", address) }))
		if err != nil {
			return http.StatusBadGateway
		}
		defer func() { _ = conn.Close() }()
		answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: p.Service})
		switch {
		case err != nil:
			return unreachable(ctx, err)
		case answer.Status != healthv1.HealthCheckResponse_SERVING:
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}
}

// httpRunner sends what the kubelet would send: no verification of certificates, no proxy, redirects followed on the same
// host only.
func httpRunner(p quotav1.HTTPProbe) runner {
	client := &http.Client{
		Transport: &http.Transport{
			DialContext:        dialApp,
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, // as the kubelet does: the app's own word is asked for
			ForceAttemptHTTP2:  true,
			DisableKeepAlives:  true,
			DisableCompression: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Hostname() != via[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			if len(via) >= maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
	return func(ctx context.Context, from caller) int {
		request, err := httpRequest(ctx, p, from)
		if err != nil {
			return http.StatusInternalServerError
		}
		response, err := client.Do(request)
		if err != nil {
			return unreachable(ctx, err)
		}
		_ = response.Body.Close()
		if response.StatusCode >= 200 && response.StatusCode < 400 {
			return http.StatusOK
		}
		return max(response.StatusCode, http.StatusBadRequest)
	}
}

func httpRequest(ctx context.Context, p quotav1.HTTPProbe, from caller) (*http.Request, error) {
	target, err := url.Parse(p.Path) // may hold a query
	if err != nil {
		target = &url.URL{Path: p.Path} // the kubelet escapes what it cannot read
	}
	target.Scheme = strings.ToLower(p.Scheme)
	if target.Scheme == "" {
		target.Scheme = "http"
	}
	target.Host = net.JoinHostPort(from.podIP, strconv.Itoa(int(p.Port)))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range p.Headers {
		request.Header.Add(h.Name, h.Value)
	}
	if _, set := request.Header["User-Agent"]; !set {
		request.Header.Set("User-Agent", from.agent)
	}
	if _, set := request.Header["Accept"]; !set {
		request.Header.Set("Accept", "*/*")
	}
	request.Host = request.Header.Get("Host")
	request.Header.Del("Host")
	return request, nil
}
