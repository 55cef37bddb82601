//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// earlier is the chart as it was before certificates overlapped and rights had names.
const earlier = "testdata/headgate-0.0.9.tgz"

// upgradeIsNotNoticed upgrades the chart, and so all replicas, while clients load an app.
func upgradeIsNotNoticed(t *testing.T) {
	s := newSpace(t)
	s.must(suite.chart.Uninstall(s.ctx), "uninstall")
	before := *suite.chart
	var err error
	before.Archive, err = filepath.Abs(earlier)
	s.must(err, "chart")
	s.must(before.Install(s.ctx), "earlier chart")
	app, policy := s.three()
	pods := uids(s.settled(app, 3))
	run := s.load(app, load.Client{Rate: 50, Connections: load.Pinned}, load.Client{Rate: 50, Connections: load.New}, load.Client{Rate: 50, Connections: load.Renewed})
	s.until(run, 200)
	authority := s.secret("ca.crt")

	s.must(suite.chart.Install(s.ctx), "upgrade")
	s.touch(policy)
	s.enforcedWithin(takeover+margin, policy, 3)
	s.until(run, 200)
	s.none(run.Stop())
	s.judge(run)
	if now := uids(s.settled(app, 3)); now != pods {
		s.Errorf("pods were replaced: %s became %s", pods, now)
	}
	if now := s.secret("ca.crt"); !bytes.HasPrefix(now, authority) {
		s.Errorf("the authority that sidecars trust is another one")
	}
	s.must(suite.chart.Test(s.ctx), "helm test")
}

// uids names the pods that these are.
func uids(pods []corev1.Pod) string {
	known := map[types.UID]bool{}
	for i := range pods {
		known[pods[i].UID] = true
	}
	return fmt.Sprint(known) // in the order of the keys
}

func (s *space) secret(key string) []byte {
	s.Helper()
	var secret corev1.Secret
	s.must(suite.Get(s.ctx, client.ObjectKey{Namespace: testbed.Namespace, Name: testbed.Operator + "-cert"}, &secret), "certificate")
	return secret.Data[key]
}

// certificatesChangeUnderLoad: short-lived ones, of an authority that is short-lived, too, and no pod restarts. A sidecar
// connects anew each time that its operator goes.
func certificatesChangeUnderLoad(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(run, 100)
	first := s.secret("tls.crt")
	chart := *suite.chart
	chart.Set = append([]string{"certificates.validity=30s"}, chart.Set...)
	s.must(chart.Install(s.ctx), "chart with short certificates")
	s.Cleanup(func() { s.must(suite.chart.Install(context.WithoutCancel(s.ctx)), "chart") })
	operators := s.operators()
	served := map[string]bool{string(first): true}
	waitFor(s, 4*time.Minute, "two more certificates", func(context.Context) error {
		served[string(s.secret("tls.crt"))] = true
		if len(served) < 4 {
			return fmt.Errorf("%d were seen", len(served))
		}
		return nil
	})
	if now := s.operators(); now != operators {
		s.Errorf("replicas of the operator were restarted: %s became %s", operators, now)
	}
	// The replica that leads goes; every sidecar connects to the other one, over a certificate that it has never seen.
	_, leader := s.leader()
	s.must(suite.Delete(s.ctx, leader, client.GracePeriodSeconds(0)), "leader")
	s.touch(policy)
	s.enforcedWithin(takeover+margin, policy, 3)
	s.must(suite.chart.Test(s.ctx), "helm test")
	s.none(run.Stop())
	s.judge(run)
	s.noSecretIn(testbed.Namespace, "app.kubernetes.io/name=headgate")
	s.noSecretIn(s.name, "app.kubernetes.io/name")
}

// operators names the replicas and how often their containers have started.
func (s *space) operators() string {
	s.Helper()
	var pods corev1.PodList
	s.must(suite.List(s.ctx, &pods, client.InNamespace(testbed.Namespace), client.MatchingLabels{"app.kubernetes.io/component": "operator"}), "operator")
	known := map[string]int32{}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			known[pods.Items[i].Name] = pods.Items[i].Status.ContainerStatuses[0].RestartCount
		}
	}
	return fmt.Sprint(known)
}

// secrets are what tokens and keys look like.
var secrets = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{16,}\.eyJ|PRIVATE KEY|Bearer [A-Za-z0-9]`)

// noSecretIn looks through the logs of pods, at debug level.
func (s *space) noSecretIn(namespace, selector string) {
	s.Helper()
	kubectl := "kubectl"
	if suite.Local {
		kubectl = filepath.Join(suite.Binaries(), "kubectl")
	}
	args := []string{"logs", "-n", namespace, "-l", selector, "--all-containers", "--tail=-1", "--max-log-requests=30"}
	if suite.Kubeconfig != "" {
		args = append(args, "--kubeconfig", suite.Kubeconfig)
	}
	out, err := exec.CommandContext(s.ctx, kubectl, args...).Output()
	s.must(err, "logs")
	if len(out) == 0 {
		s.Errorf("there are no logs of %s in %s", selector, namespace)
	}
	if found := secrets.FindIndex(out); found != nil {
		s.Errorf("a log of %s in %s holds a secret, near %q", selector, namespace, out[max(0, found[0]-120):found[0]])
	}
}

// appsOutliveTheChart, enforce what they last heard, and are taken over by the chart that comes next.
func appsOutliveTheChart(t *testing.T) {
	s := newSpace(t)
	s.must(suite.chart.Install(s.ctx), "chart")
	app, policy := s.three()
	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(run, 200)
	s.must(suite.chart.Uninstall(s.ctx), "uninstall")
	before := run.Count()
	s.until(run, 400)
	if now := run.Count(); now.Admitted == before.Admitted || now.Denied == before.Denied {
		s.Errorf("without the chart: %+v, then %+v; pods should enforce what they last heard", before, now)
	}
	// What starts now starts without the sidecar, and nothing stands in its way.
	s.scale(app, 4)
	s.settled(app, 4)
	s.until(run, 100)
	s.none(run.Stop())
	s.judge()
	s.stays(policy)

	s.must(suite.chart.Install(s.ctx), "install")
	s.enforced(policy, 4)
	s.settled(app, 4)
	s.must(suite.chart.Test(s.ctx), "helm test")
	s.must(suite.chart.Uninstall(s.ctx), "uninstall")
}

// stays wants the policy and its CRD to be there, and to belong to nobody who could take them away.
func (s *space) stays(policy *v1alpha1.RateLimitPolicy) {
	s.Helper()
	if err := suite.Get(s.ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
		s.Errorf("the policy went with the chart: %v", err)
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := suite.Get(s.ctx, client.ObjectKey{Name: "ratelimitpolicies.ratelimit.headgate.dev"}, crd); err != nil {
		s.Errorf("the CRD went with the chart: %v", err)
	} else if crd.DeletionTimestamp != nil {
		s.Errorf("the CRD is being deleted")
	}
}
