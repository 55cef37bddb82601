// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/quota"
	"github.com/headgate/headgate/sidecar/quota/quotatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for give := time.Now().Add(patience); time.Now().Before(give); time.Sleep(2 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("waited %v for: %s", patience, what)
}

// enforcer notes what is in force.
type enforcer struct {
	mu       sync.Mutex
	version  string
	holdings []*quotav1.Holding
	versions []string
}

func (e *enforcer) Apply(s *quotav1.Snapshot, shares []*quotav1.Share) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.GetVersion() == "bad" {
		return errors.New("cannot be compiled")
	}
	e.version, e.holdings = s.GetVersion(), nil
	e.versions = append(e.versions, e.version)
	for _, s := range shares {
		e.holdings = append(e.holdings, &quotav1.Holding{LimitId: s.GetLimitId(), Units: s.GetUnits()})
	}
	return nil
}

func (e *enforcer) Holdings() []*quotav1.Holding {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.holdings
}

func (e *enforcer) SnapshotVersion() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.version
}

func (e *enforcer) Usage() []*quotav1.LimitUsage { return nil }
func (e *enforcer) Adopt(uint64, int64)          {}
func (e *enforcer) Lost()                        {}
func (e *enforcer) Leave()                       {}
func (e *enforcer) Speak() <-chan struct{}       { return nil }
func (e *enforcer) Report() *quotav1.Report      { return nil }
func (e *enforcer) Final() *quotav1.Report       { return nil }
func (e *enforcer) Grant(*quotav1.Grant) error   { return nil }

// running is a client that runs until the test ends.
type running struct {
	*quota.Client
	enforcer *enforcer
}

func run(t *testing.T, operator, ca, token string) *running {
	t.Helper()
	r := &running{enforcer: &enforcer{}}
	r.Client = quota.New(quota.Options{
		Operator:    operator,
		Credentials: quota.Credentials{CAFile: ca, TokenFile: token},
		Identity:    quota.Identity{Incarnation: "i", StartedAt: time.Now(), Version: "test"},
		Enforcer:    r.enforcer,
		Log:         slog.New(slog.DiscardHandler),
		Backoff:     quota.Backoff{First: time.Millisecond, Most: 20 * time.Millisecond},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

func snapshot(version string) *quotav1.Snapshot { return &quotav1.Snapshot{Version: version} }

func share(units uint64) *quotav1.Share { return &quotav1.Share{LimitId: "a", Units: units} }

// until keeps a stream open until the sidecar or the server ends it.
func until(s quotatest.Stream) error {
	for {
		if _, err := s.Recv(); err != nil {
			return nil
		}
	}
}

func TestAnAssignmentIsAcknowledgedOnceItIsInForce(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	leader := quotatest.NewLeader(5, 20)
	leader.Assign(snapshot("v1"), share(10))
	ca, token := authority.Files(t, "secret\n")
	c := run(t, authority.Serve(t, leader.Handle).Address, ca, token)
	eventually(t, "the acknowledgement", func() bool { return leader.Acked("v1") })
	if got := c.enforcer.SnapshotVersion(); got != "v1" {
		t.Errorf("%q is in force", got)
	}
	if s := c.Status(); !s.Connected || s.Epoch != 5 {
		t.Errorf("status %+v", s)
	}
	leader.Assign(snapshot("bad"))
	leader.Assign(snapshot("v2"))
	eventually(t, "the next acknowledgement", func() bool { return leader.Acked("v2") })
	if leader.Acked("bad") {
		t.Error("a snapshot that cannot be enforced was acknowledged")
	}
}

func TestAFollowerLeadsToTheLeader(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	leader := quotatest.NewLeader(9, 20)
	leader.Assign(snapshot("v1"))
	at := authority.Serve(t, leader.Handle).Address
	var asked atomic.Int64
	follower := authority.Serve(t, func(s quotatest.Stream) error {
		if asked.Add(1) == 1 {
			return s.Redirect("", 0) // nobody leads yet
		}
		return s.Redirect(at, 9)
	})
	ca, token := authority.Files(t, "secret")
	c := run(t, follower.Address, ca, token)
	eventually(t, "the acknowledgement", func() bool { return leader.Acked("v1") })
	if hello := leader.Received()[0].GetHello(); hello.GetEpoch() != 9 {
		t.Errorf("Hello says epoch %d, want the 9 that the follower named", hello.GetEpoch())
	}
	eventually(t, "the status", func() bool { return c.Status().Leader == at })
}

func TestReplicasThatNameEachOtherDoNotSpin(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	var one, two *quotatest.Server
	var asked atomic.Int64
	ready := make(chan struct{})
	one = authority.Serve(t, func(s quotatest.Stream) error { <-ready; asked.Add(1); return s.Redirect(two.Address, 1) })
	two = authority.Serve(t, func(s quotatest.Stream) error { asked.Add(1); return s.Redirect(one.Address, 1) })
	close(ready)
	ca, token := authority.Files(t, "secret")
	c := run(t, one.Address, ca, token)
	eventually(t, "more hops than one round has", func() bool { return asked.Load() > 6 })
	if c.Status().Connected {
		t.Error("connected to nobody")
	}
}

func TestALeaderOfThePastIsRefused(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	old := quotatest.NewLeader(4, 20)
	old.Assign(snapshot("old"))
	young := quotatest.NewLeader(5, 20)
	young.Assign(snapshot("young"))
	var asked atomic.Int64
	operator := authority.Serve(t, func(s quotatest.Stream) error {
		switch asked.Add(1) {
		case 1: // the new leader, for as long as it takes to be heard
			if err := s.Welcome(5, 1000); err != nil {
				return err
			}
			return nil
		case 2:
			return old.Handle(s)
		}
		return young.Handle(s)
	})
	ca, token := authority.Files(t, "secret")
	c := run(t, operator.Address, ca, token)
	eventually(t, "the acknowledgement to the new leader", func() bool { return young.Acked("young") })
	if old.Acked("old") {
		t.Error("the old leader's assignment was acknowledged")
	}
	for _, v := range c.enforcer.versions {
		if v == "old" {
			t.Error("the old leader's assignment was in force")
		}
	}
}

func TestSharesStayAndAreReportedWhenTheOperatorVanishes(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	first, second := quotatest.NewLeader(5, 20), quotatest.NewLeader(6, 20)
	first.Assign(snapshot("v1"), share(10))
	operator := authority.Serve(t, first.Handle)
	var next atomic.Pointer[quotatest.Server] // the leader that follows; none at first
	service := authority.Serve(t, func(s quotatest.Stream) error {
		if leader := next.Load(); leader != nil {
			return s.Redirect(leader.Address, 6)
		}
		return s.Redirect(operator.Address, 5)
	})
	ca, token := authority.Files(t, "secret")
	c := run(t, service.Address, ca, token)
	eventually(t, "the first leader", func() bool { return first.Acked("v1") })
	spoken := c.Status()
	if spoken.Since.IsZero() || spoken.Heard.Before(spoken.Since) {
		t.Errorf("connected since %v and heard at %v: the leader has spoken since the stream began", spoken.Since, spoken.Heard)
	}
	operator.Stop()
	eventually(t, "the loss to be seen", func() bool { return !c.Status().Connected })
	if lost := c.Status(); !lost.Since.After(spoken.Since) || lost.Heard.Before(spoken.Heard) || lost.Heard.After(lost.Since) {
		t.Errorf("lost since %v and heard at %v, after %+v: the last word came before the loss", lost.Since, lost.Heard, spoken)
	}
	if got := c.enforcer.SnapshotVersion(); got != "v1" {
		t.Errorf("%q is in force with the operator away", got)
	}
	next.Store(authority.Serve(t, second.Handle))
	eventually(t, "Hello at the second leader", func() bool { return len(second.Received()) > 0 })
	hello := second.Received()[0].GetHello()
	if hello.GetEpoch() != 6 || hello.GetSnapshotVersion() != "v1" || len(hello.GetHoldings()) != 1 || hello.GetHoldings()[0].GetUnits() != 10 {
		t.Errorf("reported %v, want the epoch adopted and the share in force", hello)
	}
}

func TestASilentOperatorIsLeft(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	var asked atomic.Int64
	leader := quotatest.NewLeader(5, 10)
	leader.Assign(snapshot("v1"))
	operator := authority.Serve(t, func(s quotatest.Stream) error {
		if asked.Add(1) == 1 {
			if err := s.Welcome(5, 10); err != nil {
				return err
			}
			return until(s) // hears, and never answers
		}
		return leader.Handle(s)
	})
	ca, token := authority.Files(t, "secret")
	run(t, operator.Address, ca, token)
	eventually(t, "the second stream", func() bool { return leader.Acked("v1") })
}

func TestCredentialsAreReadAnewAndMayComeLate(t *testing.T) {
	authority, other := quotatest.NewAuthority(t), quotatest.NewAuthority(t)
	var mu sync.Mutex
	var tokens []string
	operator := authority.Serve(t, func(s quotatest.Stream) error {
		mu.Lock()
		tokens = append(tokens, s.Token())
		n := len(tokens)
		mu.Unlock()
		if n == 1 {
			return nil
		}
		return until(s)
	})
	folder := t.TempDir()
	ca, token := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "token")
	c := run(t, operator.Address, ca, token)
	eventually(t, "the missing CA to be noticed", func() bool { return c.Status().LastError != "" })
	quotatest.WriteFile(t, token, []byte("one"))
	quotatest.WriteFile(t, ca, other.PEM())
	eventually(t, "another CA's refusal", func() bool { return strings.Contains(c.Status().LastError, "certificate") })
	mu.Lock()
	if len(tokens) > 0 {
		t.Errorf("an operator without a certificate of the CA was given the token")
	}
	mu.Unlock()
	replace(t, token, []byte("two"))
	replace(t, ca, append(other.PEM(), authority.PEM()...)) // as in a rotation
	eventually(t, "two streams", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(tokens) >= 2
	})
	if tokens[0] != "Bearer two" {
		t.Errorf("presented %q", tokens[0])
	}
}

// replace writes a file in one step, as the kubelet does.
func replace(t *testing.T, name string, content []byte) {
	t.Helper()
	quotatest.WriteFile(t, name+".new", content)
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func TestTheFinalReportIsTheLastMessage(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	var mu sync.Mutex
	var got []*quotav1.SidecarMessage
	var end error
	operator := authority.Serve(t, func(s quotatest.Stream) error {
		if err := s.Welcome(5, 1000); err != nil {
			return err
		}
		for {
			m, err := s.Recv()
			mu.Lock()
			if err != nil {
				end = err
				mu.Unlock()
				return nil
			}
			got = append(got, m)
			mu.Unlock()
		}
	})
	ca, token := authority.Files(t, "secret")
	c := run(t, operator.Address, ca, token)
	eventually(t, "the stream", func() bool { return c.Status().Connected })
	c.Drain()
	eventually(t, "the drain to be reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 2 && got[1].GetUsage().GetDraining()
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.Finish(ctx)
	if ctx.Err() != nil {
		t.Fatal("Finish waited in vain")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 3 || got[2].GetDrained() == nil || !errors.Is(end, io.EOF) {
		t.Errorf("messages %v, then %v; want Hello, Usage, Drained and the end", got, end)
	}
}

func TestFinishDoesNotWaitForAnOperatorThatIsAway(t *testing.T) {
	authority := quotatest.NewAuthority(t)
	ca, token := authority.Files(t, "secret")
	operator := authority.Serve(t, until)
	operator.Stop()
	c := run(t, operator.Address, ca, token)
	eventually(t, "the first failure", func() bool { return c.Status().LastError != "" })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.Finish(ctx)
	if ctx.Err() != nil {
		t.Error("Finish waited in vain")
	}
}
