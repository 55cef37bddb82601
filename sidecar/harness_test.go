// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	_ "github.com/headgate/headgate/sidecar" // what is built below is made of it: without this a change of it leaves old results in the test cache
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/quota/quotatest"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "headgate-sidecar")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(folder, "headgate-sidecar")
	build := exec.Command("go", "build", "-o", binary, "github.com/headgate/headgate/cmd/headgate-sidecar")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(folder)
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// patience bounds every wait; a test that needs it has failed already.
const patience = 20 * time.Second

// eventually polls until a condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for give := time.Now().Add(patience); time.Now().Before(give); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("waited %v for: %s", patience, what)
}

// pod is a running sidecar with its application and its operator.
type pod struct {
	t        testing.TB
	leader   *quotatest.Leader
	operator *quotatest.Server
	port     int    // where clients connect
	admin    string // host:port
	local    string // host:port
	record   string // folder, or empty

	process *exec.Cmd
	output  *output
	ended   chan struct{} // closed when the process has ended
}

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// logs is what the sidecar has logged so far.
func (p *pod) logs() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return p.output.text.String()
}

// podOptions change what startPod does.
type podOptions struct {
	limits []*quotav1.Limit // of one policy, each with the whole as the pod's share
	fill   bool             // whether the shares start full
	record bool
	bare   bool // nothing is assigned
	flags  []string
}

// startPod runs the binary in front of an application and waits until it is ready.
func startPod(t testing.TB, app http.Handler, o podOptions) *pod {
	t.Helper()
	server := httptest.NewUnstartedServer(app)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return startPodAt(t, server.Listener, o)
}

func startPodAt(t testing.TB, app net.Listener, o podOptions) *pod {
	t.Helper()
	authority := quotatest.NewAuthority(t)
	p := &pod{t: t, leader: quotatest.NewLeader(1, 50), output: &output{}, ended: make(chan struct{})}
	if !o.bare {
		p.leader.Assign(snapshot("v1", o.limits...), shares(o.fill, o.limits...)...)
	}
	p.operator = authority.Serve(t, p.leader.Handle)
	ca, token := authority.Files(t, "secret")
	p.port = freePort(t)
	p.admin = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	p.local = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	if o.record {
		p.record = t.TempDir()
	}
	p.process = exec.Command(binary, append([]string{
		"--ca-file", ca, "--token-file", token, "--admin-address", p.admin, "--local-address", p.local,
	}, o.flags...)...)
	p.process.Env = []string{
		fmt.Sprintf("%s=%d=%d", quotav1.EnvPorts, p.port, app.Addr().(*net.TCPAddr).Port),
		quotav1.EnvOperator + "=" + p.operator.Address,
		quotav1.EnvPod + "=shop/checkout-1",
		quotav1.EnvRecord + "=" + p.record,
	}
	p.process.Stdout, p.process.Stderr = p.output, p.output
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.process.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.process.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("output of the sidecar:\n%s", p.logs())
		}
	})
	if !o.bare {
		eventually(t, "the sidecar to be ready", func() bool { return p.status(p.admin, quotav1.PathReady) == http.StatusOK })
	}
	return p
}

// freePort returns a port outside of the range that the kernel gives to others.
func freePort(t testing.TB) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := 17000 + rand.IntN(12000)
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil || ports.used[port] {
			continue
		}
		_ = l.Close()
		ports.used[port] = true
		return port
	}
	t.Fatal("no free port")
	return 0
}

var ports = struct {
	sync.Mutex
	used map[int]bool
}{used: map[int]bool{}}

// url is where clients go.
func (p *pod) url(path string) string { return "http://" + p.address() + path }

func (p *pod) address() string { return "127.0.0.1:" + strconv.Itoa(p.port) }

// client is an HTTP client that keeps connections alive, as many as it needs.
func client(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// get returns the answer to a request, with its body read.
func get(t testing.TB, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	response, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// status asks one of the admin servers; 0 when it does not answer.
func (p *pod) status(address, path string) int {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := c.Get("http://" + address + path)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// text is the body of an answer of one of the admin servers.
func (p *pod) text(address, path string) string {
	p.t.Helper()
	_, body := get(p.t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, (&url.URL{Scheme: "http", Host: address, Path: path}).String())
	return body
}

func (p *pod) state() admin.State {
	p.t.Helper()
	var s admin.State
	if err := json.Unmarshal([]byte(p.text(p.local, quotav1.PathState)), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// drain runs the preStop hook as the kubelet does.
func (p *pod) drain() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "drain", "--local-address", p.local).CombinedOutput()
	if err != nil {
		p.t.Fatalf("drain: %v: %s", err, out)
	}
}

// terminate sends SIGTERM and returns the exit status.
func (p *pod) terminate() int {
	p.t.Helper()
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *pod) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("the sidecar does not end")
	}
	return p.process.ProcessState.ExitCode()
}

// perSecond is a limit for all requests.
func perSecond(name string, n, burst uint64, key ...*quotav1.KeyPart) *quotav1.Limit {
	return &quotav1.Limit{
		Id:       "uid/" + name + "/1",
		Name:     name,
		Key:      key,
		Rate:     &quotav1.Rate{Requests: n, PeriodNanoseconds: uint64(time.Second)},
		Burst:    burst,
		Scope:    quotav1.Scope_TOTAL,
		Strategy: quotav1.Strategy_EQUAL_SHARE,
	}
}

// perHour is a limit that earns nothing while a test runs: what it admits is its burst.
func perHour(name string, n, burst uint64, key ...*quotav1.KeyPart) *quotav1.Limit {
	l := perSecond(name, n, burst, key...)
	l.Rate.PeriodNanoseconds = uint64(time.Hour)
	return l
}

func header(name string) *quotav1.KeyPart {
	return &quotav1.KeyPart{Part: &quotav1.KeyPart_Header{Header: strings.ToLower(name)}}
}

func snapshot(version string, limits ...*quotav1.Limit) *quotav1.Snapshot {
	return &quotav1.Snapshot{Version: version, Policies: []*quotav1.Policy{
		{Uid: "uid", Namespace: "shop", Name: "checkout", Generation: 7, Limits: limits},
	}}
}

// shares are the whole of each limit.
func shares(fill bool, limits ...*quotav1.Limit) []*quotav1.Share {
	var out []*quotav1.Share
	for _, l := range limits {
		s := &quotav1.Share{LimitId: l.Id, Units: quotav1.Whole}
		if fill {
			s.FillUnits = quotav1.Whole
		}
		out = append(out, s)
	}
	return out
}

// dial opens a connection of its own.
func dial(t testing.TB, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}
