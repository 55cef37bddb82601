// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs a program to its end and returns what it printed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program(t, name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func echo(t *testing.T) *net.TCPAddr {
	return gate(t, application(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-From", r.Header.Get("X-Forwarded-For"))
		_, _ = io.Copy(w, r.Body)
	})))
}

func TestCurlIsServedInBothProtocols(t *testing.T) {
	url := fmt.Sprintf("http://%s/", echo(t))
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte(strings.Repeat("0123456789", 200_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"--http1.0", "--http1.1", "--http2-prior-knowledge"} {
		for _, args := range [][]string{{}, {"-H", "Expect: 100-continue"}, {"-H", "Transfer-Encoding: chunked"}} {
			if protocol == "--http1.0" && len(args) > 0 || protocol == "--http2-prior-knowledge" && len(args) > 0 {
				continue
			}
			all := append([]string{"-sS", protocol, "--data-binary", "@" + file, "-w", "%{http_code} %{size_download}", "-o", "/dev/null", url}, args...)
			if out := run(t, "curl", all...); out != "200 2000000" {
				t.Errorf("%s %v: %s", protocol, args, out)
			}
		}
	}
}

func TestLoadGeneratorsSeeNoError(t *testing.T) {
	address := echo(t)
	out := run(t, "wrk", "-t1", "-c20", "-d1s", fmt.Sprintf("http://%s/", address))
	if strings.Contains(out, "Socket errors") || strings.Contains(out, "Non-2xx") || !strings.Contains(out, "Requests/sec") {
		t.Error(out)
	}
	out = run(t, "h2load", "-n2000", "-c4", "-m20", fmt.Sprintf("http://%s/", address))
	if !strings.Contains(out, "2000 succeeded, 0 failed") {
		t.Error(out)
	}
	out = run(t, "h2load", "--h1", "-n2000", "-c4", fmt.Sprintf("http://%s/", address))
	if !strings.Contains(out, "2000 succeeded, 0 failed") {
		t.Error(out)
	}
}

func TestNginxInFrontIsServed(t *testing.T) {
	folder := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := listener.Addr().String()
	_ = listener.Close()
	config := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log; events {}\n"+
		"http { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n"+
		"upstream app { server %[2]s; keepalive 4; }\n"+
		"server { listen %[3]s; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header X-Forwarded-For 198.51.100.7; } } }\n",
		folder, echo(t), front)
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	nginx := exec.Command(program(t, "nginx"), "-p", folder, "-c", file)
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nginx.Process.Kill(); _ = nginx.Wait() })
	var response *http.Response
	for give := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if response, err = http.Post("http://"+front, "", strings.NewReader("hello")); err == nil || time.Now().After(give) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	for range 50 {
		r, err := http.Post("http://"+front, "", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK || string(b) != "hello" || r.Header.Get("X-From") != "198.51.100.7, 127.0.0.1" {
			t.Fatalf("%d %q %v from %s", r.StatusCode, b, err, r.Header.Get("X-From"))
		}
	}
}
