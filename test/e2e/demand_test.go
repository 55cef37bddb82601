//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/port"
	"github.com/headgate/headgate/test/testbed"
)

// autoscalerFollowsWhatIsOffered runs docs/autoscaling.md: Prometheus, prometheus-adapter and the HPA as they stand there. What is
// admitted is flat all the time, at the limit; what is offered makes the Deployment grow, and shrink again.
func autoscalerFollowsWhatIsOffered(t *testing.T) {
	s := newSpace(t)
	app := s.running("checkout", 1)
	policy := s.policy("checkout", app.Name, equally(perSecond("whole-service", 40, 40)))
	s.apply(policy)
	s.enforced(policy, 1)
	s.settled(app, 1)
	p := s.prometheus()
	s.adapter(p)

	var hpa autoscalingv2.HorizontalPodAutoscaler
	s.must(yaml.UnmarshalStrict(s.block("autoscaling.md", "The HPA"), &hpa), "HPA")
	hpa.Namespace = s.name
	hpa.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = new(int32(0)) // five minutes are long for a test
	s.must(suite.Create(s.ctx, &hpa), "HPA")

	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed}, load.Client{Rate: 60, Connections: load.Renewed})
	begin := time.Now()
	s.replicas(app.Name, func(n int32) bool { return n == 4 }) // 180 offered, 50 for each pod
	s.Logf("four replicas after %s", time.Since(begin).Round(time.Second))
	s.settled(app, 4)
	s.enforced(policy, 4)
	s.until(run, 180*15)
	admitted, err := p.Number(s.ctx, fmt.Sprintf(`sum(rate(headgate_requests_total{namespace=%q,decision="allowed"}[10s]))`, s.name))
	s.must(err, "admitted")
	offered, err := p.Number(s.ctx, fmt.Sprintf(`sum(headgate_offered_requests_per_second{namespace=%q})`, s.name))
	s.must(err, "offered")
	s.Logf("with four replicas %.1f are offered and %.1f admitted per second, of a limit of 40", offered, admitted)
	if admitted > 44 || offered < 120 {
		s.Errorf("%.1f are admitted, which should be flat at 40; %.1f are offered, which should be 180", admitted, offered)
	}
	s.none(run.Stop())

	begin = time.Now()
	s.replicas(app.Name, func(n int32) bool { return n == 1 })
	s.Logf("one replica %s after the load", time.Since(begin).Round(time.Second))
	s.judge(run)
}

// adapter starts prometheus-adapter on this machine by the documentation's configuration, and has the API server ask it for external
// metrics.
func (s *space) adapter(p *testbed.Prometheus) {
	s.Helper()
	program := os.Getenv("ADAPTER")
	if program == "" {
		s.Fatal("ADAPTER is not set; use the Makefile's targets")
	}
	machine := s.machine()
	dir := s.TempDir()
	config := filepath.Join(dir, "adapter.yaml")
	s.must(os.WriteFile(config, s.block("autoscaling.md", "The adapter"), 0o600), "configuration")
	at, err := port.Free()
	s.must(err, "port")
	d, err := testbed.StartDaemon(filepath.Join(s.kept, "adapter.log"), program,
		"--config="+config, "--prometheus-url="+p.URL, "--metrics-relist-interval=5s",
		"--bind-address="+machine, "--secure-port="+strconv.Itoa(at), "--cert-dir="+dir,
		"--lister-kubeconfig="+suite.Kubeconfig, "--authentication-kubeconfig="+suite.Kubeconfig, "--authorization-kubeconfig="+suite.Kubeconfig)
	s.must(err, "adapter")
	s.Cleanup(d.Stop)

	of := metav1.ObjectMeta{Namespace: s.name, Name: "prometheus-adapter"}
	s.must(suite.Create(s.ctx, &corev1.Service{ObjectMeta: of, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}}), "service")
	of.Labels = map[string]string{discoveryv1.LabelServiceName: of.Name}
	s.must(suite.Create(s.ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: of, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(at))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{machine}}},
	}), "endpoints")
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1.external.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": s.name, "name": of.Name, "port": int64(443)},
		},
	}}
	s.must(client.IgnoreNotFound(suite.Delete(s.ctx, api.DeepCopy())), "APIService of a run that was killed")
	s.must(suite.Create(s.ctx, api), "APIService")
	s.Cleanup(func() { _ = suite.Delete(context.Background(), api) })
	waitFor(s, rollout, "external metrics", func(ctx context.Context) error {
		return errors.Join(d.Err(), available(ctx, api))
	})
}

// available reports why an APIService does not answer.
func available(ctx context.Context, api *unstructured.Unstructured) error {
	now := api.DeepCopy()
	if err := suite.Get(ctx, client.ObjectKeyFromObject(api), now); err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(now.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Available" && c["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("the APIService is not available: %v", conditions)
}

// machine is the address at which the cluster reaches this machine: that of the API server.
func (s *space) machine() string {
	s.Helper()
	var slices discoveryv1.EndpointSliceList
	s.must(suite.List(s.ctx, &slices, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}), "endpoints of the API server")
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && net.ParseIP(e.Addresses[0]) != nil {
				return e.Addresses[0]
			}
		}
	}
	s.Fatal("the API server has no address")
	return ""
}
