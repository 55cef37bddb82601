//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

func crashOfTheSidecar(t *testing.T) { crashOf(t, quotav1.ContainerName) }

func crashOfTheApp(t *testing.T) { crashOf(t, "app") }

// crashOf kills a container's process under load, as the kernel does when memory is short.
func crashOf(t *testing.T, container string) {
	s := newSpace(t)
	app, policy := s.three()
	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(run, 200)
	victim := s.settled(app, 3)[0]
	s.kill(&victim, container)
	waitFor(s, rollout, "the container to start again", func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(&victim), &victim); err != nil {
			return err
		}
		if c := statusOf(&victim, container); c == nil || c.RestartCount == 0 {
			return errors.New("the kubelet has not noticed")
		}
		return nil
	})
	s.settled(app, 3)
	s.enforced(policy, 3)
	s.until(run, 100)
	run.Stop()
	// The pod is whole again: nothing fails any more, and its share is back.
	after := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(after, 300)
	s.none(after.Stop())
	if !slices.ContainsFunc(after.Answers(), func(a load.Answer) bool { return a.Admitted() && a.Pod == victim.Name }) {
		s.Errorf("pod %s admits nothing after its crash", victim.Name)
	}
	s.judge(run, after)
}

func podDeletedByForce(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	run := s.load(app, load.Client{Rate: 40, Connections: load.Pinned}, load.Client{Rate: 40, Connections: load.New}, load.Client{Rate: 40, Connections: load.Renewed})
	s.until(run, 200)
	victim := s.settled(app, 3)[0]
	crash := load.Crash{Pod: victim.Name, At: time.Now()}
	s.must(suite.Delete(s.ctx, &victim, client.GracePeriodSeconds(0)), "delete by force")
	s.settled(app, 3)
	s.enforced(policy, 3)
	s.until(run, 200)
	s.none(run.Stop(), crash)
	s.judge(run)
}

// three is an app of three pods with a limit of 60 per second, enforced.
func (s *space) three() (*testbed.App, *v1alpha1.RateLimitPolicy) {
	s.Helper()
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(3)), "deployment")
	policy := s.policy("all", app.Name, perSecond("all", 60, 60))
	s.apply(policy)
	s.ready(app, 3)
	s.enforced(policy, 3)
	s.settled(app, 3)
	return app, policy
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// kill sends SIGKILL to the process of a container.
func (s *space) kill(pod *corev1.Pod, container string) {
	s.Helper()
	s.signalContainer(pod, container, syscall.SIGKILL)
}

// containerProcess finds the process of a container.
func (s *space) containerProcess(pod *corev1.Pod, container string) (int, error) {
	s.Helper()
	if !suite.Local {
		s.skip("processes of another cluster's nodes are out of reach")
	}
	c := statusOf(pod, container)
	if c == nil {
		return 0, fmt.Errorf("pod %s does not have it", pod.Name)
	}
	_, id, _ := strings.Cut(c.ContainerID, "://")
	return processOf(id)
}

// processOf finds the process of a container by its cgroup: each of our containers has one.
func processOf(id string) (int, error) {
	if len(id) < 32 {
		return 0, fmt.Errorf("%q is no container's id", id)
	}
	paths, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(content, []byte(id)) {
			continue // ended meanwhile, or another
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(path)))
	}
	return 0, fmt.Errorf("no process of container %s", id)
}
