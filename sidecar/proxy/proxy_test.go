// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy/http1"
	"github.com/headgate/headgate/sidecar/proxy/loop"
)

// portable has the proxies of all tests use goroutines, as they do on systems without epoll.
var portable loop.Portable

// limits are those of the next proxies; the zero value is the defaults.
var limits http1.Limits

// TestMain runs all tests twice where the system has a choice.
func TestMain(m *testing.M) {
	if address := os.Getenv(envCrowd); address != "" {
		os.Exit(beCrowd(address))
	}
	status := m.Run()
	if status == 0 && runtime.GOOS == "linux" {
		portable = true
		status = m.Run()
	}
	if err := goleak.Find(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

const patience = 20 * time.Second

// verdict is an Engine that says always the same, and notes what it was asked.
type verdict struct {
	holds  atomic.Bool // decides some time later
	answer atomic.Pointer[admission.Decision]
	asked  atomic.Pointer[admission.Request]
}

func allow() *verdict {
	v := &verdict{}
	v.answer.Store(&admission.Decision{Allowed: true})
	return v
}

func (v *verdict) DecideOrHold(r *admission.Request, _ limiter.Time, then func(admission.Decision)) (admission.Decision, *admission.Held) {
	// The strings are valid during the call only.
	v.asked.Store(&admission.Request{Method: strings.Clone(r.Method), Path: strings.Clone(r.Path), Host: strings.Clone(r.Host), Peer: r.Peer})
	if !v.holds.Load() {
		return *v.answer.Load(), nil
	}
	held := &admission.Held{}
	time.AfterFunc(5*time.Millisecond, func() {
		if held.Cancel() {
			then(*v.answer.Load())
		}
	})
	return admission.Decision{}, held
}

func (v *verdict) Observe(float64) {}

// gate is a running proxy.
type gate struct {
	*Proxy
	engine  *verdict
	address string
}

func (g *gate) url(path string) string { return "http://" + g.address + path }

// serve runs a proxy in front of an application, which speaks HTTP/1.1 and HTTP/2 without TLS.
func serve(t testing.TB, app http.Handler) *gate {
	t.Helper()
	return serveAt(t, appPort(t, app))
}

func appPort(t testing.TB, app http.Handler) int {
	s := httptest.NewUnstartedServer(app)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func serveAt(t testing.TB, port int) *gate {
	t.Helper()
	engine := allow()
	g := start(t, port, engine)
	g.engine = engine
	return g
}

// start runs a proxy that asks an engine.
func start(t testing.TB, port int, engine Engine) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{address: l.Addr().String()}
	g.Proxy = New(l, Options{portable: portable, Limits: limits, AppPort: port, Engine: engine, Clock: limiter.Now, Observer: allow()})
	ended := make(chan error, 1)
	go func() { ended <- g.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return g
}

// client speaks one protocol: HTTP/1.1, or HTTP/2 by prior knowledge.
func client(t testing.TB, h2 bool) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, MaxIdleConnsPerHost: 64}
	if h2 {
		transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		transport.Protocols.SetHTTP1(true)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func both(t *testing.T, f func(t *testing.T, h2 bool)) {
	for _, h2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP1", true: "HTTP2"}[h2], func(t *testing.T) { f(t, h2) })
	}
}

// eventually polls until a condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for give := time.Now().Add(patience); time.Now().Before(give); time.Sleep(time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("waited %v for: %s", patience, what)
}

// raw sends bytes on a connection of its own and returns the answer.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	c := dial(t, address)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheApplicationSeesTheRequestAsSent(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		var got atomic.Pointer[http.Request]
		g := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r) }))
		r, err := http.NewRequest(http.MethodPatch, g.url("/a%2Fb//c/../d%7E?q=1;2&%zz"), strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "shop.example:8080"
		maps.Copy(r.Header, http.Header{
			"X-Api-Key": {"one", "two"}, "X-Forwarded-For": {"198.51.100.7"}, "X-Forwarded-Proto": {"https"},
			"X-Forwarded-Host": {"outside"}, "Forwarded": {"for=198.51.100.7"}, "Accept-Encoding": {"br"}, "Te": {"trailers"},
		})
		r.Header["User-Agent"] = nil
		response, err := client(t, h2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = body(t, response)
		in := got.Load()
		if want := map[bool]int{false: 1, true: 2}[h2]; in.ProtoMajor != want {
			t.Errorf("the application saw HTTP/%d, the client spoke HTTP/%d", in.ProtoMajor, want)
		}
		if in.Method != http.MethodPatch || in.RequestURI != "/a%2Fb//c/../d%7E?q=1;2&%zz" || in.Host != "shop.example:8080" {
			t.Errorf("the application saw %s %s of %s", in.Method, in.RequestURI, in.Host)
		}
		for name, want := range map[string]string{
			"X-Api-Key": "one|two", "X-Forwarded-For": "198.51.100.7, 127.0.0.1", "X-Forwarded-Proto": "https",
			"X-Forwarded-Host": "outside", "Forwarded": "for=198.51.100.7", "Accept-Encoding": "br", "User-Agent": "", "Te": "trailers",
		} {
			if got := strings.Join(in.Header[name], "|"); got != want {
				t.Errorf("the application saw %s: %q, want %q", name, got, want)
			}
		}
		if asked := g.engine.asked.Load(); asked.Path != "/a%2Fb//c/../d%7E" || asked.Host != r.Host || asked.Peer.String() != "127.0.0.1" || asked.Method != http.MethodPatch {
			t.Errorf("decided by %+v", asked)
		}
	})
}

func TestPathsArriveByteForByte(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }))
	for _, uri := range []string{"/", "/?", "/a|b", `/a"b`, "/a[0]?x=[1]|2", "/%41%e2", "/a/../b/./c", "//x//y", "/a;b=c", "/x?a=%", "/a^b?"} {
		answer := raw(t, g.address, "GET "+uri+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if _, got, _ := strings.Cut(answer, "\r\n\r\n"); got != uri {
			t.Errorf("sent %q, the application saw %q", uri, got)
		}
	}
}

func TestTheClientSeesTheAnswerAsGiven(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header()["Content-Type"] = nil
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2")
			all, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(all)
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-Unannounced", "43")
		}))
		sent := rand.Text() + strings.Repeat("0123456789", 100_000)
		response, err := client(t, h2).Post(g.url("/"), "", strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, response); got != sent {
			t.Errorf("body of %d bytes came back as %d bytes", len(sent), len(got))
		}
		if response.StatusCode != http.StatusCreated || len(response.Header["Set-Cookie"]) != 2 || response.Header["Content-Type"] != nil {
			t.Errorf("got %d with %v", response.StatusCode, response.Header)
		}
		if response.Trailer.Get("X-Sum") != "42" || response.Trailer.Get("X-Unannounced") != "43" {
			t.Errorf("trailers: %v", response.Trailer)
		}
	})
}

func TestStreamsFlowBothWaysAtOnce(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := bufio.NewReader(r.Body)
		_ = http.NewResponseController(w).Flush()
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "echo "+line)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	out, in := io.Pipe()
	r, err := http.NewRequest(http.MethodPost, g.url("/"), out)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client(t, true).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(response.Body)
	for i := range 3 {
		if _, err := fmt.Fprintf(in, "%d\n", i); err != nil {
			t.Fatal(err)
		}
		if line, err := answers.ReadString('\n'); err != nil || line != fmt.Sprintf("echo %d\n", i) {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	_ = in.Close()
	_ = body(t, response)
}

func TestEventsAreNotHeldBack(t *testing.T) {
	more := make(chan struct{})
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-more
	}))
	response, err := client(t, false).Get(g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 9)
	if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "data: 1\n\n" {
		t.Errorf("got %q, %v", first, err)
	}
	close(more)
	_ = body(t, response)
}

func TestInformationalAnswersArePassedOn(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNoContent)
	}))
	var hints atomic.Int64
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { hints.Add(int64(code)); return nil },
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client(t, false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = body(t, response)
	if hints.Load() != http.StatusEarlyHints || response.StatusCode != http.StatusNoContent {
		t.Errorf("hints %d, then %d", hints.Load(), response.StatusCode)
	}
}

func TestExpectContinueWaitsForTheApplication(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	head := "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
	c := dial(t, g.address)
	_, _ = fmt.Fprintf(c, head, "/")
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("got %q, %v, want 100", line, err)
	}
	_, _ = io.WriteString(c, "body")
	if rest, err := io.ReadAll(in); err != nil || !strings.HasSuffix(string(rest), "body") {
		t.Errorf("got %q, %v", rest, err)
	}
	if answer := raw(t, g.address, fmt.Sprintf(head, "/refuse")); !strings.HasPrefix(answer, "HTTP/1.1 403") {
		t.Errorf("got %q, want the application's refusal without 100", answer)
	}
}

func TestDenialsDoNotReachTheApplication(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the application was asked") }))
		for want, d := range map[int]*admission.Decision{
			http.StatusTooManyRequests:    {RetryAfter: limiter.Never},
			http.StatusServiceUnavailable: {Unavailable: true},
		} {
			g.engine.answer.Store(d)
			response, err := client(t, h2).Post(g.url("/"), "", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			_ = body(t, response)
			if response.StatusCode != want || response.Header.Get("Retry-After") != "1" {
				t.Errorf("got %d with Retry-After %q, want %d and 1", response.StatusCode, response.Header.Get("Retry-After"), want)
			}
		}
	})
}

func TestHostileHeadsAreRefused(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, tc := range map[string]struct{ request, want string }{
		"a head that is too long":  {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2<<16) + "\r\n\r\n", "HTTP/1.1 431"},
		"two lengths":              {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 400"},
		"a space before the colon": {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "HTTP/1.1 400"},
		"nonsense":                 {"G=T / HTTP/1.1\r\nHost a\r\n\r\n", "HTTP/1.1 400"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, g.address)
			_, _ = io.WriteString(c, tc.request) // may be cut short
			line, _ := bufio.NewReader(c).ReadString('\n')
			if !strings.HasPrefix(line, tc.want) {
				t.Errorf("got %q, want %s", line, tc.want)
			}
		})
	}
}

func TestOptionsOfTheWholeServerReachTheApplication(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	answer := raw(t, g.address, "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if asked := g.engine.asked.Load(); asked == nil || asked.Path != "*" || !strings.HasPrefix(answer, "HTTP/1.1 200") {
		t.Errorf("decided by %+v, answered %q", asked, answer)
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	c := dial(t, g.address)
	_, _ = io.WriteString(c, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n")
	in := bufio.NewReader(c)
	for _, want := range []string{"/1", "/2", "/3"} {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, response); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAHeldRequestIsAnsweredOnceItIsDecided(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %s", r.RequestURI, b)
		}))
		g.engine.holds.Store(true)
		c := client(t, h2)
		for i := range 3 {
			path := fmt.Sprintf("/held/%d", i)
			response, err := c.Post(g.url(path), "", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			if got := body(t, response); got != path+" body" {
				t.Errorf("got %q", got)
			}
		}
		g.engine.answer.Store(&admission.Decision{RetryAfter: limiter.Never})
		response, err := c.Post(g.url("/"), "", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		if _ = body(t, response); response.StatusCode != http.StatusTooManyRequests {
			t.Errorf("got %d", response.StatusCode)
		}
	})
}

func TestAHeldRequestWhoseClientGoesIsTakenBack(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	g.engine.holds.Store(true)
	for range 20 {
		c := dial(t, g.address)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	g.engine.holds.Store(false)
	if answer := raw(t, g.address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200") {
		t.Errorf("got %q", answer)
	}
}
