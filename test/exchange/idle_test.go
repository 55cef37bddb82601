// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/admission"
)

func hourly(l *quotav1.Limit) { l.Rate.PeriodNanoseconds = uint64(time.Hour) }

// held makes requests of the cluster's policy wait for as long as the machine may need.
func (c *cluster) held(d time.Duration) {
	c.hold = new(uint64(d))
	c.publish(c.leader.home, false)
}

// at offers n requests at one time and returns how many were admitted.
func (p *pod) at(n int) (admitted int) {
	answers := make(chan bool, n)
	for range n {
		answer := func(d admission.Decision) { answers <- d.Allowed }
		if d, held := p.engine.DecideOrHold(&admission.Request{Method: "GET", Path: "/"}, clock(), answer); held == nil {
			answer(d)
		}
	}
	for range n {
		if <-answers {
			admitted++
		}
	}
	return admitted
}

func TestAWholeBurstIsAdmittedWhereItComes(t *testing.T) {
	t.Parallel()
	for name, burst := range map[string]uint64{"a small one": 5, "one that pods have parts of standing by": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := limit(burst, burst, hourly)
			c := newCluster(t, l)
			c.held(time.Second)
			c.startAll(3)
			time.Sleep(200 * time.Millisecond)
			if got := c.pods[1].at(int(burst) + 2); got != int(burst) {
				t.Errorf("of %d requests at one time %d were admitted, not %d", burst+2, got, burst)
			}
			c.lawful(l)
		})
	}
}

func TestAnIdlePodDecidesItsFirstRequestByItself(t *testing.T) {
	t.Parallel()
	l := limit(100, 30)
	c := newCluster(t, l)
	c.startAll(3)
	for _, p := range c.pods {
		eventually(t, p.name+" has a token standing by", func() bool {
			d, held := p.engine.DecideOrHold(&admission.Request{Method: "GET", Path: "/"}, clock(), nil)
			return held == nil && d.Allowed
		})
	}
	c.lawful(l)
}

func TestAPolicyThatHoldsNothingDeniesAtOnce(t *testing.T) {
	t.Parallel()
	l := limit(5, 5, hourly)
	c := newCluster(t, l)
	c.held(0)
	c.startAll(3)
	eventually(t, "the pods have the policy's word on holding", func() bool {
		d, held := c.pods[0].engine.DecideOrHold(&admission.Request{Method: "GET", Path: "/"}, clock(), func(admission.Decision) {})
		return held == nil && !d.Allowed
	})
	c.lawful(l)
}
