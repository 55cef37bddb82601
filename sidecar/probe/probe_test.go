// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// app is an application as its author wrote it. What it saw of a request goes to seen.
func app(t *testing.T, seen chan<- *http.Request) int32 {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case seen <- r:
		default:
		}
	})
	mux.HandleFunc("/sick", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the database password is wrong", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/sick", http.StatusFound) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return portOf(s.Listener)
}

func portOf(l net.Listener) int32 { return int32(l.Addr().(*net.TCPAddr).Port) }

// nobody is a port that nothing listens on.
func nobody(t *testing.T) int32 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return portOf(l)
}

func get(port int32, path string) quotav1.Probe {
	return quotav1.Probe{HTTPGet: &quotav1.HTTPProbe{Port: port, Path: path}}
}

// kubelet asks the sidecar for a probe, over a real connection.
func kubelet(t *testing.T, probes quotav1.Probes, path string) (status int, length int64) {
	t.Helper()
	s := httptest.NewServer(New(probes))
	defer s.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "kube-probe/1.37")
	request.Host = "chosen.by.the.caller"
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode, response.ContentLength
}

func TestTheKubeletHearsWhatTheAppSays(t *testing.T) {
	port, closed := app(t, nil), nobody(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(secure.Close)
	rpc := grpc.NewServer()
	state := health.NewServer()
	state.SetServingStatus("sick", healthv1.HealthCheckResponse_NOT_SERVING)
	healthv1.RegisterHealthServer(rpc, state)
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = rpc.Serve(listener) }()
	t.Cleanup(rpc.Stop)

	for name, tc := range map[string]struct {
		probe quotav1.Probe
		want  int
	}{
		"an app that is well":                             {get(port, "/healthz"), 200},
		"a path with a query":                             {get(port, "/healthz?full=1"), 200},
		"an app that is sick":                             {get(port, "/sick"), 503},
		"a path that the app does not have":               {get(port, "/nothing"), 404},
		"nothing listens":                                 {get(closed, "/healthz"), 502},
		"an app that never answers":                       {get(port, "/slow"), 504},
		"a redirect on the same host is followed":         {get(port, "/there"), 503},
		"a redirect to another host counts as an answer":  {get(port, "/elsewhere"), 200},
		"a redirect without end":                          {get(port, "/loop"), 502},
		"a certificate that nobody has signed":            {quotav1.Probe{HTTPGet: &quotav1.HTTPProbe{Port: portOf(secure.Listener), Scheme: "HTTPS"}}, 200},
		"TLS where the app speaks none":                   {quotav1.Probe{HTTPGet: &quotav1.HTTPProbe{Port: port, Scheme: "HTTPS"}}, 502},
		"a port that accepts":                             {quotav1.Probe{TCPSocket: &quotav1.TCPProbe{Port: port}}, 200},
		"a port that nothing listens on":                  {quotav1.Probe{TCPSocket: &quotav1.TCPProbe{Port: closed}}, 502},
		"a gRPC service on IPv6 alone":                    {quotav1.Probe{GRPC: &quotav1.GRPCProbe{Port: portOf(listener)}}, 200},
		"a gRPC service that is not serving":              {quotav1.Probe{GRPC: &quotav1.GRPCProbe{Port: portOf(listener), Service: "sick"}}, 503},
		"a gRPC service that nobody knows":                {quotav1.Probe{GRPC: &quotav1.GRPCProbe{Port: portOf(listener), Service: "unknown"}}, 502},
		"gRPC where nothing listens":                      {quotav1.Probe{GRPC: &quotav1.GRPCProbe{Port: closed}}, 502},
		"a path that cannot be read is sent escaped":      {get(port, "/a%zz"), 404},
		"a path without a slash is below the root anyway": {get(port, "healthz"), 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, length := kubelet(t, quotav1.Probes{"app/readiness": tc.probe}, "/probe/app/readiness")
			if status != tc.want || length != 0 {
				t.Errorf("status %d with %d bytes, want %d and no body", status, length, tc.want)
			}
		})
	}
}

func TestTheProbePortOpensNoOtherPath(t *testing.T) {
	probes := quotav1.Probes{"app/readiness": get(app(t, nil), "/healthz")}
	for _, path := range []string{
		"/probe/", "/probe/app", "/probe/app/liveness", "/probe/other/readiness", "/probe/app/readiness/", "/probe/app/readiness/../../sick",
		"/probe/app/readiness/sick", "/probe/app/readiness%2f..%2fsick", "/sick", "/", "/probe//app/readiness", "/probe/app/Readiness",
	} {
		if status, _ := kubelet(t, probes, path); status != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, status)
		}
	}
	if status, _ := kubelet(t, probes, "/probe/app/readiness?path=/sick&port=1"); status != http.StatusOK {
		t.Errorf("a query changed what was asked: status %d", status)
	}
}

func TestTheAppSeesWhatTheKubeletWouldHaveSent(t *testing.T) {
	for name, tc := range map[string]struct {
		headers           []quotav1.HTTPHeader
		host, agent, more string
	}{
		"without headers":           {nil, "127.0.0.1", "kube-probe/1.37", ""},
		"with a host of its own":    {[]quotav1.HTTPHeader{{Name: "Host", Value: "shop.example"}}, "shop.example", "kube-probe/1.37", ""},
		"with headers of its own":   {[]quotav1.HTTPHeader{{Name: "X-Who", Value: "a"}, {Name: "X-Who", Value: "b"}}, "127.0.0.1", "kube-probe/1.37", "a,b"},
		"with an agent of its own":  {[]quotav1.HTTPHeader{{Name: "User-Agent", Value: "mine"}}, "127.0.0.1", "mine", ""},
		"with a host in small type": {[]quotav1.HTTPHeader{{Name: "host", Value: "shop.example"}}, "shop.example", "kube-probe/1.37", ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan *http.Request, 1)
			p := get(app(t, seen), "/healthz")
			p.HTTPGet.Headers = tc.headers
			if status, _ := kubelet(t, quotav1.Probes{"app/readiness": p}, "/probe/app/readiness"); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			r := <-seen
			host, _, _ := strings.Cut(r.Host, ":")
			if host != tc.host || r.UserAgent() != tc.agent || strings.Join(r.Header["X-Who"], ",") != tc.more || r.Header.Get("Accept") != "*/*" {
				t.Errorf("the app saw host %q and %v", r.Host, r.Header)
			}
		})
	}
}

func TestParseRefusesWhatCannotBeAsked(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":                  {`app/readiness`, "write for example"},
		"an unknown field":         {`{"app/readiness":{"exec":{}}}`, "unknown field"},
		"no kind":                  {`{"app":{"tcpSocket":{"port":1}}}`, "container/kind"},
		"a kind that nobody knows": {`{"app/birth":{"tcpSocket":{"port":1}}}`, "container/kind"},
		"nothing to ask":           {`{"app/readiness":{}}`, "exactly one"},
		"two things to ask":        {`{"app/readiness":{"tcpSocket":{"port":1},"grpc":{"port":1}}}`, "exactly one"},
		"no port":                  {`{"app/readiness":{"tcpSocket":{}}}`, "port 0"},
		"a port beyond all":        {`{"app/readiness":{"httpGet":{"port":65536}}}`, "port 65536"},
		"another scheme":           {`{"app/readiness":{"httpGet":{"port":1,"scheme":"FTP"}}}`, "HTTP or HTTPS"},
		"a header of two lines":    {`{"app/readiness":{"httpGet":{"port":1,"headers":[{"name":"A","value":"b\r\nC: d"}]}}}`, "cannot be sent"},
		"patience below nothing":   {`{"app/readiness":{"timeoutSeconds":-1,"tcpSocket":{"port":1}}}`, "timeoutSeconds"},
		"more than anybody writes": {`{"` + strings.Repeat("a", maxText), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"app/readiness":{"httpGet":{"port":8080,"path":"/healthz?a=b","scheme":"HTTPS","headers":[{"name":"Host","value":"a"}]},"timeoutSeconds":3}}`)
	f.Add(`{"app/liveness":{"grpc":{"port":9000,"service":"x"}},"b/preStop":{"httpGet":{"port":1}}}`)
	f.Add(`{"app/startup":{"tcpSocket":{"port":1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		probes, err := Parse(text)
		if err != nil || len(probes) == 0 {
			return
		}
		b, err := json.Marshal(probes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(string(b)); err != nil {
			t.Fatalf("what was accepted is refused when written again: %v", err)
		}
		for name, p := range probes {
			if p.HTTPGet == nil {
				continue
			}
			r, err := httpRequest(t.Context(), *p.HTTPGet, caller{podIP: "fd00::1", agent: "kube-probe"})
			if err != nil {
				t.Fatalf("%s was accepted and cannot be sent: %v", name, err)
			}
			if r.URL.Hostname() != "fd00::1" || r.URL.Port() != fmt.Sprint(p.HTTPGet.Port) {
				t.Fatalf("%s goes to %s", name, r.URL)
			}
		}
	})
}

// A run is not repeated for those who ask at once or just after, so nobody can make the app work, or spend the turns of the
// kubelet.
func TestManyCallersMakeTheAppWorkOnce(t *testing.T) {
	begun, end := make(chan struct{}, 100), make(chan struct{})
	f := &flight{patience: time.Minute, run: func(context.Context, caller) int {
		begun <- struct{}{}
		<-end
		return http.StatusTeapot
	}}
	got := make(chan int, 10)
	for range 10 {
		go func() {
			status, _ := f.do(t.Context(), caller{})
			got <- status
		}()
	}
	<-begun
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, ok := f.do(gone, caller{}); ok {
		t.Error("a caller who has gone was kept waiting")
	}
	close(end)
	for range 10 {
		if status := <-got; status != http.StatusTeapot {
			t.Errorf("status %d", status)
		}
	}
	if n := len(begun); n != 0 {
		t.Errorf("the app was asked %d times more", n)
	}
}
