// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/quota/quotatest"
)

// startSidecar runs the program as it is shipped, with an operator that gives it all of every limit.
func (s *setup) startSidecar() error {
	binary := filepath.Join(s.folder, "headgate-sidecar")
	build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", binary, "./cmd/headgate-sidecar")
	build.Dir = "../../.." // its own module
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the sidecar: %w\n%s", err, out)
	}
	authority := quotatest.NewAuthority(s.test)
	leader := quotatest.NewLeader(1, 1000)
	limits := []*quotav1.Limit{
		limit("ok", "/ok", 1_000_000, time.Second, clientIP()),
		limit("no", "/no", 1, time.Hour, clientIP()),
		limit("key", "/key", 1_000_000, time.Second, &quotav1.KeyPart{Part: &quotav1.KeyPart_Header{Header: "x-api-key"}}),
		limit("rpc", "/grpc.health.v1.Health", 1_000_000, time.Second, clientIP()),
	}
	var shares []*quotav1.Share
	for _, l := range limits {
		shares = append(shares, &quotav1.Share{LimitId: l.GetId(), Units: quotav1.Whole, FillUnits: quotav1.Whole})
	}
	leader.Assign(&quotav1.Snapshot{Version: "1", Policies: []*quotav1.Policy{{Namespace: "bench", Name: "bench", Uid: "1", Generation: 1, Limits: limits}}}, shares...)
	operator := authority.Serve(s.test, leader.Handle)
	ca, token := authority.Files(s.test, "secret")
	c := &contender{name: ours, http: s.address(), rpc: s.address(), limits: true}
	admin := s.address()
	pair := func(listen, app string) string { return port(listen) + "=" + port(app) }
	err := s.run(c, []string{
		"GOMAXPROCS=1",
		quotav1.EnvPorts + "=" + pair(c.http, s.app.http) + "," + pair(c.rpc, s.app.rpc),
		quotav1.EnvOperator + "=" + operator.Address,
		quotav1.EnvPod + "=bench/bench-1",
	}, binary, "--ca-file", ca, "--token-file", token, "--admin-address", admin, "--local-address", s.address())
	if err != nil {
		return err
	}
	for give := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get("http://" + admin + quotav1.PathReady)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if time.Now().After(give) {
			return fmt.Errorf("the sidecar is not ready: %w\n%s", err, c.output.String())
		}
	}
}

func limit(name, path string, n uint64, per time.Duration, key *quotav1.KeyPart) *quotav1.Limit {
	return &quotav1.Limit{
		Id: "bench/" + name, Name: name, Key: []*quotav1.KeyPart{key},
		Matches:  []*quotav1.Match{{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: path}}},
		Rate:     &quotav1.Rate{Requests: n, PeriodNanoseconds: uint64(per)},
		Burst:    n,
		Scope:    quotav1.Scope_TOTAL,
		Strategy: quotav1.Strategy_EQUAL_SHARE,
	}
}

func clientIP() *quotav1.KeyPart {
	return &quotav1.KeyPart{Part: &quotav1.KeyPart_ClientIp{ClientIp: &quotav1.ClientIP{}}}
}

func port(address string) string {
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	if _, err := strconv.Atoi(p); err != nil {
		panic(err)
	}
	return p
}

// tb lets the operator of the sidecar's tests serve outside of a test.
type tb struct {
	testing.TB
	folder   string
	cleanups []func()
}

func (t *tb) Helper()          {}
func (t *tb) TempDir() string  { return t.folder }
func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *tb) Fatal(args ...any) {
	panic(fmt.Sprint(args...))
}
