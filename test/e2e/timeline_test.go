//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/test/testbed"
)

// moments are when a pod was first seen in some state. The times in a pod's status have whole seconds; those of the events of
// a watch are later than the truth, by milliseconds.
type moments struct {
	starting bool      // it was seen before its app was ready, so the other times are those of the change
	app      time.Time // every container but the sidecar is ready, so only the share is missing
	ready    time.Time // the pod gets requests
}

// timeline watches the pods of an app.
type timeline struct {
	mu   sync.Mutex
	pods map[string]*moments // by namespace/name
}

// watch notes the moments of an app's pods until the case ends.
func (s *space) watch(a *testbed.App) *timeline {
	s.Helper()
	l := &timeline{pods: map[string]*moments{}}
	ctx, stop := context.WithCancel(s.ctx)
	var watching sync.WaitGroup
	s.Cleanup(func() { stop(); watching.Wait() })
	w, err := suite.Watch(ctx, &corev1.PodList{}, client.InNamespace(a.Namespace))
	s.must(err, "watch")
	watching.Go(func() {
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-w.ResultChan():
				if !open {
					return
				}
				if pod, ok := event.Object.(*corev1.Pod); ok {
					l.note(pod)
				}
			}
		}
	})
	return l
}

func (l *timeline) note(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.pods[pod.Namespace+"/"+pod.Name]
	if m == nil {
		m = &moments{}
		l.pods[pod.Namespace+"/"+pod.Name] = m
	}
	now := time.Now()
	if !appReady(pod) {
		m.starting = true
	} else if m.app.IsZero() && m.starting {
		m.app = now
	}
	if m.ready.IsZero() && testbed.Ready(pod) {
		m.ready = now
	}
}

func appReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != quotav1.ContainerName && !c.Ready {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

// of returns the moments of one pod.
func (l *timeline) of(pod string) (moments, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.pods[pod]
	if m == nil || m.app.IsZero() {
		return moments{}, errors.New("pod " + pod + " was never seen with its app ready")
	}
	return *m, nil
}
