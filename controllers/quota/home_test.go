// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/controllers/target"
)

var checkout = target.Workload{Kind: "Deployment", Namespace: "shop", Name: "checkout"}

// bench is a home with a clock that the test moves, and the pods around it.
type bench struct {
	*Home
	t     *testing.T
	now   int64
	valid bool
	pods  map[string]*session
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, valid: true, now: int64(time.Hour), pods: map[string]*session{}}
	b.Home = NewHome(Options{
		Now: func() int64 { return b.now },
		LeaseUntil: func() int64 {
			if b.valid {
				return b.now + int64(time.Hour)
			}
			return 0
		},
		Changed: func(types.NamespacedName) {},
	})
	return b
}

// limit is 100/s with a burst of 100: a share that exists grows a second after something was freed.
func limit(name string) *quotav1.Limit {
	return &quotav1.Limit{
		Id: "uid/" + name, Name: name, Burst: 100, Scope: quotav1.Scope_TOTAL,
		Rate: &quotav1.Rate{Requests: 100, PeriodNanoseconds: uint64(time.Second)},
	}
}

func (b *bench) publish(first bool, limits ...*quotav1.Limit) {
	b.Publish(&quotav1.Policy{Uid: "uid", Namespace: "shop", Name: "checkout", Generation: 1, Limits: limits}, []target.Workload{checkout}, first)
}

func state(name string, change ...func(*PodState)) PodState {
	s := PodState{
		UID: types.UID(name), Namespace: "shop", Name: name, Node: "node1", Owners: []target.Workload{checkout},
		Injected: true, AppReady: true, Scheduled: true,
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func (b *bench) observe(name string, change ...func(*PodState)) { b.ObservePod(state(name, change...)) }

// connect opens a stream of the pod's process run, which says that it holds units.
func (b *bench) connect(name, run string, units uint64) {
	hello := &quotav1.Hello{Incarnation: run, StartedAt: timestamppb.New(time.Unix(1000, 0))}
	if units > 0 {
		hello.Holdings = []*quotav1.Holding{{LimitId: "uid/all", Units: units}}
	}
	s, err := b.attach(types.UID(name), hello, func() {})
	if err != nil {
		b.t.Fatal(err)
	}
	b.pods[name] = s
}

// settle makes rounds until every pod has acknowledged all that it was sent.
func (b *bench) settle() {
	for range 20 {
		b.round()
		quiet := true
		for name, s := range b.pods {
			if b.acknowledge(name, s) {
				quiet = false
			}
		}
		if quiet {
			return
		}
	}
	b.t.Fatal("shares do not settle")
}

func (b *bench) acknowledge(name string, s *session) bool {
	a, _ := b.take(s)
	if a == nil {
		return false
	}
	b.ack(types.UID(name), s, &quotav1.Ack{Epoch: a.Epoch, Seq: a.Seq, SnapshotVersion: s.last.Snapshot.Version})
	return true
}

// shares tells what each connected pod has acknowledged of the limit, as "1/2".
func (b *bench) shares() map[string]string {
	out := map[string]string{}
	for name, s := range b.pods {
		units := b.policies["uid"].accounts["uid/all"].ledger.Acked(holderID(types.UID(name), s.incarnation))
		switch {
		case units == 0:
			out[name] = "0"
		case quotav1.Whole%units == 0:
			out[name] = fmt.Sprintf("1/%d", quotav1.Whole/units)
		default:
			out[name] = fmt.Sprint(float64(units) / float64(quotav1.Whole))
		}
	}
	return out
}

func (b *bench) wantShares(want map[string]string) {
	b.t.Helper()
	b.settle()
	if diff := cmp.Diff(want, b.shares()); diff != "" {
		b.t.Fatalf("shares differ (-want +got):\n%s", diff)
	}
}

func unready(s *PodState)     { s.AppReady = false }
func terminating(s *PodState) { s.Terminating = true }
func terminated(at int64) func(*PodState) {
	return func(s *PodState) {
		s.Terminations = []Termination{{Started: time.Unix(900, 0), Finished: time.Unix(at, 0)}}
	}
}

func TestHomeSharesEquallyAmongThePodsThatServe(t *testing.T) {
	led := func(t *testing.T) *bench {
		b := newBench(t)
		b.publish(true, limit("all"))
		b.Lead(1, Handover{})
		for _, name := range []string{"a", "b"} {
			b.observe(name)
			b.connect(name, "1", 0)
		}
		b.wantShares(map[string]string{"a": "1/2", "b": "1/2"})
		return b
	}
	tests := map[string]func(*testing.T, *bench){
		"a third pod gets a third": func(_ *testing.T, b *bench) {
			b.observe("c")
			b.connect("c", "1", 0)
			b.wantShares(map[string]string{"a": "1/3", "b": "1/3", "c": "1/3"})
		},
		"a pod whose app is starting takes no share from those that serve": func(_ *testing.T, b *bench) {
			b.observe("c", unready)
			b.connect("c", "1", 0)
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2", "c": "0"})
			b.observe("c")
			b.wantShares(map[string]string{"a": "1/3", "b": "1/3", "c": "1/3"})
		},
		"an app that is unready for a moment keeps its share, and gives it up when it stays so": func(_ *testing.T, b *bench) {
			b.observe("b", unready)
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2"})
			b.now += int64(flap)
			b.pods["a"].heard, b.pods["b"].heard = b.now, b.now
			b.inspect()
			b.settle()
			b.now += 2 * int64(time.Second)
			b.wantShares(map[string]string{"a": "1/1", "b": "0"})
		},
		"a pod that has drained leaves its share to the others after one refill": func(_ *testing.T, b *bench) {
			b.observe("b", terminating)
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2"})
			b.drained("b", b.pods["b"], nil)
			delete(b.pods, "b")
			b.wantShares(map[string]string{"a": "1/2"})
			b.now += 1002 * int64(time.Millisecond)
			b.wantShares(map[string]string{"a": "1/1"})
		},
		"a pod without the sidecar is counted until it is asked to end": func(t *testing.T, b *bench) {
			bare := func(s *PodState) { s.Injected = false }
			b.observe("c", bare)
			if v := b.View("uid", 1); v.Pods != 3 || len(v.Bare) != 1 {
				t.Errorf("%d pods, bare %v", v.Pods, v.Bare)
			}
			b.observe("c", bare, terminating)
			if v := b.View("uid", 1); v.Pods != 2 || len(v.Bare) != 0 {
				t.Errorf("%d pods are said to carry the sidecar, bare %v", v.Pods, v.Bare)
			}
		},
		"a pod that is asked to end hears of it at once": func(t *testing.T, b *bench) {
			if a := b.pods["b"].last; a.Leaving {
				t.Fatal("it heard of it before")
			}
			b.observe("b", terminating)
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2"})
			if a := b.pods["b"].last; !a.Leaving {
				t.Error("it was not told")
			}
			if a := b.pods["a"].last; a.Leaving {
				t.Error("another pod was told to leave")
			}
		},
		"a draining pod that nobody asks any more gives up its share before it ends": func(_ *testing.T, b *bench) {
			usage := func(admitted uint64) *quotav1.Usage {
				return &quotav1.Usage{Draining: true, Limits: []*quotav1.LimitUsage{{LimitId: "uid/all", Admitted: admitted}}}
			}
			b.report("b", b.pods["b"], usage(10))
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2"})
			b.report("b", b.pods["b"], usage(11))
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2"})
			b.report("b", b.pods["b"], usage(11))
			b.wantShares(map[string]string{"a": "1/2", "b": "0"})
			b.now += 1002 * int64(time.Millisecond)
			b.wantShares(map[string]string{"a": "1/1", "b": "0"})
		},
		"a killed pod's share stays reserved until the kubelet reports its end": func(t *testing.T, b *bench) {
			b.detach("b", b.pods["b"])
			delete(b.pods, "b")
			b.ForgetPod(state("b"))
			b.now += int64(time.Hour)
			b.wantShares(map[string]string{"a": "1/2"})
			if diff := cmp.Diff([]Reservation{{Pod: "b", UID: "b", Node: "node1", Deleted: true, Awaits: "waiting for news of node node1"}}, b.View("uid", 1).Reserved); diff != "" {
				t.Fatal(diff)
			}
			b.ForgetPod(state("b", terminated(2000)))
			b.now += int64(time.Hour)
			b.wantShares(map[string]string{"a": "1/1"})
		},
		"a killed pod's share comes back when its node has restarted": func(_ *testing.T, b *bench) {
			b.ObserveNode(NodeState{Name: "node1", BootID: "one"})
			b.connect("b", "2", 0) // registered while the node had that boot
			b.observe("b", terminated(2000))
			b.settle()
			b.detach("b", b.pods["b"])
			delete(b.pods, "b")
			b.ObserveNode(NodeState{Name: "node1", BootID: "two"})
			b.now += int64(time.Hour)
			b.wantShares(map[string]string{"a": "1/1"})
		},
		"a person can say that a pod is gone": func(_ *testing.T, b *bench) {
			b.detach("b", b.pods["b"])
			delete(b.pods, "b")
			b.Release(types.NamespacedName{Namespace: "shop", Name: "b"})
			b.now += int64(time.Hour)
			b.wantShares(map[string]string{"a": "1/1"})
		},
		"a restarted sidecar waits until its predecessor is known to have ended": func(_ *testing.T, b *bench) {
			b.connect("b", "2", 0)
			b.wantShares(map[string]string{"a": "1/4", "b": "1/4"}) // "b" of before keeps its half
			b.observe("b", terminated(2000))
			b.now += int64(time.Hour)
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2"})
		},
		"a leader that is not sure of its lease moves nothing": func(_ *testing.T, b *bench) {
			b.valid = false
			b.observe("c")
			b.connect("c", "1", 0)
			b.wantShares(map[string]string{"a": "1/2", "b": "1/2", "c": "0"})
		},
		"a policy that is taken away is taken from the pods": func(t *testing.T, b *bench) {
			b.Withdraw(types.NamespacedName{Namespace: "shop", Name: "checkout"})
			b.settle()
			if n := len(b.pods["a"].last.Snapshot.Policies); n != 0 {
				t.Fatalf("%d policies are left", n)
			}
		},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) { f(t, led(t)) })
	}
}

func TestHomeFillsALimitOnceInItsLife(t *testing.T) {
	fills := func(b *bench) (sum uint64) {
		b.round()
		for name, s := range b.pods {
			if a, _ := b.take(s); a != nil {
				for _, sh := range a.Shares {
					sum += sh.FillUnits
				}
				b.ack(types.UID(name), s, &quotav1.Ack{Epoch: a.Epoch, Seq: a.Seq})
			}
		}
		return sum
	}
	start := func(first bool) *bench {
		b := newBench(t)
		b.publish(first, limit("all"))
		b.Lead(1, Handover{})
		b.observe("a")
		b.connect("a", "1", 0)
		return b
	}
	if got := fills(start(true)); got != quotav1.Whole {
		t.Errorf("a new policy starts with %d of %d: its users wait for the first burst", got, quotav1.Whole)
	}
	if got := fills(start(false)); got != 0 {
		t.Errorf("a policy that had its first fill before starts with %d, not with nothing", got)
	}
	b := start(true)
	fills(b)
	b.Withdraw(types.NamespacedName{Namespace: "shop", Name: "checkout"})
	fills(b)
	b.now += int64(250500 * time.Microsecond) // a quarter of a refill, with the margin for clocks
	b.publish(true, limit("all"))
	if got := fills(b); got != quotav1.Whole/4 {
		t.Errorf("a policy re-created after a quarter of a refill starts with %d, not with a quarter of %d: deleting and applying it again would mint", got, quotav1.Whole)
	}
}

func TestANewLeaderAssumesTheMostOfPodsThatHaveNotReported(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b", "c"} {
		b.observe(name)
	}
	b.publish(false, limit("all"))
	b.Lead(7, Handover{})
	b.connect("a", "1", quotav1.Whole/3)
	b.connect("b", "1", quotav1.Whole/3)
	b.wantShares(map[string]string{"a": "1/3", "b": "1/3"})
	b.observe("d")
	b.connect("d", "1", 0)
	b.settle()
	var sum uint64
	for name, s := range b.pods {
		sum += b.policies["uid"].accounts["uid/all"].ledger.Acked(holderID(types.UID(name), s.incarnation))
	}
	if sum > quotav1.Whole/3*2 {
		t.Fatalf("with pod c unheard of, the others hold %d of %d", sum, quotav1.Whole)
	}
	b.connect("c", "1", quotav1.Whole/3)
	b.settle() // c gives up a part of its third
	b.now += int64(time.Hour)
	b.wantShares(map[string]string{"a": "1/4", "b": "1/4", "c": "1/4", "d": "1/4"})
}

func TestProofOfEndNeedsSomebodyWhoCanKnow(t *testing.T) {
	p := process{started: time.Unix(1000, 400e6), bootID: "one"}
	node := NodeState{Name: "node1", BootID: "one", Ready: true}
	tests := map[string]struct {
		pod     func(*PodState)
		node    NodeState
		unknown bool
		want    bool
		awaits  string // what a person is told meanwhile
	}{
		"a silent pod":                                  {pod: func(*PodState) {}, node: node, awaits: "does not speak"},
		"a pod whose object is gone":                    {pod: func(s *PodState) { s.Deleted = true }, node: node, awaits: "out-of-service"},
		"a pod in phase Failed":                         {pod: func(s *PodState) { s.Ended = true }, node: node, awaits: "does not speak"},
		"a terminating pod":                             {pod: terminating, node: node, awaits: "the kubelet of node node1"},
		"a pod of a node whose kubelet is cut off":      {pod: terminating, node: NodeState{Name: "node1", BootID: "one"}, awaits: "node node1 is not ready"},
		"a sidecar that ended before this process":      {pod: terminated(1000), node: node, awaits: "does not speak"},
		"a sidecar that ended after this process began": {pod: terminated(1001), node: node, want: true},
		"a node that was deleted":                       {pod: func(*PodState) {}, node: NodeState{Name: "node1", Deleted: true}, want: true},
		"a node that is out of service":                 {pod: func(*PodState) {}, node: NodeState{Name: "node1", BootID: "one", OutOfService: true}, want: true},
		"a node that has restarted":                     {pod: func(*PodState) {}, node: NodeState{Name: "node1", BootID: "two"}, want: true},
		"a node that nobody has seen":                   {pod: func(*PodState) {}, node: NodeState{}, unknown: true, awaits: "news of node node1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := state("a", tc.pod)
			if why := proofOfEnd(p, &s, tc.node, !tc.unknown); (why != "") != tc.want {
				t.Errorf("proof %q, want proof: %v", why, tc.want)
			}
			if why := awaits(&s, tc.node, !tc.unknown); !tc.want && !strings.Contains(why, tc.awaits) {
				t.Errorf("a person is told %q, want it to say %q", why, tc.awaits)
			}
		})
	}
}
