//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

const (
	// manyRequests go through a rollout, a scale-down and the drain of a node, and none may fail.
	manyRequests = 100_000
	// manyWithin bounds how long a small machine takes to send them.
	manyWithin = 4 * time.Minute
)

// noRequestIsLostOfMany: apps that end at once, that linger and that do not listen to SIGTERM, by name and by number, under
// every kind of connection.
func noRequestIsLostOfMany(t *testing.T) {
	s := newSpace(t)
	var apps []*testbed.App
	var runs []*load.Run
	for _, manners := range []struct {
		name   string
		args   []string
		number bool
	}{
		{name: "lingers", args: []string{"-linger=20s"}, number: true},
		{name: "exits", args: []string{"-sigterm=exit"}},
		{name: "ignores", args: []string{"-sigterm=ignore"}},
	} {
		name := manners.name
		app := &testbed.App{Name: name, Namespace: s.name, Image: suite.images.Name("echo"), Local: suite.Local, Args: manners.args}
		if name == "ignores" {
			app.Change = func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = new(int64(15)) }
		}
		service := app.Service()
		if manners.number {
			service.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
		}
		s.must(suite.Create(s.ctx, service), "service")
		s.must(suite.Create(s.ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: service.Spec.Selector}}}), "budget")
		policy := s.policy(name, name, perSecond("all", 100_000, 100_000))
		s.apply(policy)
		s.must(suite.Create(s.ctx, app.Deployment(3)), "deployment")
		s.enforced(policy, 3)
		apps = append(apps, app)
	}
	for _, app := range apps {
		s.settled(app, 3)
		runs = append(runs, s.load(app,
			load.Client{Rate: 60, Connections: load.Pinned}, load.Client{Rate: 60, Connections: load.Renewed},
			load.Client{Rate: 40, Connections: load.New}, load.Client{Rate: 40, Connections: load.New},
			load.Client{Rate: 60, Connections: load.Pinned, HTTP2: true}, load.Client{Rate: 60, Connections: load.Renewed, HTTP2: true},
			load.Client{Rate: 10, Connections: load.New, HTTP2: true},
			load.Client{Rate: 0.3, Connections: load.Renewed, Path: "/slow?ms=3000", Timeout: 15 * time.Second}))
	}
	begin := time.Now()
	tunnel := s.tunnel(apps[0])
	s.each(apps, func(app *testbed.App) error { s.restart(app); return nil })
	s.Logf("the rollouts took %s", time.Since(begin).Round(time.Second))
	tunnel()
	begin = time.Now()
	s.each(apps, func(app *testbed.App) error { s.scale(app, 2); return nil })
	s.drainNode(apps)
	s.Logf("the drain of a node took %s", time.Since(begin).Round(time.Second))
	waitFor(s, manyWithin, "the load", func(context.Context) error {
		if sent := offered(runs); sent < manyRequests {
			return fmt.Errorf("%d requests were sent", sent)
		}
		return nil
	})
	for i, run := range runs {
		answers := run.Stop()
		s.Logf("%s: %+v", apps[i].Name, run.Count())
		s.none(answers)
	}
	s.judge(runs...)
}

func offered(runs []*load.Run) (sum int64) {
	for _, r := range runs {
		sum += r.Count().Offered
	}
	return sum
}

// each does something with every app at once.
func (s *space) each(apps []*testbed.App, f func(*testbed.App) error) {
	s.Helper()
	errs := make([]error, len(apps))
	var all sync.WaitGroup
	for i, app := range apps {
		all.Go(func() { errs[i] = f(app) })
	}
	all.Wait()
	s.must(errors.Join(errs...), "apps")
}

// drainNode does what kubectl drain does, with the pods of the apps alone: others live on the node, too.
func (s *space) drainNode(apps []*testbed.App) {
	s.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.settled(apps[0], 2)[0].Spec.NodeName}}
	s.cordon(node, true)
	s.Cleanup(func() { s.cordon(node, false) })
	s.each(apps, func(app *testbed.App) error {
		return testbed.Wait(s.ctx, 2*rollout, "the drain of "+node.Name, func(ctx context.Context) error {
			pods, err := suite.Pods(ctx, app)
			if err != nil {
				return err
			}
			left := 0
			for i := range pods {
				if pods[i].Spec.NodeName != node.Name {
					continue
				}
				left++
				if pods[i].DeletionTimestamp == nil {
					err := suite.SubResource("eviction").Create(ctx, &pods[i], &policyv1.Eviction{
						ObjectMeta: metav1.ObjectMeta{Namespace: pods[i].Namespace, Name: pods[i].Name}})
					if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) {
						return err
					}
				}
			}
			if left > 0 {
				return fmt.Errorf("%d pods are still there", left)
			}
			return nil
		})
	})
	s.cordon(node, false)
}

func (s *space) cordon(node *corev1.Node, on bool) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
	s.must(suite.Patch(context.WithoutCancel(s.ctx), node, client.RawPatch("application/merge-patch+json", patch)), "cordon")
}

// tunnel opens an upgraded connection, as a WebSocket is one, to a pod of the app. The function that it returns wants it to
// be alive, though the pod was asked to end meanwhile.
func (s *space) tunnel(app *testbed.App) (alive func()) {
	s.Helper()
	pods := s.settled(app, 3)
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(pods[0].Status.PodIP, fmt.Sprint(portOf(&pods[0]))), 5*time.Second)
	s.must(err, "tunnel")
	s.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET /tunnel HTTP/1.1\r\nHost: app\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	s.must(err, "tunnel")
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	s.must(err, "tunnel")
	if response.StatusCode != http.StatusSwitchingProtocols {
		s.Fatalf("tunnel: %s", response.Status)
	}
	say := func() error {
		if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "hello\n"); err != nil {
			return err
		}
		line, err := in.ReadString('\n')
		if err == nil && strings.TrimSpace(line) != "hello" {
			err = fmt.Errorf("it answered %q", line)
		}
		return err
	}
	s.must(say(), "tunnel")
	// The watcher notes for how long the tunnel went on after its pod was asked to end.
	var ended, last time.Time
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s.ctx.Err() == nil {
			var pod corev1.Pod
			err := suite.Get(s.ctx, client.ObjectKeyFromObject(&pods[0]), &pod)
			if err == nil && pod.DeletionTimestamp != nil && ended.IsZero() {
				ended = time.Now()
			}
			if say() != nil {
				return
			}
			last = time.Now()
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() {
		s.Helper()
		<-done
		if ended.IsZero() || last.Sub(ended) < 4*time.Second {
			s.Errorf("an upgraded connection ended %s after its pod was asked to end: the app alone keeps it for 5 s", last.Sub(ended))
		}
		s.Logf("an upgraded connection went on for %s after its pod was asked to end", last.Sub(ended).Round(100*time.Millisecond))
	}
}

// portOf is the port that a client of the pod dials.
func portOf(pod *corev1.Pod) int32 { return pod.Spec.Containers[0].Ports[0].ContainerPort }
