// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// A leader falls in the middle of a change of strategy: the next one knows the new form of the limit only, while pods still
// enforce the old one.
func TestANewLeaderGrantsNothingOfALimitWhosePodsStillActOnItsFormerSelf(t *testing.T) {
	whole := func(strategy quotav1.Strategy, form string) *quotav1.Limit {
		l := limit("all/" + form)
		l.Strategy = strategy
		return l
	}
	for name, tc := range map[string]struct {
		old, now *quotav1.Limit
		before   bool // the pods' streams begin before it leads
	}{
		"shares that become loans":              {old: whole(quotav1.Strategy_EQUAL_SHARE, "1"), now: whole(quotav1.Strategy_ADAPTIVE, "2")},
		"loans that become shares":              {old: whole(quotav1.Strategy_ADAPTIVE, "2"), now: whole(quotav1.Strategy_EQUAL_SHARE, "1")},
		"streams that were there before it led": {old: whole(quotav1.Strategy_EQUAL_SHARE, "1"), now: whole(quotav1.Strategy_ADAPTIVE, "2"), before: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			connect := func(pod string) {
				b.observe(pod)
				hello := &quotav1.Hello{Incarnation: "1", Holdings: []*quotav1.Holding{{LimitId: tc.old.Id, Units: 1}, {LimitId: "uid/other/1", Units: 1}}}
				s, err := b.attach(state(pod).UID, hello, func() {})
				if err != nil {
					t.Fatal(err)
				}
				b.pods[pod] = s
			}
			if tc.before {
				connect("a")
				connect("b")
			}
			b.publish(false, tc.now)
			b.Lead(7, Handover{})
			if !tc.before {
				connect("a")
				connect("b")
			}
			b.now += int64(time.Hour)
			b.round()
			a := b.policies["uid"].accounts[tc.now.Id]
			if !a.waits() {
				t.Fatal("the new form is granted beside the old one")
			}
			b.acknowledge("a", b.pods["a"])
			if !a.waits() {
				t.Fatal("the new form is granted while one of two pods acts on the old one")
			}
			b.acknowledge("b", b.pods["b"])
			if a.waits() {
				t.Fatal("nobody acts on the old form, and the new one is never granted")
			}
			if n := len(b.policies["uid"].retired); n != 0 {
				t.Errorf("%d former limits are kept", n)
			}
		})
	}
}
