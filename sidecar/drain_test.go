// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

func TestDrainUnderKeepAliveLoadFailsNoRequest(t *testing.T) {
	all := perSecond("all", 1_000_000, 1_000_000)
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{all}, fill: true})
	next := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{all}, fill: true})
	var target atomic.Pointer[string]
	set := func(s string) { target.Store(&s) }
	set(p.url("/"))
	var served, failed atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		c := client(t)
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := c.Post(*target.Load(), "", io.NopCloser(strings.NewReader("x"))) // cannot be sent again unseen
				if err != nil || r.StatusCode != http.StatusOK {
					t.Errorf("a request failed: %+v, %v", r, err)
					failed.Add(1)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
				served.Add(1)
			}
		})
	}
	reach := func(n int64) {
		t.Helper()
		eventually(t, "requests", func() bool { return served.Load() >= n || failed.Load() > 0 })
	}
	reach(100)
	p.drain()
	if status := p.status(p.admin, quotav1.PathReady); status != http.StatusServiceUnavailable {
		t.Errorf("readiness is %d while draining, want 503", status)
	}
	reach(served.Load() + 200) // endpoints still lead here
	set(next.url("/"))
	reach(served.Load() + 100) // every client has finished what it had begun
	if status := p.terminate(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	reach(served.Load() + 100)
	close(stop)
	clients.Wait()
	drained := p.leader.Drained()
	if len(drained) != 1 {
		t.Fatalf("%d final reports", len(drained))
	}
	var usage *quotav1.Usage
	for _, m := range p.leader.Received() {
		if u := m.GetUsage(); u.GetDraining() {
			usage = u
			break
		}
	}
	if usage == nil {
		t.Error("the drain was not reported before the end")
	}
	if got, counted := drained[0].GetLimits()[0].GetAdmitted(), uint64(served.Load()); got == 0 || got > counted {
		t.Errorf("final report says %d, clients saw %d in both pods", got, counted)
	}
}

func TestRequestsInFlightOutliveSIGTERM(t *testing.T) {
	arrived, more := make(chan struct{}), make(chan struct{})
	p := startPod(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-more
		_, _ = io.WriteString(w, "late")
	}), podOptions{})
	c, answer := client(t), make(chan string, 1)
	go func() {
		r, err := c.Get(p.url("/"))
		if err != nil {
			answer <- err.Error()
			return
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		answer <- string(b)
	}()
	<-arrived
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the listener to close", func() bool { return strings.Contains(p.logs(), "Draining") })
	if len(p.leader.Drained()) > 0 {
		t.Error("the final report went out with a request in flight")
	}
	close(more)
	if got := <-answer; got != "late" {
		t.Errorf("got %q", got)
	}
	if status := p.wait(); status != 0 || len(p.leader.Drained()) != 1 {
		t.Errorf("exit status %d, %d final reports", status, len(p.leader.Drained()))
	}
}

func TestAPodWhoseHookIsLateDrainsByTheOperatorsWord(t *testing.T) {
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perSecond("all", 1000, 1000)}, fill: true})
	if status := p.status(p.address(), "/"); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	p.leader.Leave()
	eventually(t, "the pod to be unready", func() bool {
		return p.status(p.admin, quotav1.PathReady) == http.StatusServiceUnavailable
	})
	r, err := client(t).Get(p.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusOK || !r.Close {
		t.Errorf("a request is answered %s, close: %v; want to be served and sent elsewhere", r.Status, r.Close)
	}
}

func TestTheHookOfAnAppWaitsForItsLastClient(t *testing.T) {
	const still = 300 * time.Millisecond
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perSecond("all", 1000, 1000)}, fill: true})
	p.drain()
	over := make(chan time.Time, 1)
	go func() {
		if status := p.status(p.admin, quotav1.PathQuiet+"?for="+still.String()+"&within=1m"); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		over <- time.Now()
	}()
	// Clients come for a second. How fast this machine is decides how many do.
	type visit struct{ came, went time.Time }
	var visits []visit
	for begin := time.Now(); time.Since(begin) < time.Second; time.Sleep(20 * time.Millisecond) {
		came := time.Now()
		if status := p.status(p.address(), "/"); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		visits = append(visits, visit{came, time.Now()})
	}
	end := <-over
	var last time.Time
	for _, v := range visits {
		if v.went.Before(end) {
			last = v.came
		}
	}
	if waited := end.Sub(last); waited < still {
		t.Errorf("the app is told to end %s after a client came, not %s", waited, still)
	}
}

func TestTheGraceEnds(t *testing.T) {
	arrived := make(chan struct{})
	p := startPod(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}), podOptions{flags: []string{"--grace", "50ms"}})
	c, cut := client(t), make(chan struct{})
	go func() {
		defer close(cut)
		if r, err := c.Get(p.url("/")); err == nil {
			_ = r.Body.Close()
		}
	}()
	<-arrived
	if status := p.terminate(); status != 0 || len(p.leader.Drained()) != 1 {
		t.Errorf("exit status %d, %d final reports", status, len(p.leader.Drained()))
	}
	<-cut
}
