// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange_test runs the operator's end of the quota stream and the sidecars' ends against each other, as they are
// shipped: real gRPC over TLS, real clocks. Only the API server is left out.
package exchange_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	operator "github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/target"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/quota"
	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var checkout = target.Workload{Kind: "Deployment", Namespace: "shop", Name: "checkout"}

// cluster is an operator and its pods.
type cluster struct {
	t       testing.TB
	folder  string // of the CA and the tokens
	cert    *tls.Certificate
	leader  *replica
	records records
	pods    []*pod
	limits  []*quotav1.Limit
	round   int64
	hold    *uint64 // what the policy says of it, in nanoseconds
}

// replica is one process of the operator.
type replica struct {
	home *operator.Home
	stop func()
	addr string
}

func newCluster(t testing.TB, limits ...*quotav1.Limit) *cluster {
	t.Helper()
	c := &cluster{t: t, folder: t.TempDir(), limits: limits}
	c.certificate()
	c.lead(1, operator.Handover{}, true)
	t.Cleanup(func() {
		for _, p := range c.pods {
			p.kill()
		}
		c.leader.stop()
	})
	return c
}

// lead starts a replica that leads under an epoch, on the address of the one before.
func (c *cluster) lead(epoch uint64, left operator.Handover, first bool) {
	c.t.Helper()
	addr := "127.0.0.1:0"
	if c.leader != nil {
		addr = c.leader.addr
	}
	r := &replica{home: operator.NewHome(operator.Options{
		Now: operator.Boottime, LeaseUntil: func() int64 { return operator.Boottime() + int64(time.Hour) },
		Changed: func(types.NamespacedName) {},
	})}
	for _, p := range c.pods {
		r.home.ObservePod(p.state())
	}
	c.publish(r.home, first)
	r.home.Lead(epoch, left)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		c.t.Fatal(err)
	}
	r.addr = l.Addr().String()
	server := &operator.Server{Home: r.home, Auth: names{}, Elector: nobody{}, Log: logr.Discard()}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = server.Serve(ctx, l, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.cert, nil })
	})
	running.Go(func() { _ = r.home.Run(ctx) })
	r.stop = func() { cancel(); running.Wait() }
	c.leader = r
}

func (c *cluster) publish(h *operator.Home, first bool) {
	c.round++
	h.Publish(&quotav1.Policy{Uid: "uid", Namespace: "shop", Name: "checkout", Generation: c.round, Limits: c.limits, MaxHoldNanoseconds: c.hold}, []target.Workload{checkout}, first)
}

// names takes a token for the name of the pod.
type names struct{}

func (names) Review(_ context.Context, token string) (operator.Identity, error) {
	return operator.Identity{Namespace: "shop", Pod: token, UID: types.UID(token)}, nil
}

// nobody else leads.
type nobody struct{}

func (nobody) Leader(context.Context) (string, uint64, error) { return "", 0, nil }
func (nobody) Raise(context.Context, uint64) error            { return nil }

// pod is a sidecar without a proxy.
type pod struct {
	c      *cluster
	name   string
	engine *admission.Engine
	client *quota.Client
	kill   func()
	ended  bool
}

func (p *pod) state() operator.PodState {
	s := operator.PodState{
		UID: types.UID(p.name), Namespace: "shop", Name: p.name, Node: "node", Owners: []target.Workload{checkout},
		Injected: true, AppReady: true, Scheduled: true,
	}
	if p.ended {
		s.Terminations = []operator.Termination{{Finished: time.Now().Add(time.Second)}}
		s.SidecarEnded, s.Terminating = true, true
	}
	return s
}

// start starts a pod and waits until it is ready.
func (c *cluster) start(name string) *pod {
	c.t.Helper()
	p := &pod{c: c, name: name, engine: admission.New(admission.Options{Recorder: &c.records})}
	token := filepath.Join(c.folder, name)
	if err := os.WriteFile(token, []byte(name), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.leader.home.ObservePod(p.state())
	p.client = quota.New(quota.Options{
		Operator: c.leader.addr, Credentials: quota.Credentials{CAFile: filepath.Join(c.folder, "ca.crt"), TokenFile: token},
		Identity: quota.Identity{Incarnation: rand.Text(), StartedAt: time.Now(), Version: "test"},
		Enforcer: enforcer{p.engine}, Log: slog.New(slog.DiscardHandler),
		Backoff: quota.Backoff{First: 5 * time.Millisecond, Most: 50 * time.Millisecond},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.client.Run(ctx) })
	running.Go(func() { turn(ctx, p.engine) })
	p.kill = func() { cancel(); running.Wait() }
	c.pods = append(c.pods, p)
	eventually(c.t, "pod "+name+" is ready", func() bool { return p.engine.Ready() == nil })
	return p
}

// clock is what all processes of the machine share.
func clock() limiter.Time { return limiter.Time(record.Now()) }

func turn(ctx context.Context, e *admission.Engine) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-e.Called():
		}
		now := clock()
		timer.Reset(max(e.Turn(now).Sub(now), 200*time.Microsecond))
	}
}

type enforcer struct{ *admission.Engine }

func (e enforcer) Apply(s *quotav1.Snapshot, shares []*quotav1.Share) error {
	return e.Engine.Apply(s, shares, clock())
}
func (e enforcer) Adopt(epoch uint64, sent int64) { e.Engine.Adopt(epoch, sent, clock()) }
func (e enforcer) Report() *quotav1.Report        { return e.Engine.Report(clock()) }
func (e enforcer) Final() *quotav1.Report         { return e.Engine.Final(clock()) }
func (e enforcer) Grant(g *quotav1.Grant) error   { return e.Engine.Grant(g, clock()) }
func (e enforcer) Leave()                         {}

// terminate ends a pod in order.
func (p *pod) terminate() {
	p.engine.Stop(clock())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p.client.Finish(ctx)
	p.kill()
}

// ask offers requests at a rate for a while and returns how many were admitted.
func (p *pod) ask(rate int, span time.Duration, headers ...string) int {
	header := map[string][]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		header[headers[i]] = []string{headers[i+1]}
	}
	r := &admission.Request{Method: "GET", Path: "/", Header: lines(header)}
	var admitted counter
	var asking sync.WaitGroup
	began := time.Now()
	for n := 0; ; {
		passed := time.Since(began)
		if passed >= span {
			break
		}
		for ; n < int(passed.Seconds()*float64(rate)); n++ {
			asking.Add(1)
			answer := func(d admission.Decision) {
				if d.Allowed {
					admitted.add()
				}
				asking.Done()
			}
			if d, held := p.engine.DecideOrHold(r, clock(), answer); held == nil {
				answer(d)
			}
		}
		time.Sleep(500 * time.Microsecond)
	}
	asking.Wait()
	return admitted.n
}

type lines map[string][]string

func (l lines) Values(name string) []string { return l[name] }

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() { c.mu.Lock(); c.n++; c.mu.Unlock() }

// records keeps what all pods decided.
type records struct {
	mu   sync.Mutex
	file record.File
}

func (r *records) Decision(now int64, limit string, key admission.KeyHash, cost uint64, admitted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file.Decisions = append(r.file.Decisions, record.Decision{Time: now, Limit: limit, Key: key, Cost: cost, Admitted: admitted})
}

func (r *records) Share(int64, string, uint64) {}

// lawful checks every interval against the limits that were declared.
func (c *cluster) lawful(limits ...*quotav1.Limit) {
	c.t.Helper()
	declared := map[string]oracle.Limit{}
	for _, l := range limits {
		declared[l.Id] = oracle.Limit{Name: l.Name, Requests: l.Rate.Requests, Period: time.Duration(l.Rate.PeriodNanoseconds), Burst: l.Burst}
	}
	c.records.mu.Lock()
	defer c.records.mu.Unlock()
	report := oracle.Check([]*record.File{&c.records.file}, declared)
	if !report.Kept() {
		report.Fprint(c.t.Output())
		c.t.Error("the law was broken")
	}
	c.t.Logf("%d admitted; the tightest interval used %.1f %%", report.Admitted, 100*report.Tightest)
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for give := time.Now().Add(20 * time.Second); time.Now().Before(give); time.Sleep(2 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

func (c *cluster) certificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{quotav1.ServerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		c.t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(c.folder, "ca.crt"), ca, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.cert = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// limit is one that is lent, as it is compiled.
func limit(rate, burst uint64, change ...func(*quotav1.Limit)) *quotav1.Limit {
	l := &quotav1.Limit{
		Id: "uid/all/1", Name: "all", Burst: burst, Scope: quotav1.Scope_TOTAL, Strategy: quotav1.Strategy_ADAPTIVE,
		Rate: &quotav1.Rate{Requests: rate, PeriodNanoseconds: uint64(time.Second)},
	}
	for _, f := range change {
		f(l)
	}
	return l
}

// once asks for one request and returns whether it was admitted.
func (p *pod) once(name, value string) bool {
	r := &admission.Request{Method: "GET", Path: "/", Header: lines{name: {value}}}
	d, _ := p.engine.DecideWait(p.c.t.Context(), clock(), r)
	return d.Allowed
}

// admitted counts what all pods have admitted so far.
func (r *records) admitted() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.file.Decisions {
		if d.Admitted {
			n += int(d.Cost)
		}
	}
	return n
}
