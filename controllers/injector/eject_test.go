// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
)

// back fails where ejecting what was injected gives something else than there was.
func back(t interface{ Errorf(string, ...any) }, before, injected *corev1.Pod) {
	kept := injected.DeepCopy()
	got, err := injector.Eject(injected)
	if err != nil {
		t.Errorf("the way back: %v", err)
		return
	}
	if diff := cmp.Diff(kept, injected); diff != "" {
		t.Errorf("Eject changed its argument:\n%s", diff)
	}
	if diff := cmp.Diff(before, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what was injected and ejected differs from what there was:\n%s", diff)
	}
	again, err := injector.Eject(got)
	if diff := cmp.Diff(got, again); err != nil || diff != "" {
		t.Errorf("ejecting twice differs from once: %v\n%s", err, diff)
	}
}

func TestTheWayBackGivesEveryExampleAsItWas(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	ways := 0
	for _, in := range inputs {
		t.Run(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(in), ".in.yaml"), "-", " "), func(t *testing.T) {
			e := read(t, in)
			injected, err := e.inject(&e.Pod)
			if err != nil {
				injected = &e.Pod // refused: there is nothing to take out
			} else {
				ways++
			}
			back(t, &e.Pod, injected)
		})
	}
	if ways == 0 {
		t.Error("nothing was injected, so nothing was proven")
	}
}

func TestTheWayBackGivesAnyPodAsItWas(t *testing.T) {
	injected := map[v1alpha1.InjectionMode]int{}
	rapid.Check(t, func(t *rapid.T) {
		pod := anyPod(t)
		plan := injector.Plan{
			Mode:        rapid.SampledFrom([]v1alpha1.InjectionMode{v1alpha1.NamedPort, v1alpha1.Redirect, v1alpha1.None}).Draw(t, "mode"),
			Ports:       rapid.SampledFrom([][]string{nil, {"http"}, {"grpc", "http"}, {"8080"}, {"9999"}}).Draw(t, "ports"),
			Sleep:       rapid.SampledFrom([]int32{0, 5, 7}).Draw(t, "sleep"),
			PullSecrets: rapid.SampledFrom([][]string{nil, {"mine"}, {"theirs", "mine"}}).Draw(t, "secrets"),
			Rollout:     v1alpha1.Manual,
		}
		if plan.Mode != v1alpha1.Redirect {
			plan.Mesh = rapid.SampledFrom([]string{"", "Istio", "Linkerd"}).Draw(t, "mesh")
		}
		cfg := config
		cfg.PullSecrets = rapid.SampledFrom([][]string{nil, {"theirs"}}).Draw(t, "installation's secrets")
		cfg.RecordHostPath = rapid.SampledFrom([]string{"", "/records"}).Draw(t, "records")
		before := pod.DeepCopy()
		out, err := injector.Inject(pod, cfg, plan)
		if errors.Is(err, injector.ErrNotInjectable) {
			if !equality.Semantic.DeepEqual(before, pod) {
				t.Fatalf("a pod that is refused (%v) was changed", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		injected[plan.Mode]++
		back(t, pod, out)
	})
	if len(injected) != 3 {
		t.Errorf("injected were %v: not every mode was tried", injected)
	}
}

// anyPod draws a pod with all that an injection touches, and much that looks like it.
func anyPod(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "shop"}}
	if rapid.Bool().Draw(t, "labels") {
		pod.Labels = map[string]string{"app": "a"}
	}
	for key, value := range map[string]string{
		"note": "x", "traffic.sidecar.istio.io/excludeInboundPorts": "15020", "config.linkerd.io/skip-inbound-ports": "4190,14190",
	} {
		if rapid.Bool().Draw(t, key) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
		}
	}
	pod.Spec.ImagePullSecrets = rapid.SampledFrom([][]corev1.LocalObjectReference{nil, {{Name: "theirs"}}, {{Name: "own"}}}).Draw(t, "own secrets")
	pod.Spec.Volumes = rapid.SampledFrom([][]corev1.Volume{nil, {{Name: "data"}}}).Draw(t, "volumes")
	used := map[int32]bool{}
	for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
		pod.Spec.Containers = append(pod.Spec.Containers, anyContainer(t, fmt.Sprintf("app%d", i), used))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "init containers") {
		c := anyContainer(t, fmt.Sprintf("init%d", i), used)
		if rapid.Bool().Draw(t, "native") {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		} else {
			c.StartupProbe, c.ReadinessProbe, c.LivenessProbe, c.Lifecycle = nil, nil, nil, nil
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	return pod
}

func anyContainer(t *rapid.T, name string, used map[int32]bool) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example/" + name}
	names := map[string]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "ports") {
		p := corev1.ContainerPort{
			Name:          rapid.SampledFrom([]string{"", "http", "grpc", "admin"}).Draw(t, "port name"),
			ContainerPort: rapid.SampledFrom([]int32{8080, 8081, 9090, 9091, 53, 443}).Draw(t, "port"),
			Protocol:      rapid.SampledFrom([]corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP}).Draw(t, "protocol"),
		}
		if used[p.ContainerPort] || p.Name != "" && names[p.Name] {
			continue
		}
		used[p.ContainerPort], names[p.Name] = true, true
		c.Ports = append(c.Ports, p)
	}
	to := []intstr.IntOrString{intstr.FromInt32(8080), intstr.FromInt32(9999)}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if n != "" {
			to = append(to, intstr.FromString(n))
		}
	}
	for what, p := range map[string]**corev1.Probe{"startup": &c.StartupProbe, "readiness": &c.ReadinessProbe, "liveness": &c.LivenessProbe} {
		if q := anyQuestion(t, what, to); q != nil {
			*p = &corev1.Probe{PeriodSeconds: 3, TimeoutSeconds: 2, ProbeHandler: *q}
		}
	}
	hook := func(what string) *corev1.LifecycleHandler {
		switch rapid.IntRange(0, 3).Draw(t, what) {
		case 0:
			return &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}
		case 1:
			return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/stop"}}}
		case 2:
			return &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/hook", Port: rapid.SampledFrom(to).Draw(t, "hook port")}}
		}
		return nil
	}
	if before, after := hook("preStop"), hook("postStart"); before != nil || after != nil {
		c.Lifecycle = &corev1.Lifecycle{PreStop: before, PostStart: after}
	}
	return c
}

func anyQuestion(t *rapid.T, what string, to []intstr.IntOrString) *corev1.ProbeHandler {
	port := rapid.SampledFrom(to).Draw(t, what+" port")
	switch rapid.IntRange(0, 4).Draw(t, what) {
	case 0:
		return &corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/healthz?a=<b>&c=$(HOME)", Port: port, Scheme: rapid.SampledFrom([]corev1.URIScheme{"", corev1.URISchemeHTTP, corev1.URISchemeHTTPS}).Draw(t, "scheme"),
			Host: rapid.SampledFrom([]string{"", "192.0.2.9"}).Draw(t, "host"), HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "shop.example"}},
		}}
	case 1:
		return &corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	case 2:
		return &corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8080, Service: rapid.SampledFrom([]*string{nil, new(""), new("shop")}).Draw(t, "service")}}
	case 3:
		return &corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/check"}}}
	}
	return nil
}

func TestAProbeOfWhichNothingIsKnownIsNotMadeUp(t *testing.T) {
	e := read(t, "testdata/redirect-leaves-ports-and-takes-probes.in.yaml")
	pod, err := e.inject(&e.Pod)
	if err != nil {
		t.Fatal(err)
	}
	delete(pod.Annotations, v1alpha1.AnnotationOriginal)
	if _, err := injector.Eject(pod); err == nil || !strings.Contains(err.Error(), "container app") {
		t.Errorf("%v, want the container and the probe", err)
	}
	pod.Annotations[v1alpha1.AnnotationOriginal] = "["
	if _, err := injector.Eject(pod); err == nil || !strings.Contains(err.Error(), v1alpha1.AnnotationOriginal) {
		t.Errorf("%v, want the annotation", err)
	}
}
