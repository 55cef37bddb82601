// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/hack/progress"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// act is a stretch of time in which the number of pods stood still.
type act struct {
	pods       int
	begin, end time.Time
}

// seen is what the clients saw.
type seen struct {
	answers    []load.Answer
	crash      load.Crash
	acts       []act
	begin, end time.Time
}

// longest bounds each change of the scene.
const longest = 45 * time.Second

// play sends the load while pods come and go. What has been seen is returned with an error, too.
func (s *stage) play(ctx context.Context, p *progress.Progress) (*seen, error) {
	run, err := load.Start(ctx, s.address, clients()...)
	if err != nil {
		return nil, err
	}
	p.Say("600 requests per second from 15 API keys: 8 clients with a new connection for each request, 6 with a pool, 1 that keeps one connection")
	t := &table{stage: s, run: run}
	t.say("2 pods")
	e := &seen{begin: time.Now()}
	showing, stop := context.WithCancel(ctx)
	var printer sync.WaitGroup
	printer.Go(func() { t.show(showing) })
	err = s.acts(ctx, t, e)
	stop()
	printer.Wait()
	e.answers, e.end = run.Stop(), time.Now()
	return e, err
}

// acts is the script.
func (s *stage) acts(ctx context.Context, t *table, e *seen) error {
	if err := e.rest(ctx, 2, 6*time.Second); err != nil {
		return err
	}
	t.say("HPA: at least 6 pods")
	if err := s.scale(ctx, 6); err != nil {
		return err
	}
	t.say("6 pods")
	if err := e.rest(ctx, 6, 6*time.Second); err != nil {
		return err
	}
	if err := s.kill(ctx, t, e); err != nil {
		return err
	}
	t.say("6 pods again")
	if err := e.rest(ctx, 6, 4*time.Second); err != nil {
		return err
	}
	t.say("HPA: at most 3 pods")
	if err := s.scale(ctx, 3); err != nil {
		return err
	}
	t.say("3 pods")
	return e.rest(ctx, 3, 5*time.Second)
}

// rest lets the load run with a number of pods.
func (e *seen) rest(ctx context.Context, pods int, d time.Duration) error {
	a := act{pods: pods, begin: time.Now()}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
	}
	a.end = time.Now()
	e.acts = append(e.acts, a)
	return nil
}

// scale moves both bounds of the HPA and waits until the new number of pods shares the limit.
func (s *stage) scale(ctx context.Context, n int32) error {
	before := s.hpa.DeepCopy()
	s.hpa.Spec.MinReplicas, s.hpa.Spec.MaxReplicas = &n, n
	if err := s.cluster.Patch(ctx, s.hpa, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("autoscaler: %w", err)
	}
	return s.settled(ctx, int(n))
}

// settled waits until n pods are ready, none is ending, and all share the limit.
func (s *stage) settled(ctx context.Context, n int) error {
	return testbed.Wait(ctx, longest, fmt.Sprintf("%d pods to share the limit", n), func(ctx context.Context) error {
		pods, err := s.cluster.Pods(ctx, s.app)
		if err != nil {
			return err
		}
		if len(pods) != n {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		for i := range pods {
			if !testbed.Ready(&pods[i]) {
				return errors.New(testbed.Unready(&pods[i]))
			}
		}
		var p v1alpha1.RateLimitPolicy
		if err := s.cluster.Get(ctx, client.ObjectKeyFromObject(s.policy), &p); err != nil {
			return err
		}
		return testbed.Enforced(&p, n)
	})
}

// kill deletes a pod by force: the one that serves the pinned client.
func (s *stage) kill(ctx context.Context, t *table, e *seen) error {
	for _, a := range t.run.Answers() {
		if a.Key == pinned && a.Pod != "" {
			e.crash.Pod = a.Pod
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: e.crash.Pod}}
	t.say("kubectl delete pod --force --grace-period=0 %s", pod.Name)
	e.crash.At = time.Now()
	if err := s.cluster.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete pod by force: %w", err)
	}
	return s.settled(ctx, 6)
}
