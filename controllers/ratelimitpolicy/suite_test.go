// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/ratelimitpolicy"
	"github.com/headgate/headgate/controllers/setup"
	"github.com/headgate/headgate/test/apiserver"
)

// world is a real API server with the reconciler and a leading home. No kubelet runs: pods are what the tests write.
type world struct {
	client.Client
	t    *testing.T
	home *quota.Home
	n    atomic.Int32
}

func start(t *testing.T, change ...func(*ratelimitpolicy.Settings)) *world {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.Level(zapcore.ErrorLevel)))
	cfg := apiserver.Start(t, "../../config/crd/bases")
	mgr, err := ctrl.NewManager(cfg, manager.Options{Scheme: setup.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}})
	if err != nil {
		t.Fatal(err)
	}
	live, err := client.New(cfg, client.Options{Scheme: setup.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Client: live, t: t}
	bell := &ratelimitpolicy.Bell{}
	w.home = quota.NewHome(quota.Options{
		Now: quota.Boottime, LeaseUntil: func() int64 { return quota.Boottime() + int64(time.Hour) },
		Changed: bell.Ring,
	})
	w.home.Lead(1, quota.Handover{})
	r := &ratelimitpolicy.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Mint: w.home, Recorder: mgr.GetEventRecorder("test"),
		CA: func() []byte { return []byte("a certificate") }, Bell: bell,
		Sidecar: injector.Config{Image: "registry.example/sidecar:v2"},
		Settings: ratelimitpolicy.Settings{Namespace: "headgate-system", Webhook: "headgate-operator", WebhookName: setup.WebhookName, CAConfigMap: "headgate-ca",
			RestartOwner: "test-restart", Patience: 2 * time.Second, Parting: time.Second, EvictEvery: time.Second},
	}
	for _, f := range change {
		f(&r.Settings)
	}
	if err := r.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(&quota.Observer{Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Home: w.home}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("cache does not sync")
	}
	w.must(w.Create(ctx, webhook()))
	return w
}

func webhook() *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate-operator"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: setup.WebhookName, AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: new(admissionregistrationv1.Ignore),
			ClientConfig:  admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "x", Namespace: "y"}},
		}},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// namespace makes a namespace of the test's own.
func (w *world) namespace(t *testing.T) string {
	w.t = t
	name := fmt.Sprintf("test-%d", w.n.Add(1))
	w.must(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

func (w *world) deployment(namespace, name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: podSpec()},
		},
	}
	for _, f := range change {
		f(d)
	}
	w.must(w.Create(context.Background(), d))
	return d
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{
		Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	}}}
}

// pod writes a pod of the deployment, through a ReplicaSet, as the controllers and a kubelet would.
func (w *world) pod(d *appsv1.Deployment, change ...func(*corev1.Pod)) *corev1.Pod {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Namespace: d.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	w.must(w.Create(context.Background(), rs))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: rs.Name + "-", Namespace: d.Namespace, Labels: d.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
		Spec: podSpec(),
	}
	p.Spec.NodeName = "node1"
	for _, f := range change {
		f(p)
	}
	w.must(w.Create(context.Background(), p))
	return p
}

// becomesReady says what a kubelet would.
func (w *world) becomesReady(pod *corev1.Pod) {
	before := pod.DeepCopy() // an attempt to evict writes to pods, too
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.must(w.Status().Patch(context.Background(), pod, client.MergeFrom(before)))
}

// edit changes an object as a person would, who does not mind what the operator writes to it meanwhile.
func (w *world) edit(o client.Object, change func()) {
	w.t.Helper()
	w.must(w.Get(context.Background(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	change()
	w.must(w.Patch(context.Background(), o, client.MergeFrom(before)))
}

func (w *world) policy(namespace string, change ...func(*v1alpha1.RateLimitPolicy)) *v1alpha1.RateLimitPolicy {
	p := &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: namespace},
		Spec: v1alpha1.RateLimitPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Kind: "Deployment", Name: "checkout"}},
			Limits:     []v1alpha1.Limit{{Name: "all", Rate: v1alpha1.Rate{Requests: 100, Per: "1s"}}},
		},
	}
	for _, f := range change {
		f(p)
	}
	w.must(w.Create(context.Background(), p))
	return p
}

// eventually polls until f returns nothing to complain of, and fails with the last complaint.
func (w *world) eventually(f func() string) {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		complaint := f()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal(complaint)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wantCondition waits for a condition of the policy.
func (w *world) wantCondition(p *v1alpha1.RateLimitPolicy, kind v1alpha1.ConditionType, reason v1alpha1.Reason) metav1.Condition {
	w.t.Helper()
	var c *metav1.Condition
	w.eventually(func() string {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}
		c = meta.FindStatusCondition(p.Status.Conditions, string(kind))
		if c == nil || c.Reason != string(reason) || c.ObservedGeneration != p.Generation {
			return fmt.Sprintf("condition %s is %+v, want reason %s for generation %d", kind, c, reason, p.Generation)
		}
		return ""
	})
	return *c
}

// injected makes of a pod what the webhook of an older installation would have made.
func (w *world) injected(policies ...*v1alpha1.RateLimitPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		plan, err := injector.PlanOf(policies, p, injector.Surroundings{})
		w.must(err)
		out, err := injector.Inject(p, injector.Config{Image: "registry.example/sidecar:v1", CAConfigMap: "headgate-ca"}, plan)
		w.must(err)
		*p = *out
	}
}
