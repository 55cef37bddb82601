// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// led is a new leader of a limit that pod a and pod b shared under the one before. before is what it learns until then of
// b, whose object was deleted by force while its kubelet was cut off; a comes to it with its half.
func led(t *testing.T, before func(*bench)) *bench {
	b := newBench(t)
	b.ObserveNode(NodeState{Name: "node1", BootID: "one"})
	b.observe("a")
	before(b)
	b.publish(false, limit("all"))
	b.Lead(7, Handover{})
	b.connect("a", "1", quotav1.Whole/2)
	b.settle()
	b.now += int64(time.Minute)
	b.pods["a"].heard = b.now
	b.inspect()
	return b
}

func suspect(b *bench) { b.Suspect(state("b", func(s *PodState) { s.BootID = "one" })) }

func TestANewLeaderKeepsTheShareOfADeletedPodThatMayStillRun(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*bench)
		after  func(*bench)
		want   string
	}{
		"it stands in the policy's status":               {before: suspect, want: "1/2"},
		"its node has the same boot still":               {before: suspect, after: func(b *bench) { b.ObserveNode(NodeState{Name: "node1", BootID: "one", Ready: true}) }, want: "1/2"},
		"its node has restarted":                         {before: suspect, after: func(b *bench) { b.ObserveNode(NodeState{Name: "node1", BootID: "two"}) }, want: "1/1"},
		"its node had restarted before":                  {before: func(b *bench) { b.ObserveNode(NodeState{Name: "node1", BootID: "two"}); suspect(b) }, want: "1/1"},
		"its node was deleted":                           {before: suspect, after: func(b *bench) { b.ObserveNode(NodeState{Name: "node1", Deleted: true}) }, want: "1/1"},
		"a person knows that it has ended":               {before: suspect, after: func(b *bench) { b.Release(types.NamespacedName{Namespace: "shop", Name: "b"}) }, want: "1/1"},
		"this replica saw it deleted a moment ago":       {before: func(b *bench) { b.ForgetPod(state("b")) }, want: "1/2"},
		"this replica saw it deleted, and the leader":    {before: func(b *bench) { b.ForgetPod(state("b")); b.now += int64(lately) + 1; b.ForgetPod(state("x", ended)) }, want: "1/1"},
		"the kubelet had reported its end":               {before: func(b *bench) { b.ForgetPod(state("b", terminating, ended)) }, want: "1/1"},
		"it was seen deleted and stands in the status":   {before: func(b *bench) { b.ForgetPod(state("b")); suspect(b) }, want: "1/2"},
		"its object is there, and its sidecar is silent": {before: func(b *bench) { b.observe("b") }, want: "1/2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := led(t, tc.before)
			if tc.after != nil {
				tc.after(b)
			}
			b.settle()
			b.now += int64(time.Hour)
			b.wantShares(map[string]string{"a": tc.want})
			reserved := b.View("uid", 1).Reserved
			if tc.want == "1/2" && (len(reserved) != 1 || reserved[0].Pod != "b" || reserved[0].Awaits == "") {
				t.Errorf("half of the limit is reserved, and a person is told %+v", reserved)
			}
			if tc.want == "1/1" && (len(reserved) > 0 || b.Home.pods["b"] != nil) {
				t.Errorf("nothing is reserved, and yet %+v, %+v", reserved, b.Home.pods["b"])
			}
		})
	}
}

func ended(s *PodState) { s.SidecarEnded, s.Terminating = true, true }

func TestANewLeaderDoesNotLendWhatADeletedPodMayHold(t *testing.T) {
	b := newBench(t)
	b.observe("a")
	suspect(b)
	l := limit("all")
	l.Strategy = quotav1.Strategy_ADAPTIVE
	b.publish(false, l)
	b.Lead(7, Handover{})
	fleet := b.policies["uid"].accounts["uid/all"].lending.fleet
	if n := fleet.Unregistered(); n != 2 {
		t.Errorf("%d pods may hold what they have not told, not 2", n)
	}
	b.Release(types.NamespacedName{Namespace: "shop", Name: "b"})
	if n := fleet.Unregistered(); n != 1 {
		t.Errorf("%d pods may hold what they have not told, not 1", n)
	}
}

func TestAPodThatHeldNothingIsForgottenWithItsObject(t *testing.T) {
	b := newBench(t)
	b.publish(true, limit("all"))
	b.Lead(1, Handover{})
	b.observe("a")
	b.ForgetPod(state("a"))
	if n := len(b.Home.pods); n != 0 {
		t.Errorf("%d pods are remembered for ever", n)
	}
}

func TestAReplicaThatNeverLeadsRemembersDeletedPodsForAWhileOnly(t *testing.T) {
	b := newBench(t)
	for range 100 {
		b.ForgetPod(state("a" + time.Duration(b.now).String()))
		b.now += int64(time.Second)
	}
	if n := len(b.Home.pods); n > 20 {
		t.Errorf("%d of 100 pods are remembered", n)
	}
}
