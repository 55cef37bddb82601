//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// numbersAreRedirected: a Service by number, a headless one and a port of the node all lead to the sidecar, with every kind
// of probe there is; none of them spends a token of a limit that has four in an hour.
func numbersAreRedirected(t *testing.T) {
	s := newSpace(t)
	app := &testbed.App{Name: "app", Namespace: s.name, Image: suite.images.Name("echo"), Local: suite.Local, Change: probedByNumber}
	service := app.Service()
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
	headless := app.Service()
	headless.Name, headless.Spec.ClusterIP = "pods", corev1.ClusterIPNone
	s.must(suite.Create(s.ctx, service), "service")
	s.must(suite.Create(s.ctx, headless), "service")
	s.must(suite.Create(s.ctx, app.StatefulSet(2)), "stateful set")
	policy := s.policy("hourly", app.Name, v1alpha1.Limit{
		Name: "hourly", Rate: v1alpha1.Rate{Requests: 1, Per: "1h"}, Burst: new(int64(4)),
		Match: []v1alpha1.Match{{Path: v1alpha1.PathMatch{Type: v1alpha1.PathPrefix, Value: "/"}, Methods: []string{http.MethodPost}}},
	})
	policy.Spec.TargetRefs[0].Kind = "StatefulSet"
	s.apply(policy)
	s.enforced(policy, 2)
	pods := s.settled(app, 2)
	for i := range pods {
		if mode := pods[i].Annotations[v1alpha1.AnnotationMode]; mode != string(v1alpha1.Redirect) {
			s.Fatalf("pod %s was injected as %s, and its Services use numbers", pods[i].Name, mode)
		}
		if pods[i].Status.QOSClass != corev1.PodQOSGuaranteed {
			s.Errorf("pod %s is %s: it was Guaranteed without the sidecar", pods[i].Name, pods[i].Status.QOSClass)
		}
	}

	run := s.load(app, load.Client{Rate: 40, Connections: load.New}, load.Client{Rate: 40, Connections: load.Renewed})
	direct, err := load.Start(s.ctx, "http://"+net.JoinHostPort(pods[0].Status.PodIP, "8080"), load.Client{Rate: 20, Connections: load.New})
	s.must(err, "load")
	byNode, err := load.Start(s.ctx, "http://"+net.JoinHostPort(pods[1].Status.HostIP, "18080"), load.Client{Rate: 20, Connections: load.New})
	s.must(err, "load")
	s.Cleanup(func() { direct.Stop(); byNode.Stop() })
	s.until(run, 600) // for more than seven seconds: each probe comes every second
	for what, r := range map[string]*load.Run{"its Service": run, "the pod's address": direct, "the node's port": byNode} {
		s.none(r.Stop())
		if c := r.Count(); c.Denied == 0 || c.Admitted > 4 {
			s.Errorf("through %s: %+v of a limit of 4 in an hour", what, c)
		}
	}
	// Whatever was decided was asked by a client: probes were not.
	report := s.judge(run, direct, byNode)
	if sent := run.Count().Offered + direct.Count().Offered + byNode.Count().Offered; int64(report.Decisions) != sent {
		s.Errorf("%d decisions for %d requests: probes are decided, too", report.Decisions, sent)
	}
	s.unharmed(app, 2)
	s.probePort(&pods[0])
	s.peerIsTold(&pods[0])
	s.deafAppIsUnready(&pods[1])
	s.unharmed(app, 2)
}

// probedByNumber gives the app's container all probes and a hook, by name and by number, and the class Guaranteed.
func probedByNumber(t *corev1.PodTemplateSpec) {
	c := &t.Spec.Containers[0]
	c.Ports[0].HostPort = 18080
	c.StartupProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8080}}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
	c.LivenessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/healthz?full=1", Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "shop.example"}}},
	}}
	c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: *guaranteedCPU, corev1.ResourceMemory: *guaranteedMemory}
	c.Resources.Requests = c.Resources.Limits
	// One pod to a node: they want the same port of it.
	t.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels},
	}}}}
}

// unharmed wants n ready pods of which no container has ever been restarted.
func (s *space) unharmed(app *testbed.App, n int) {
	s.Helper()
	for _, pod := range s.settled(app, n) {
		for _, c := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
			if c.RestartCount > 0 {
				s.Errorf("pod %s: container %s was restarted", pod.Name, c.Name)
			}
		}
	}
}

// get asks once and returns the status and the body.
func (s *space) get(url string) (int, string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	s.must(err, "request")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	s.must(err, "request")
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.must(err, "answer")
	return response.StatusCode, string(body)
}

// probePort wants the probes of the pod, and nothing else, behind the probe port.
func (s *space) probePort(pod *corev1.Pod) {
	s.Helper()
	base := fmt.Sprintf("http://%s", net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(quotav1.PortAdmin)))
	for path, want := range map[string]int{
		"/probe/app/startup": 200, "/probe/app/readiness": 200, "/probe/app/liveness": 200,
		"/probe/app/liveness/../../../": 404, "/probe/app/other": 404, "/probe/other/liveness": 404, "/healthz": 404, "/probe/": 404,
	} {
		if status, body := s.get(base + path); status != want || want == 200 && body != "" {
			s.Errorf("%s: status %d with %q, want %d", path, status, body, want)
		}
	}
}

// peerIsTold: the app sees loopback as its peer, and the real one in X-Forwarded-For.
func (s *space) peerIsTold(pod *corev1.Pod) {
	s.Helper()
	_, body := s.get("http://" + net.JoinHostPort(pod.Status.PodIP, "8080") + "/from")
	if !strings.HasPrefix(body, "127.0.0.1:") || strings.Count(body, ".") < 6 || strings.Contains(body, "[127.") {
		s.Errorf("the app took %q for its client, want loopback and the real address", body)
	}
}

// deafAppIsUnready: the sidecar listens where the app does not, and the pod must turn unready all the same.
func (s *space) deafAppIsUnready(pod *corev1.Pod) {
	s.Helper()
	if status, _ := s.get("http://" + net.JoinHostPort(pod.Status.PodIP, "8080") + "/deaf?ms=8000"); status != http.StatusOK {
		s.Fatalf("status %d", status)
	}
	waitFor(s, soon, "the pod to turn unready", func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if testbed.Ready(pod) {
			return errors.New("it is ready though nothing listens")
		}
		return nil
	})
}

// whatCannotBeInjected is refused with the reason and the mend, and runs on.
func whatCannotBeInjected(t *testing.T) {
	s := newSpace(t, injector.LabelEnforce, "baseline")
	app := s.app("app")
	around := app.Service()
	around.Name = "number"
	around.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
	s.must(suite.Create(s.ctx, around), "service")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	policy := s.policy("all", app.Name, perSecond("all", 20, 20))
	s.apply(policy)
	s.says(policy, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable, "let it target the port by its name")
	s.says(policy, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable, "kubectl label namespace "+s.name+" --overwrite "+injector.LabelEnforce+"=privileged")
	s.ready(app, 1)
	refusedByTheCluster(s, app, policy, around)

	bare := newSpace(t)
	host := &testbed.App{Name: "host", Namespace: bare.name, Image: suite.images.Name("echo"), Local: suite.Local, Args: []string{"-addr=:18090"}, Change: func(t *corev1.PodTemplateSpec) {
		t.Spec.HostNetwork = true
		t.Spec.Containers[0].Ports[0].ContainerPort = 18090
	}}
	bare.must(suite.Create(bare.ctx, host.Deployment(1)), "deployment")
	policy = bare.policy("all", host.Name, perSecond("all", 20, 20))
	bare.apply(policy)
	bare.ready(host, 1)
	bare.says(policy, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable, "hostNetwork")
	bare.redirectProgramRefuses()
}

// refusedByTheCluster: now the sidecar fits, but the folder for its records is what the namespace's level forbids. The restart
// that makes no pods is taken back, and the workload can be scaled again.
func refusedByTheCluster(s *space, app *testbed.App, policy *v1alpha1.RateLimitPolicy, around *corev1.Service) {
	s.Helper()
	if suite.records == "" {
		return // on another cluster the sidecar is allowed, since nothing is recorded
	}
	s.must(suite.Delete(s.ctx, around), "service")
	waitFor(s, rollout, "the restart to be taken back", func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		c := meta.FindStatusCondition(policy.Status.Conditions, string(v1alpha1.ConditionInjected))
		if c == nil || c.Reason != string(v1alpha1.ReasonNotInjectable) || !strings.Contains(c.Message, "made no pods with the sidecar") {
			return fmt.Errorf("Injected is %+v", c)
		}
		return nil
	})
	s.scale(app, 2)
	for _, pod := range s.settled(app, 2) {
		if injector.Injected(&pod.Spec) {
			s.Errorf("pod %s has the sidecar, which the cluster refuses", pod.Name)
		}
	}
}

// redirectProgramRefuses runs the redirect program where it must not work: in the network of a node.
func (s *space) redirectProgramRefuses() {
	s.Helper()
	pod, err := injector.Inject(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{ContainerPort: 18091}}}}}},
		injector.Config{Image: suite.images.Name("sidecar"), PullPolicy: corev1.PullIfNotPresent}, injector.Plan{Mode: v1alpha1.Redirect})
	s.must(err, "inject")
	redirect := pod.Spec.InitContainers[0]
	redirect.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "redirect", Namespace: s.name}, Spec: corev1.PodSpec{
		HostNetwork: true, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{redirect}}}
	s.must(suite.Create(s.ctx, pod), "pod")
	waitFor(s, rollout, "the redirect program", func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Terminated == nil {
			return errors.New("it has not ended")
		}
		return nil
	})
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end.ExitCode == 0 || !strings.Contains(end.Message, "refused") {
		s.Errorf("in the network of a node the redirect program ended with %d: %s", end.ExitCode, end.Message)
	}
}

var guaranteedCPU, guaranteedMemory = resource.NewMilliQuantity(100, resource.DecimalSI), resource.NewQuantity(64<<20, resource.BinarySI)
