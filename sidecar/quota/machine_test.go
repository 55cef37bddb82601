// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// fake is an Enforcer that notes what it was told.
type fake struct {
	version string
	shares  []*quotav1.Share
	applied int
	left    int
	refuse  error

	adopted  uint64
	linked   bool
	granted  []*quotav1.Grant
	says     *quotav1.Report
	speaking chan struct{}
}

func (f *fake) Adopt(epoch uint64, _ int64) { f.adopted, f.linked = epoch, true }
func (f *fake) Lost()                       { f.linked = false }
func (f *fake) Leave()                      { f.left++ }
func (f *fake) Speak() <-chan struct{}      { return f.speaking }
func (f *fake) Final() *quotav1.Report      { return &quotav1.Report{Epoch: f.adopted} }

func (f *fake) Report() (r *quotav1.Report) {
	r, f.says = f.says, nil
	return r
}

func (f *fake) Grant(g *quotav1.Grant) error {
	f.granted = append(f.granted, g)
	return f.refuse
}

func (f *fake) Apply(s *quotav1.Snapshot, shares []*quotav1.Share) error {
	if f.refuse != nil {
		return f.refuse
	}
	f.version, f.shares = s.GetVersion(), shares
	f.applied++
	return nil
}

func (f *fake) Holdings() []*quotav1.Holding {
	var out []*quotav1.Holding
	for _, s := range f.shares {
		out = append(out, &quotav1.Holding{LimitId: s.GetLimitId(), Units: s.GetUnits()})
	}
	return out
}

func (f *fake) SnapshotVersion() string { return f.version }

func (f *fake) Usage() []*quotav1.LimitUsage {
	return []*quotav1.LimitUsage{{LimitId: "a", Admitted: 7}}
}

var begin = time.Unix(1_800_000_000, 0)

func at(d time.Duration) time.Time { return begin.Add(d) }

func redirectTo(address string, epoch uint64) *quotav1.OperatorMessage {
	return &quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Redirect{Redirect: &quotav1.Redirect{LeaderAddress: address, Epoch: epoch}}}
}

func welcome(epoch uint64) *quotav1.OperatorMessage {
	return &quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Welcome{Welcome: &quotav1.Welcome{Epoch: epoch, HeartbeatMilliseconds: 1000}}}
}

// assign names a snapshot by its version; "" leaves it out.
func assign(epoch, seq uint64, version string, units uint64) *quotav1.OperatorMessage {
	a := &quotav1.Assignment{Epoch: epoch, Seq: seq, Shares: []*quotav1.Share{{LimitId: "a", Units: units}}}
	if version != "" {
		a.Snapshot = &quotav1.Snapshot{Version: version}
	}
	return &quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_Assignment{Assignment: a}}
}

func ack(epoch, seq uint64, version string) *quotav1.SidecarMessage {
	return &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Ack{Ack: &quotav1.Ack{Epoch: epoch, Seq: seq, SnapshotVersion: version}}}
}

// connect returns a machine on a stream that a leader of an epoch has welcomed.
func connect(t *testing.T, f *fake, epoch uint64) *machine {
	t.Helper()
	m := newMachine(Identity{Incarnation: "i", StartedAt: begin, Version: "test"}, f)
	m.connected(begin)
	if out, err := m.receive(welcome(epoch), begin); out != nil || err != nil {
		t.Fatalf("Welcome: %v, %v", out, err)
	}
	return m
}

func TestAssignments(t *testing.T) {
	broken := errors.New("cannot be compiled")
	type step struct {
		in     *quotav1.OperatorMessage
		refuse error
		want   *quotav1.SidecarMessage
		err    error
	}
	for name, tc := range map[string]struct {
		steps       []step
		wantApplied int
		wantVersion string
	}{
		"an assignment is applied and acknowledged": {
			[]step{{in: assign(5, 1, "v1", 10), want: ack(5, 1, "v1")}}, 1, "v1"},
		"an assignment without a snapshot keeps the last one": {
			[]step{{in: assign(5, 1, "v1", 10), want: ack(5, 1, "v1")}, {in: assign(5, 2, "", 20), want: ack(5, 2, "v1")}}, 2, "v1"},
		"numbers of assignments may have gaps": {
			[]step{{in: assign(5, 3, "v1", 10), want: ack(5, 3, "v1")}, {in: assign(5, 9, "", 20), want: ack(5, 9, "v1")}}, 2, "v1"},
		"a repeated assignment is acknowledged again and not applied again": {
			[]step{{in: assign(5, 1, "v1", 10), want: ack(5, 1, "v1")}, {in: assign(5, 1, "v1", 10), want: ack(5, 1, "v1")}}, 1, "v1"},
		"an assignment that was overtaken is ignored": {
			[]step{{in: assign(5, 2, "v2", 10), want: ack(5, 2, "v2")}, {in: assign(5, 1, "v1", 99)}}, 1, "v2"},
		"an older epoch ends the stream": {
			[]step{{in: assign(4, 1, "v1", 10), err: errStaleEpoch}}, 0, ""},
		"a newer epoch without Welcome ends the stream": {
			[]step{{in: assign(6, 1, "v1", 10), err: errProtocol}}, 0, ""},
		"a first assignment without a snapshot ends the stream": {
			[]step{{in: assign(5, 1, "", 10), err: errProtocol}}, 0, ""},
		"an assignment that cannot be applied is not acknowledged": {
			[]step{{in: assign(5, 1, "v1", 10), want: ack(5, 1, "v1")}, {in: assign(5, 2, "bad", 10), refuse: broken, err: broken}}, 1, "v1"},
		"what refers to a refused snapshot is refused too": {
			[]step{{in: assign(5, 1, "bad", 10), refuse: broken, err: broken}, {in: assign(5, 2, "", 10), refuse: broken, err: broken}}, 0, ""},
		"a good assignment follows a refused one": {
			[]step{{in: assign(5, 1, "bad", 10), refuse: broken, err: broken}, {in: assign(5, 2, "v2", 10), want: ack(5, 2, "v2")}}, 1, "v2"},
		"a refused assignment that is repeated is ignored": {
			[]step{{in: assign(5, 1, "bad", 10), refuse: broken, err: broken}, {in: assign(5, 1, "bad", 10)}}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			m := connect(t, f, 5)
			for i, s := range tc.steps {
				f.refuse = s.refuse
				out, err := m.receive(s.in, begin)
				if !errors.Is(err, s.err) || s.err == nil && err != nil {
					t.Errorf("step %d: error %v, want %v", i, err, s.err)
				}
				if diff := cmp.Diff(s.want, out, protocmp.Transform()); diff != "" {
					t.Errorf("step %d: %s", i, diff)
				}
			}
			if f.applied != tc.wantApplied || f.version != tc.wantVersion {
				t.Errorf("applied %d times, %q in force; want %d and %q", f.applied, f.version, tc.wantApplied, tc.wantVersion)
			}
		})
	}
}

func TestHelloReportsWhatIsInForce(t *testing.T) {
	f := &fake{}
	m := connect(t, f, 5)
	if _, err := m.receive(assign(5, 1, "v1", 10), begin); err != nil {
		t.Fatal(err)
	}
	hello := m.connected(at(time.Second)).GetHello()
	want := &quotav1.Hello{
		Protocol: quotav1.Protocol, Incarnation: "i", Version: "test", Epoch: 5, SnapshotVersion: "v1",
		Holdings: []*quotav1.Holding{{LimitId: "a", Units: 10}},
	}
	if diff := cmp.Diff(want, hello, protocmp.Transform(), protocmp.IgnoreFields(&quotav1.Hello{}, "started_at")); diff != "" {
		t.Error(diff)
	}
	// The new stream counts anew.
	if _, err := m.receive(welcome(5), begin); err != nil {
		t.Fatal(err)
	}
	if out, err := m.receive(assign(5, 1, "v2", 20), begin); err != nil || out.GetAck().GetSeq() != 1 {
		t.Errorf("first assignment of the second stream: %v, %v", out, err)
	}
}

func TestEpochs(t *testing.T) {
	f := &fake{}
	m := connect(t, f, 5)
	_, err := m.receive(redirectTo("leader:1", 8), begin)
	var r *redirect
	if !errors.As(err, &r) || r.leader != "leader:1" {
		t.Fatalf("redirect: %v", err)
	}
	if hello := m.connected(begin).GetHello(); hello.GetEpoch() != 8 {
		t.Errorf("Hello says epoch %d, want the one that the redirect named: adopt first, then report", hello.GetEpoch())
	}
	if _, err := m.receive(welcome(7), begin); !errors.Is(err, errStaleEpoch) {
		t.Errorf("a leader of the past was accepted: %v", err)
	}
	m.connected(begin)
	if _, err := m.receive(assign(8, 1, "v1", 1), begin); !errors.Is(err, errProtocol) {
		t.Errorf("an assignment before Welcome: %v", err)
	}
	if f.applied > 0 {
		t.Error("it was applied")
	}
	m.connected(begin)
	if _, err := m.receive(redirectTo("", 3), begin); err == nil || m.epoch != 8 {
		t.Errorf("epoch %d after a redirect that knows less, want 8", m.epoch)
	}
}

func TestHeartbeats(t *testing.T) {
	m := connect(t, &fake{}, 5)
	if out, due, err := m.tick(at(999 * time.Millisecond)); out != nil || err != nil || !due.Equal(at(time.Second)) {
		t.Fatalf("before the heartbeat: %v, due %v, %v", out, due, err)
	}
	for i := 1; i <= 5; i++ {
		out, _, err := m.tick(at(time.Duration(i) * time.Second))
		if err != nil || out.GetUsage().GetNonce() != uint64(i) || out.GetUsage().GetLimits()[0].GetAdmitted() != 7 {
			t.Fatalf("heartbeat %d: %v, %v", i, out, err)
		}
		beat(t, m, uint64(i))
	}
	for i := 6; i <= 8; i++ {
		if out, _, err := m.tick(at(time.Duration(i) * time.Second)); err != nil || out == nil {
			t.Fatalf("heartbeat %d without an answer before: %v, %v", i, out, err)
		}
	}
	beat(t, m, 99) // never sent
	if _, _, err := m.tick(at(9 * time.Second)); !errors.Is(err, errSilent) {
		t.Errorf("after three heartbeats without an answer: %v", err)
	}
	beat(t, m, 8)
	if _, _, err := m.tick(at(time.Hour)); err != nil {
		t.Errorf("a process that was frozen blames the operator: %v", err)
	}
}

func beat(t *testing.T, m *machine, nonce uint64) {
	t.Helper()
	out, err := m.receive(&quotav1.OperatorMessage{Message: &quotav1.OperatorMessage_HeartbeatAck{HeartbeatAck: &quotav1.HeartbeatAck{Nonce: nonce}}}, begin)
	if out != nil || err != nil {
		t.Fatalf("HeartbeatAck: %v, %v", out, err)
	}
}

func TestAnOperatorThatNeverWelcomesIsLeft(t *testing.T) {
	m := newMachine(Identity{}, &fake{})
	m.connected(begin)
	if out, due, err := m.tick(at(time.Second)); out != nil || err != nil || !due.Equal(at(helloTimeout)) {
		t.Errorf("%v, due %v, %v", out, due, err)
	}
	if _, _, err := m.tick(at(helloTimeout)); !errors.Is(err, errSilent) {
		t.Errorf("after %v: %v", helloTimeout, err)
	}
}

func TestDrainIsReportedAtOnce(t *testing.T) {
	m := connect(t, &fake{}, 5)
	if out := m.drain(at(time.Millisecond)); !out.GetUsage().GetDraining() {
		t.Errorf("on a stream: %v", out)
	}
	if hello := m.connected(begin).GetHello(); !hello.GetDraining() {
		t.Error("the next Hello does not say it")
	}
	// When the drain comes between Hello and Welcome, Welcome is answered with it.
	m = newMachine(Identity{}, &fake{})
	m.connected(begin)
	if out := m.drain(begin); out != nil {
		t.Errorf("before Welcome: %v", out)
	}
	if out, err := m.receive(welcome(5), begin); err != nil || !out.GetUsage().GetDraining() {
		t.Errorf("at Welcome: %v, %v", out, err)
	}
	if d := m.drained().GetDrained(); d.GetLimits()[0].GetAdmitted() != 7 {
		t.Errorf("final report: %v", d)
	}
}

func TestAPodThatIsToEndHearsOfItThoughItCannotApplyWhatCameWithIt(t *testing.T) {
	f := &fake{}
	m := connect(t, f, 5)
	if _, err := m.receive(assign(5, 1, "v1", 10), begin); err != nil || f.left != 0 {
		t.Fatalf("left %d times, %v", f.left, err)
	}
	f.refuse = errors.New("cannot be compiled")
	in := assign(5, 2, "v2", 10)
	in.GetAssignment().Leaving = true
	if _, err := m.receive(in, begin); err == nil || f.left != 1 {
		t.Errorf("left %d times, %v", f.left, err)
	}
	old := assign(4, 3, "v3", 10)
	old.GetAssignment().Leaving = true
	if _, err := m.receive(old, begin); !errors.Is(err, errStaleEpoch) || f.left != 1 {
		t.Errorf("left %d times by the word of an old leader, %v", f.left, err)
	}
}

func TestAMessageOfALaterVersionIsIgnored(t *testing.T) {
	m := connect(t, &fake{}, 5)
	if out, err := m.receive(&quotav1.OperatorMessage{}, begin); out != nil || err != nil {
		t.Errorf("%v, %v", out, err)
	}
}

func TestBackoffGrowsWithinItsBounds(t *testing.T) {
	b := Backoff{First: 100 * time.Millisecond, Most: time.Second}
	for failures, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: 800 * time.Millisecond, 5: time.Second, 1 << 30: time.Second} {
		least, most := b.delay(failures, func() float64 { return 0 }), b.delay(failures, func() float64 { return 1 })
		if least != want/2 || most != want {
			t.Errorf("after %d failures %v to %v, want %v to %v", failures, least, most, want/2, want)
		}
	}
}
