//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/plugin"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// proven is how soon a share is whole again once somebody who can know has said that a pod has ended: what is freed rests for
// burst/rate, one second here.
const proven = 6*time.Second + margin

// spread is an app of four pods, two on each node, that share 60 per second equally.
func (s *space) spread() (*testbed.App, *v1alpha1.RateLimitPolicy) {
	s.Helper()
	app := &testbed.App{Name: "app", Namespace: s.name, Image: suite.images.Name("echo"), Local: suite.Local, Change: func(t *corev1.PodTemplateSpec) {
		t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels},
		}}
	}}
	s.must(suite.Create(s.ctx, app.Service()), "service")
	limit := perSecond("all", 60, 60)
	limit.Strategy = v1alpha1.EqualShare
	policy := s.policy("all", app.Name, limit)
	s.apply(policy)
	s.must(suite.Create(s.ctx, app.Deployment(4)), "deployment")
	s.enforced(policy, 4)
	s.settled(app, 4)
	return app, policy
}

// reserved waits until the condition says that a pod's share is reserved, and what it waits for.
func (s *space) reserved(p *v1alpha1.RateLimitPolicy, pod, awaits string) {
	s.Helper()
	waitFor(s, rollout, "the share of "+pod+" to be reserved", func(ctx context.Context) error {
		c, err := s.health(ctx, p)
		if err != nil {
			return err
		}
		if c.ObservedGeneration != p.Generation {
			return fmt.Errorf("QuotaHealthy is of generation %d, not %d", c.ObservedGeneration, p.Generation)
		}
		if c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha1.ReasonReserved) || !strings.Contains(c.Message, pod) || !strings.Contains(c.Message, awaits) {
			return fmt.Errorf("QuotaHealthy is %s (%s): %s; want a message with %q", c.Status, c.Reason, c.Message, awaits)
		}
		return nil
	})
}

// freed waits until nothing is reserved any more and each pod that is left has the share that belongs to it.
func (s *space) freed(p *v1alpha1.RateLimitPolicy, within time.Duration, share string) {
	s.Helper()
	begin := time.Now()
	waitFor(s, within, "the share to come back", func(ctx context.Context) error {
		c, err := s.health(ctx, p)
		if err != nil {
			return err
		}
		if c.Status != metav1.ConditionTrue || p.Status.Summary.Share != share {
			return fmt.Errorf("a pod has %s, not %s; QuotaHealthy is %s (%s): %s", p.Status.Summary.Share, share, c.Status, c.Reason, c.Message)
		}
		return nil
	})
	s.Logf("shares are whole %s after the proof", time.Since(begin).Round(10*time.Millisecond))
}

func (s *space) health(ctx context.Context, p *v1alpha1.RateLimitPolicy) (*metav1.Condition, error) {
	if err := suite.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return nil, err
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, string(v1alpha1.ConditionQuotaHealthy)); c != nil {
		return c, nil
	}
	return nil, errors.New("QuotaHealthy is not set")
}

// on returns the pods of an app that run on a node.
func on(pods []corev1.Pod, node string) (out []corev1.Pod) {
	for i := range pods {
		if pods[i].Spec.NodeName == node {
			out = append(out, pods[i])
		}
	}
	return out
}

// silentPodsKeepTheirShare: a sidecar that is frozen, a kubelet that was killed, and a pod that was deleted by force while its
// containers live on, also past the leader that saw it. None of it raises the total, and the share comes back when it is safe.
func silentPodsKeepTheirShare(t *testing.T) {
	s := newSpace(t)
	app, policy := s.spread()
	pods := s.settled(app, 4)
	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(run, 200)

	// A killed kubelet takes nothing with it.
	node := pods[0].Spec.NodeName
	s.must(syscall.Kill(s.kubelet(node), syscall.SIGKILL), "kubelet")
	s.until(run, 300)
	s.none(run.Stop())

	// A frozen sidecar.
	frozen := pods[0]
	s.signalContainer(&frozen, "headgate", syscall.SIGSTOP)
	s.reserved(policy, frozen.Name, "does not speak")
	s.signalContainer(&frozen, "headgate", syscall.SIGCONT)
	s.freed(policy, soon, "15/s")

	// The kubelet is cut off, and the pod is deleted by force: its containers live on, and so does its share.
	kubelet := s.kubelet(node)
	s.must(syscall.Kill(kubelet, syscall.SIGSTOP), "kubelet")
	s.Cleanup(func() { _ = syscall.Kill(kubelet, syscall.SIGCONT) })
	victim := on(pods, node)[0]
	process, err := s.containerProcess(&victim, "headgate")
	s.must(err, "sidecar")
	s.must(suite.Delete(s.ctx, &victim, client.GracePeriodSeconds(0)), "delete by force")
	direct, err := load.Start(s.ctx, "http://"+net.JoinHostPort(victim.Status.PodIP, fmt.Sprint(portOf(&victim))), load.Client{Rate: 60, Connections: load.New})
	s.must(err, "load")
	s.Cleanup(func() { direct.Stop() })
	around := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(around, 500)
	s.none(direct.Stop())
	if direct.Count().Admitted == 0 {
		s.Error("the pod that was deleted by force admits nothing, so nothing was proven: its containers should live on")
	}
	around.Stop()
	// It falls silent, too, and nobody can say that it has ended, until a person does.
	s.must(syscall.Kill(process, syscall.SIGKILL), "sidecar")
	s.reserved(policy, victim.Name, "its object was deleted")
	// The next leader finds no object of it, and knows of it all the same.
	epoch, leader := s.leader()
	s.kill(leader, "operator")
	s.touch(policy) // what is said of this generation is said by another leader
	s.reserved(policy, victim.Name, "its object was deleted")
	if now, _ := s.leader(); now == epoch {
		s.Errorf("leader %s was killed, and epoch %s goes on", leader.Name, epoch)
	}
	s.release(victim.Name)
	s.freed(policy, proven, "15/s")
	s.must(syscall.Kill(kubelet, syscall.SIGCONT), "kubelet")
	s.operatorReady()
	s.judge(run, direct, around)
}

// release is what a person does who knows that a pod has ended.
func (s *space) release(pod string) {
	s.Helper()
	var out bytes.Buffer
	c := plugin.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	args := []string{"release", pod, "-n", s.name}
	if suite.Kubeconfig != "" {
		args = append(args, "--kubeconfig", suite.Kubeconfig)
	}
	c.SetArgs(args)
	s.must(c.ExecuteContext(s.ctx), "kubectl headgate release")
	s.Log(strings.TrimSpace(out.String()))
}

// deadNodesGiveTheirSharesBack: a node killed by its pid 1 keeps its pods' shares until it has restarted, or a person has
// tainted or deleted it.
func deadNodesGiveTheirSharesBack(t *testing.T) {
	s := newSpace(t)
	app, policy := s.spread()
	node := s.nodeWithoutTheLeader()
	s.Cleanup(func() { s.repair(); s.taint(node, false) })
	for _, proof := range []struct {
		name string
		give func(left int)
	}{
		{"tainted", func(int) {
			s.taint(node, true) // which has its pods replaced at once
			s.freed(policy, rollout, "15/s")
			s.readyOn(app, otherThan(node), 4)
		}},
		{"deleted", func(left int) {
			s.must(suite.Delete(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}), "node")
			s.freed(policy, proven, fmt.Sprintf("%d/s", 60/left))
		}},
		{"restarted", func(int) {}},
	} {
		pods := s.settled(app, 4)
		run := s.load(app, load.Client{Rate: 80, Connections: load.New}, load.Client{Rate: 80, Connections: load.Renewed})
		s.until(run, 200)
		s.must(syscall.Kill(s.daemon(node), syscall.SIGKILL), "node")
		dead := on(pods, node)
		if len(dead) == 0 || len(dead) == 4 {
			s.Fatalf("%s has %d of 4 pods", node, len(dead))
		}
		s.reserved(policy, dead[0].Name, dead[len(dead)-1].Name)
		s.Logf("%s: %d of 4 pods are silent", proof.name, len(dead))
		proof.give(4 - len(dead))
		run.Stop() // what was led to the dead node is lost: nobody can help it
		if proof.name != "restarted" {
			s.useAll(s.readyOn(app, otherThan(node), -1))
		}
		s.repair()
		s.taint(node, false)
		s.operatorReady()
		s.settled(app, 4)
		s.enforced(policy, 4)
		s.freed(policy, soon, "15/s")
		s.respread(app, node)
	}
	s.judge()
}

// readyOn waits until n pods that nobody has asked to end are ready on a node; n < 0 = however many there are.
func (s *space) readyOn(app *testbed.App, node string, n int) (ready []corev1.Pod) {
	s.Helper()
	waitFor(s, rollout, "pods on "+node, func(ctx context.Context) error {
		pods, err := suite.Pods(ctx, app)
		if err != nil {
			return err
		}
		ready = slices.DeleteFunc(on(pods, node), func(p corev1.Pod) bool { return !testbed.Ready(&p) })
		if n >= 0 && len(ready) != n {
			return fmt.Errorf("%d are ready", len(ready))
		}
		return nil
	})
	return ready
}

func otherThan(node string) string {
	if node == "node1" {
		return "node2"
	}
	return "node1"
}

// useAll wants the pods that are left to admit the whole limit together.
func (s *space) useAll(pods []corev1.Pod) {
	s.Helper()
	time.Sleep(2 * time.Second) // what was freed rests for burst/rate
	var runs []*load.Run
	for i := range pods {
		r, err := load.Start(s.ctx, "http://"+net.JoinHostPort(pods[i].Status.PodIP, fmt.Sprint(portOf(&pods[i]))), load.Client{Rate: 80, Connections: load.Renewed})
		s.must(err, "load")
		runs = append(runs, r)
	}
	time.Sleep(3 * time.Second)
	var admitted int64
	for _, r := range runs {
		r.Stop()
		admitted += r.Count().Admitted
	}
	if admitted < 3*60*9/10 {
		s.Errorf("%d pods admitted %d in 3 s of a limit of 60/s: the share of the dead is not in use", len(pods), admitted)
	}
	s.Logf("%d pods admitted %d in 3 s of a limit of 60/s", len(pods), admitted)
}

// respread lets pods run on each node again.
func (s *space) respread(app *testbed.App, node string) {
	s.Helper()
	if n := len(on(s.settled(app, 4), node)); n == 0 || n == 4 {
		s.restart(app)
		s.settled(app, 4)
	}
}

// nodeWithoutTheLeader keeps the operator's fail-over out of the case.
func (s *space) nodeWithoutTheLeader() string {
	s.Helper()
	_, leader := s.leader()
	return otherThan(leader.Spec.NodeName)
}

// taint declares a node out of service, or in service again.
func (s *space) taint(name string, out bool) {
	s.Helper()
	waitFor(s, soon, "the taint", func(ctx context.Context) error {
		var node corev1.Node
		if err := suite.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		before := node.DeepCopy()
		node.Spec.Taints = nil
		for _, t := range before.Spec.Taints {
			if t.Key != corev1.TaintNodeOutOfService {
				node.Spec.Taints = append(node.Spec.Taints, t)
			}
		}
		if out {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		}
		return suite.Patch(ctx, &node, client.MergeFrom(before))
	})
}
