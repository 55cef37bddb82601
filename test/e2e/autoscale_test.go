//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/load"
)

// What is promised about scale events. The margin is for a machine with two processors that runs other cases, two
// kubelets and a control plane beside this one.
const (
	longestDrought = 2 * time.Second
	shareWithin    = time.Second
	readyWithin    = 2 * time.Second
	margin         = time.Second
)

func totalHoldsWhileAnAutoscalerFollowsTheLoad(t *testing.T) {
	s := newSpace(t)
	app := s.running("app", 1)
	policy := s.policy("all", app.Name, equally(perSecond("all", 60, 60)))
	s.apply(policy)
	s.enforced(policy, 1)
	s.settled(app, 1)
	seen := s.watch(app)
	s.must(suite.Create(s.ctx, app.Autoscaler(1, 4, 100)), "autoscaler")

	// Each admitted request costs 6 ms of the CPU, so all of them together use many times what a pod requests.
	run := s.load(app, load.Client{Path: "/burn?ms=6", Rate: 50, Connections: load.New}, load.Client{Path: "/burn?ms=6", Rate: 50, Connections: load.Renewed})
	s.replicas(app.Name, func(n int32) bool { return n == 4 })
	s.measured(app.Name)
	s.settled(app, 4)
	s.enforced(policy, 4)
	s.until(run, 300)
	burnt := run.Stop()
	s.none(burnt)
	// A load that costs nothing lets it scale down again.
	light := s.load(app, load.Client{Rate: 40, Connections: load.New}, load.Client{Rate: 40, Connections: load.Renewed})
	s.replicas(app.Name, func(n int32) bool { return n < 4 })
	s.until(light, 400)
	cheap := light.Stop()
	s.none(cheap)

	for _, answers := range [][]load.Answer{burnt, cheap} {
		if longest, from := load.Drought(answers); longest > longestDrought {
			s.Errorf("nothing was admitted for %s from %s", longest, from.Format(time.TimeOnly))
		}
	}
	s.judge(run, light)
	s.joins(seen)
}

// replicas waits until the autoscaler has changed the Deployment. Metrics come every 10 s, of pods that are ready for longer.
func (s *space) replicas(name string, done func(int32) bool) {
	s.Helper()
	waitFor(s, 2*time.Minute, "the autoscaler", func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := suite.Get(ctx, client.ObjectKey{Namespace: s.name, Name: name}, &d); err != nil {
			return err
		}
		if !done(*d.Spec.Replicas) {
			return fmt.Errorf("it wants %d replicas", *d.Spec.Replicas)
		}
		return nil
	})
}

// measured wants the autoscaler to know the use of the pods' CPU, and that of the app's container alone.
func (s *space) measured(name string) {
	s.Helper()
	waitFor(s, soon, "the autoscaler's metrics", func(ctx context.Context) error {
		var h autoscalingv2.HorizontalPodAutoscaler
		if err := suite.Get(ctx, client.ObjectKey{Namespace: s.name, Name: name}, &h); err != nil {
			return err
		}
		known := map[autoscalingv2.MetricSourceType]bool{}
		for _, m := range h.Status.CurrentMetrics {
			known[m.Type] = m.Resource != nil && m.Resource.Current.AverageUtilization != nil ||
				m.ContainerResource != nil && m.ContainerResource.Current.AverageUtilization != nil
		}
		if !known[autoscalingv2.ResourceMetricSourceType] || !known[autoscalingv2.ContainerResourceMetricSourceType] {
			return fmt.Errorf("it knows %+v", h.Status.CurrentMetrics)
		}
		return nil
	})
}

// joins checks each pod that joined: it had its share soon after its app was ready, and the pods that were there before had
// acknowledged their smaller shares by then; and it was ready soon after its app.
func (s *space) joins(seen *timeline) {
	s.Helper()
	files := s.records()
	offset := time.Now().UnixNano() - record.Now() // from CLOCK_BOOTTIME to the time of day
	for _, f := range files {
		share := firstShare(f)
		if share == nil {
			s.Errorf("pod %s never had a share", f.Pod)
			continue
		}
		m, err := seen.of(f.Pod)
		if err != nil {
			continue // it was there before we looked
		}
		at := time.Unix(0, share.Time+offset)
		s.Logf("pod %s: share %+.0f ms, ready %+.0f ms after its app", f.Pod, float64(at.Sub(m.app).Milliseconds()), float64(m.ready.Sub(m.app).Milliseconds()))
		if late := at.Sub(m.app); late > shareWithin+margin {
			s.Errorf("pod %s got its share %s after its app was ready", f.Pod, late)
		}
		if m.ready.IsZero() {
			s.Errorf("pod %s never was ready", f.Pod)
		} else if late := m.ready.Sub(m.app); late > readyWithin+margin {
			s.Errorf("pod %s was ready %s after its app", f.Pod, late)
		}
		// Whoever has most at that moment has no more than what is left.
		if sum := held(files, share.Limit, share.Time); sum > quotav1.Whole {
			s.Errorf("when pod %s joined, all pods held %d of %d units", f.Pod, sum, quotav1.Whole)
		}
	}
}

func firstShare(f *record.File) *record.Share {
	for i := range f.Shares {
		if f.Shares[i].Units > 0 {
			return &f.Shares[i]
		}
	}
	return nil
}

// held adds up what all processes held of a limit at a time, those that have ended left out: their last line says nothing.
func held(files []*record.File, limit string, at int64) (sum uint64) {
	for _, f := range files {
		units, last := uint64(0), int64(0)
		for _, x := range f.Shares {
			if x.Limit == limit && x.Time <= at {
				units = x.Units
			}
			last = max(last, x.Time)
		}
		for _, d := range f.Decisions {
			last = max(last, d.Time)
		}
		if last >= at {
			sum += units
		}
	}
	return sum
}
