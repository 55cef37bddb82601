// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"bufio"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// wire is what a client reads from the connection.
func wire(t *testing.T, request string, answer func(http.ResponseWriter, *http.Request)) string {
	t.Helper()
	client, server := net.Pipe()
	defer func() { _ = client.Close() }()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		answer(w, r)
	})}
	l := &once{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- server
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	defer func() { _ = s.Close(); <-ended }()
	if _, err := client.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	if err := client.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := bufio.NewReader(client).WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// once is a listener with one connection.
type once struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *once) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *once) Close() error   { close(l.closed); return nil }
func (l *once) Addr() net.Addr { return &net.TCPAddr{} }

func TestDenialsAreGolden(t *testing.T) {
	get := "GET /v1/x HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
	head := strings.Replace(get, "GET", "HEAD", 1)
	grpc := "POST /shop.Cart/Add HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Length: 0\r\nContent-Type: application/grpc+proto\r\n\r\n"
	one := Denial{Limits: []string{"checkout/per-api-key"}, RetryAfter: 1200 * time.Millisecond}
	for name, tc := range map[string]struct {
		request string
		answer  func(Asker) Answer
	}{
		"http":                   {get, deny(one)},
		"http-head-has-no-body":  {head, deny(one)},
		"http-two-limits":        {get, deny(Denial{Limits: []string{"checkout/per-api-key", "checkout/whole-service"}, RetryAfter: time.Hour})},
		"http-nobody-knows-when": {get, deny(Denial{Limits: []string{"checkout/all"}})},
		"grpc":                   {grpc, deny(one)},
		"unavailable":            {get, Unavailable},
		"unavailable-head":       {head, Unavailable},
		"unavailable-grpc":       {grpc, Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var answer Answer
			got := wire(t, tc.request, func(w http.ResponseWriter, r *http.Request) {
				answer = tc.answer(AskerOf(r))
				answer.Write(w)
			})
			if diff := cmp.Diff(lines(got), lines(string(answer.Append(nil, true)))); diff != "" {
				t.Errorf("the engine of our own would answer otherwise than net/http:\n%s", diff)
			}
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// lines are an answer's lines, its header in alphabetical order: net/http chooses one of its own.
func lines(answer string) []string {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	out := strings.Split(head, "\r\n")
	slices.Sort(out[1:])
	return append(out, body)
}

func deny(d Denial) func(Asker) Answer {
	return func(to Asker) Answer { return Deny(to, d) }
}

func TestRetryAfterIsRoundedUpAndNeverZero(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		-time.Second: 1, 0: 1, 1: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Minute: 5400,
	} {
		if got := (Denial{RetryAfter: d}).retrySeconds(); got != want {
			t.Errorf("%v is told as %d s, want %d", d, got, want)
		}
	}
}

func TestWhatIsGRPC(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;x=y": true, "Application/GRPC": true,
		"application/grpc-web": false, "application/grpc-web+proto": false, "application/json": false, "": false, "application/grpcx": false,
	} {
		if got := isGRPC(contentType); got != want {
			t.Errorf("isGRPC(%q) = %v", contentType, got)
		}
	}
}

func TestGRPCMessagesAreEncoded(t *testing.T) {
	if got, want := percentEncode("50% über\n"), "50%25 %C3%BCber%0A"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
