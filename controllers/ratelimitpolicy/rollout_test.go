// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

func TestRollouts(t *testing.T) {
	w := start(t)
	for name, f := range map[string]func(t *testing.T, ns string){
		"a tool that applies the workload again and again is not fought with":      w.appliedAgain,
		"a tool that takes the annotation away is given way to after two attempts": w.takenAway,
		"a restart that makes no pods is taken back, and tried again when asked":   w.makesNoPods,
		"a StatefulSet that makes no pods is taken back, too":                      w.statefulSetMakesNoPods,
		"what the operator must not restart is left to a person, who is told how":  w.leftToPeople,
		"the sidecar goes with the last policy":                                    w.lastPolicyGoes,
		"the sidecar stays when rollouts are manual":                               w.lastPolicyGoesManually,
		"a policy that moves on to another workload leaves the first one":          w.policyMovesOn,
		"pods that came up bare are evicted one by one, as budgets allow":          w.cameUpBare,
		"a newer sidecar comes when it is asked for":                               w.upgradeIsAsked,
		"another mode restarts the workload":                                       w.modeIsEdited,
	} {
		t.Run(name, func(t *testing.T) { f(t, w.namespace(t)) })
	}
}

// annotation waits for the pod template's annotation to be as wanted.
func (w *world) annotation(d *appsv1.Deployment, want func(string) bool) string {
	w.t.Helper()
	var have string
	w.eventually(func() string {
		w.must(w.Get(context.Background(), client.ObjectKeyFromObject(d), d))
		if have = d.Spec.Template.Annotations[v1alpha1.AnnotationInjection]; want(have) {
			return ""
		}
		return fmt.Sprintf("the pod template's annotation is %q", have)
	})
	return have
}

func set(s string) bool   { return s != "" }
func unset(s string) bool { return s == "" }

// event waits for an event on an object.
func (w *world) event(o client.Object, reason v1alpha1.EventReason, part string) {
	w.t.Helper()
	w.eventually(func() string {
		var list eventsv1.EventList
		w.must(w.List(context.Background(), &list, client.InNamespace(o.GetNamespace())))
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.UID == o.GetUID() && e.Reason == string(reason) && strings.Contains(e.Note, part) {
				return ""
			}
		}
		return fmt.Sprintf("no event %s on %s says %q among %d", reason, o.GetName(), part, len(list.Items))
	})
}

// loop calls f again and again until the test ends.
func loop(t *testing.T, every time.Duration, f func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	var looping sync.WaitGroup
	looping.Go(func() {
		for ctx.Err() == nil {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(every)
		}
	})
	t.Cleanup(func() { stop(); looping.Wait() })
}

// deployed is what a GitOps tool applies. It has a template annotation of its own, and asks for all of its fields.
func deployed(ns string) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "checkout"}
	return appsv1ac.Deployment("checkout", ns).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(1).WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithAnnotations(map[string]string{"team": "shop"}).
			WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("app").WithImage("app").
				WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080))))))
}

func (w *world) appliedAgain(t *testing.T, ns string) {
	apply := func(ctx context.Context) error {
		return w.Apply(ctx, deployed(ns), client.FieldOwner("gitops"), client.ForceOwnership)
	}
	w.must(apply(t.Context()))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: ns}}
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	w.pod(d)
	loop(t, 50*time.Millisecond, apply) // real ones come every three seconds
	w.policy(ns)
	hash := w.annotation(d, set)
	generation := d.Generation
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		if d.Generation != generation || d.Spec.Template.Annotations[v1alpha1.AnnotationInjection] != hash || d.Spec.Template.Annotations["team"] != "shop" {
			t.Fatalf("generation %d, then %d with %v", generation, d.Generation, d.Spec.Template.Annotations)
		}
	}
	if generation != 2 {
		t.Errorf("the workload was changed %d times, want once", generation-1)
	}
}

func (w *world) takenAway(t *testing.T, ns string) {
	d := w.deployment(ns, "checkout")
	w.pod(d)
	loop(t, 20*time.Millisecond, func(ctx context.Context) error {
		var now appsv1.Deployment
		if err := w.Get(ctx, client.ObjectKey{Namespace: ns, Name: "checkout"}, &now); err != nil {
			return err
		}
		if now.Spec.Template.Annotations[v1alpha1.AnnotationInjection] == "" {
			return nil
		}
		delete(now.Spec.Template.Annotations, v1alpha1.AnnotationInjection)
		err := w.Update(ctx, &now)
		if apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
	p := w.policy(ns)
	w.wantMessage(p, v1alpha1.ConditionInjected, "takes the annotation ratelimit.headgate.dev/injection of its pod template away")
	w.wantMessage(p, v1alpha1.ConditionInjected, "kubectl rollout restart deployment/checkout -n "+ns)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	generation := d.Generation
	w.event(d, v1alpha1.EventRolloutManual, "kubectl rollout restart deployment/checkout")
	time.Sleep(2 * time.Second)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if d.Generation != generation || generation != 5 {
		t.Errorf("generation %d, then %d: two attempts, each taken back, make 5", generation, d.Generation)
	}
}

// failing is what the Deployment controller says when no pod can be made.
func (w *world) failing(d *appsv1.Deployment, message string) {
	w.must(w.Get(context.Background(), client.ObjectKeyFromObject(d), d))
	before := d.DeepCopy() // the operator writes to it, too
	d.Status.Conditions = nil
	if message != "" {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message}}
	}
	w.must(w.Status().Patch(context.Background(), d, client.MergeFrom(before)))
}

func (w *world) makesNoPods(t *testing.T, ns string) {
	d := w.deployment(ns, "checkout")
	w.pod(d)
	p := w.policy(ns)
	hash := w.annotation(d, set)
	w.failing(d, "exceeded quota: memory")
	w.annotation(d, unset)
	if d.Annotations[v1alpha1.AnnotationRefused] != hash {
		t.Errorf("the workload is not marked: the webhook would go on to make pods that the cluster refuses (%v)", d.Annotations)
	}
	w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable)
	w.wantMessage(p, v1alpha1.ConditionInjected, "kubectl annotate deployment/checkout -n "+ns+" ratelimit.headgate.dev/refused-")
	w.event(p, v1alpha1.EventRolloutReverted, "exceeded quota")
	w.event(d, v1alpha1.EventRolloutReverted, "exceeded quota")
	generation := d.Generation
	time.Sleep(3 * time.Second)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if d.Generation != generation {
		t.Error("the workload was restarted again though nobody has mended it")
	}
	w.failing(d, "")
	w.edit(d, func() { delete(d.Annotations, v1alpha1.AnnotationRefused) })
	w.annotation(d, set)
}

func (w *world) statefulSetMakesNoPods(t *testing.T, ns string) {
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: ns},
		Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "db",
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}},
	}
	w.must(w.Create(t.Context(), set))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: ns, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}, Spec: podSpec()}
	pod.Spec.NodeName = "node1"
	w.must(w.Create(t.Context(), pod))
	p := w.policy(ns, func(p *v1alpha1.RateLimitPolicy) {
		p.Spec.TargetRefs = []v1alpha1.TargetRef{{Kind: "StatefulSet", Name: "db"}}
	})
	w.eventually(func() string {
		w.must(w.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		if set.Spec.Template.Annotations[v1alpha1.AnnotationInjection] == "" {
			return "no restart"
		}
		return ""
	})
	w.must(w.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "db-", Namespace: ns},
		InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Namespace: ns, Name: "db", UID: set.UID},
		Reason:         "FailedCreate", Message: "violates PodSecurity", LastTimestamp: metav1.Now(),
	}))
	w.eventually(func() string {
		w.must(w.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		if set.Annotations[v1alpha1.AnnotationRefused] == "" || set.Spec.Template.Annotations[v1alpha1.AnnotationInjection] != "" {
			return fmt.Sprintf("not taken back: %v, %v", set.Annotations, set.Spec.Template.Annotations)
		}
		return ""
	})
	w.wantMessage(p, v1alpha1.ConditionInjected, "made no pods with the sidecar")
}

func (w *world) leftToPeople(t *testing.T, ns string) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: ns}}
	w.must(w.Create(t.Context(), owner))
	d := w.deployment(ns, "checkout", func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, Controller: new(true)}}
	})
	w.pod(d)
	p := w.policy(ns)
	w.wantMessage(p, v1alpha1.ConditionInjected, "it belongs to ConfigMap owner, which would undo it: restart it there")
	w.event(d, v1alpha1.EventRolloutManual, "belongs to ConfigMap owner")
	w.event(p, v1alpha1.EventRolloutManual, "belongs to ConfigMap owner")

	labels := map[string]string{"app": "agent"}
	agent := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: ns},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}},
	}
	bare := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: ns},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}},
	}
	for o, kind := range map[client.Object]string{agent: "DaemonSet", bare: "ReplicaSet"} {
		w.must(w.Create(t.Context(), o))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: o.GetName() + "-", Namespace: ns, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, appsv1.SchemeGroupVersion.WithKind(kind))}}, Spec: podSpec()}
		pod.Spec.NodeName = "node1"
		w.must(w.Create(t.Context(), pod))
	}
	p = w.policy(ns, func(p *v1alpha1.RateLimitPolicy) {
		p.Name = "others"
		p.Spec.TargetRefs = []v1alpha1.TargetRef{{Kind: "DaemonSet", Name: "agent"}, {Kind: "ReplicaSet", Name: "bare"}}
	})
	w.wantMessage(p, v1alpha1.ConditionInjected, "DaemonSet/agent is left to you, since its update strategy is OnDelete: kubectl delete pod POD -n "+ns)
	w.wantMessage(p, v1alpha1.ConditionInjected, "ReplicaSet/bare is left to you, since a ReplicaSet does not replace its pods")
}

// limited is a workload with one pod that carries the sidecar, and its policy.
func (w *world) limited(ns string, change ...func(*v1alpha1.RateLimitPolicy)) (*appsv1.Deployment, *v1alpha1.RateLimitPolicy) {
	d := w.deployment(ns, "checkout")
	p := w.policy(ns, change...)
	w.pod(d, w.injected(p))
	w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonSidecarOutdated)
	return d, p
}

func (w *world) lastPolicyGoes(t *testing.T, ns string) {
	d, p := w.limited(ns)
	other := w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Name = "other" })
	w.must(w.Delete(t.Context(), other))
	time.Sleep(1500 * time.Millisecond)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if d.Generation != 1 {
		t.Fatal("the workload was restarted though a policy targets it still")
	}
	w.must(w.Delete(t.Context(), p))
	w.annotation(d, func(s string) bool { return s == "none" })
	w.event(d, v1alpha1.EventRolloutStarted, "without the sidecar")
}

func (w *world) lastPolicyGoesManually(t *testing.T, ns string) {
	d, p := w.limited(ns, func(p *v1alpha1.RateLimitPolicy) { p.Spec.Injection.Rollout = v1alpha1.Manual })
	w.must(w.Delete(t.Context(), p))
	w.event(d, v1alpha1.EventRolloutManual, "kubectl rollout restart deployment/checkout -n "+ns)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if d.Generation != 1 {
		t.Error("the workload was restarted")
	}
}

func (w *world) policyMovesOn(_ *testing.T, ns string) {
	d, p := w.limited(ns)
	w.edit(p, func() { p.Spec.TargetRefs[0].Name = "another" })
	w.annotation(d, func(s string) bool { return s == "none" })
}

func (w *world) cameUpBare(t *testing.T, ns string) {
	revision := func(p *corev1.Pod) { p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "abc" }
	d, p := w.limited(ns)
	sibling := w.pod(d, w.injected(p), revision)
	bare := w.pod(d, revision)
	// A budget that has never been looked at allows no disruption.
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: ns},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: d.Spec.Selector, MaxUnavailable: new(intstr.FromInt32(0))}}
	w.must(w.Create(t.Context(), pdb))
	w.wantMessage(p, v1alpha1.ConditionInjected, bare.Name)
	time.Sleep(2 * time.Second)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(bare), bare)) // siblings are not ready: not now
	w.becomesReady(bare)                                               // first: no budget keeps a pod that is pending still
	var all corev1.PodList
	w.must(w.List(t.Context(), &all, client.InNamespace(ns)))
	for i := range all.Items {
		w.becomesReady(&all.Items[i])
	}
	w.wantMessage(p, v1alpha1.ConditionInjected, "a PodDisruptionBudget keeps pod "+bare.Name)
	w.must(w.Delete(t.Context(), pdb))
	w.eventually(func() string {
		err := w.Get(context.Background(), client.ObjectKeyFromObject(bare), bare)
		if apierrors.IsNotFound(err) || err == nil && bare.DeletionTimestamp != nil {
			return ""
		}
		return "the bare pod is still there"
	})
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(sibling), sibling))
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if sibling.DeletionTimestamp != nil || d.Generation != 1 {
		t.Error("more than the bare pod was replaced")
	}
}

func (w *world) upgradeIsAsked(t *testing.T, ns string) {
	d, p := w.limited(ns)
	c := w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonSidecarOutdated)
	if !strings.Contains(c.Message, "kubectl annotate deployment/checkout -n "+ns+" --overwrite ratelimit.headgate.dev/upgrade=v2") {
		t.Errorf("message %q does not say how", c.Message)
	}
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if d.Generation != 1 {
		t.Fatal("the workload was restarted though nobody asked")
	}
	ask := func(value string) {
		w.edit(d, func() { d.Annotations = map[string]string{v1alpha1.AnnotationUpgrade: value} })
	}
	ask("v2")
	first := w.annotation(d, set)
	ask("again")
	w.annotation(d, func(s string) bool { return s != "" && s != first })
}

func (w *world) modeIsEdited(_ *testing.T, ns string) {
	d, p := w.limited(ns, func(p *v1alpha1.RateLimitPolicy) { p.Spec.Injection.Mode = v1alpha1.NamedPort })
	w.edit(p, func() { p.Spec.Injection.Mode = v1alpha1.Redirect })
	w.annotation(d, set)
}
