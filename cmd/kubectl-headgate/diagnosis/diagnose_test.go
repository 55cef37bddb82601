// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/target"
)

var update = flag.Bool("update", false, "write the golden files")

// Each case breaks one thing in a cluster that is well. What is found is exactly its cause: nothing that only follows from it,
// and nothing else.
func TestEachCauseIsNamedAndNothingElse(t *testing.T) {
	pod := func(f *Facts, i int) *fleet.Pod { return f.Policies[0].Pods[i] }
	cut := func(p *fleet.Pod, f *Facts, why string) {
		p.Answer.State.Quota.Connected = false
		p.Answer.State.Quota.Since = f.Now.Add(-40 * time.Second)
		p.Answer.State.Quota.LastError = why
	}
	condition := func(f *Facts, kind v1alpha1.ConditionType, reason v1alpha1.Reason, message string) {
		f.Policies[0].Status.Conditions = []metav1.Condition{{Type: string(kind), Status: metav1.ConditionFalse, Reason: string(reason), Message: message}}
	}
	for name, tc := range map[string]struct {
		change func(*Facts)
		want   []Code
	}{
		"nothing is wrong": {func(*Facts) {}, nil},
		"the operator is not installed": {func(f *Facts) {
			f.Operator.Deployment, f.Operator.Pods, f.Webhook, f.Lease, f.Served = nil, nil, Webhook{}, Lease{}, nil
			f.Trials[0].Injected = false
		}, []Code{OperatorMissing}},
		"the operator is scaled to 0": {func(f *Facts) {
			*f.Operator.Deployment.Spec.Replicas, f.Operator.Deployment.Status.ReadyReplicas, f.Operator.Pods, f.Served = 0, 0, nil, nil
			f.Webhook.Endpoints, f.Trials[0].Injected, f.Lease.Renewed, f.Lease.Holder = 0, false, false, ""
			for _, p := range f.Policies[0].Pods {
				cut(p, f, "dial tcp 10.96.1.1:9444: connect: connection refused")
			}
			condition(f, v1alpha1.ConditionProgrammed, v1alpha1.ReasonReconciling, "1 of 3 pods have acknowledged generation 2.")
		}, []Code{OperatorScaledToZero}},
		"no replica of the operator is ready": {func(f *Facts) {
			f.Operator.Deployment.Status.ReadyReplicas = 0
			f.Operator.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "headgate-operator-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "operator", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}}}}
			f.Webhook.Endpoints, f.Trials[0].Injected, f.Lease.Renewed, f.Served = 0, false, false, nil
		}, []Code{OperatorNotReady}},
		"the leader is paused": {func(f *Facts) { f.Lease.Renewed, f.Lease.Since = false, f.Now.Add(-time.Minute) }, []Code{NobodyLeads}},
		"the webhook is not configured": {func(f *Facts) {
			f.Webhook.Configured, f.Webhook.Called, f.Webhook.Covers, f.Trials[0].Injected = false, false, nil, false
		}, []Code{WebhookMissing}},
		"the webhook has no rules":               {func(f *Facts) { f.Webhook.Called, f.Trials[0].Injected = false, false }, []Code{WebhookNotCalled}},
		"the webhook is not called for the pods": {func(f *Facts) { f.Webhook.Covers, f.Trials[0].Injected = map[string]bool{"other": true}, false }, []Code{WebhookNotCalled}},
		"the webhook's Service selects nothing":  {func(f *Facts) { f.Webhook.Endpoints, f.Trials[0].Injected = 0, false }, []Code{WebhookNoEndpoints}},
		"a firewall keeps the API server away": {func(f *Facts) {
			f.Trials[0].Injected, f.Webhook.Reached = false, "dial tcp 10.244.1.9:9443: i/o timeout"
		}, []Code{WebhookUnreachable}},
		"the same, where pods are refused": {func(f *Facts) {
			f.Webhook.Fails = true
			f.Trials[0] = Trial{Workload: f.Trials[0].Workload, Refused: "Internal error occurred: failed calling webhook \"inject.ratelimit.headgate.dev\": context deadline exceeded"}
		}, []Code{WebhookUnreachable}},
		"the cluster refuses pods": {func(f *Facts) { f.Trials[0] = Trial{Workload: f.Trials[0].Workload, Refused: "exceeded quota: pods"} }, []Code{PodsRefused}},
		"the certificate has expired": {func(f *Facts) {
			f.Now = f.Now.Add(90 * 24 * time.Hour)
			old(f)
			f.Trials[0].Injected = false
			cut(pod(f, 0), f, "x509: certificate has expired")
		}, []Code{CertificateExpired}},
		"the certificate is not renewed": {func(f *Facts) { f.Now = f.Now.Add(75 * 24 * time.Hour); old(f) }, []Code{CertificateNotRenewed}},
		"the webhook trusts another authority": {func(f *Facts) {
			f.Webhook.CABundle = certificate(t, f.Now, "other", quotav1.ServerName).pem
			f.Trials[0].Injected = false
		}, []Code{CertificateMismatch}},
		"sidecars trust another authority": {func(f *Facts) {
			f.Authorities["shop"] = certificate(t, f.Now, "other", quotav1.ServerName).pem
			cut(pod(f, 0), f, "x509: unknown authority")
		}, []Code{CertificateMismatch}},
		"sidecars have no authority": {func(f *Facts) { f.Authorities["shop"] = nil }, []Code{AuthorityMissing}},
		"a target is missing": {func(f *Facts) {
			f.Found[target.Workload{Kind: "Deployment", Namespace: "shop", Name: "checkout"}] = false
			f.Policies[0].Pods, f.Trials = nil, nil
			condition(f, v1alpha1.ConditionAccepted, v1alpha1.ReasonTargetNotFound, "Deployment/checkout not found")
		}, []Code{TargetMissing}},
		"a pod has no sidecar": {func(f *Facts) {
			pod(f, 0).Spec.InitContainers = nil
			condition(f, v1alpha1.ConditionInjected, v1alpha1.ReasonPodsWithoutSidecar, "1 of 3 pods lack the sidecar")
		}, []Code{PodWithoutSidecar}},
		"a pod cannot have the sidecar": {func(f *Facts) { pod(f, 0).Spec.InitContainers = nil; pod(f, 0).Spec.HostNetwork = true }, []Code{PodWithoutSidecar}},
		"a pod is left alone by its label": {func(f *Facts) {
			pod(f, 0).Spec.InitContainers = nil
			pod(f, 0).Labels = map[string]string{v1alpha1.LabelInject: "false"}
		}, []Code{PodLeftAlone}},
		"a stream is blocked": {func(f *Facts) {
			cut(pod(f, 1), f, "the operator does not answer: 3 heartbeats missed")
			condition(f, v1alpha1.ConditionQuotaHealthy, v1alpha1.ReasonReserved, "The share of 1 pods is reserved")
		}, []Code{StreamBlocked}},
		"a stream was lost a moment ago, as in a fail-over": {func(f *Facts) {
			cut(pod(f, 1), f, "EOF")
			pod(f, 1).Answer.State.Quota.Since = f.Now.Add(-3 * time.Second)
		}, nil},
		"a NetworkPolicy may be why": {func(f *Facts) { cut(pod(f, 1), f, "i/o timeout"); f.Networks = egress() }, []Code{StreamBlocked}},
		"a sidecar is turned away":   {func(f *Facts) { cut(pod(f, 1), f, "rpc error: code = Unauthenticated desc = token expired") }, []Code{StreamRefused}},
		"a sidecar is paused": {func(f *Facts) {
			pod(f, 2).Answer = fleet.Answer{Outcome: fleet.Silent, Error: "context deadline exceeded"}
			condition(f, v1alpha1.ConditionQuotaHealthy, v1alpha1.ReasonReserved, "The share of 1 pods is reserved")
		}, []Code{SidecarFrozen}},
		"a sidecar crashes":              {func(f *Facts) { crash(pod(f, 2)) }, []Code{SidecarNotRunning}},
		"nothing listens in the sidecar": {func(f *Facts) { pod(f, 2).Answer = fleet.Answer{Outcome: fleet.Closed} }, []Code{SidecarNotRunning}},
		"a kubelet is out of reach": {func(f *Facts) {
			pod(f, 2).Answer = fleet.Answer{Outcome: fleet.Unreachable, Error: "error dialing backend: i/o timeout"}
		}, []Code{SidecarUnreachable}},
		"a node is not ready": {func(f *Facts) {
			f.Nodes[1].Status.Conditions[0].Status = corev1.ConditionFalse
			pod(f, 1).Answer = fleet.Answer{Outcome: fleet.Unreachable}
			condition(f, v1alpha1.ConditionQuotaHealthy, v1alpha1.ReasonReserved, "reserved")
		}, []Code{NodeNotReady}},
		"a policy says what is wrong": {func(f *Facts) {
			condition(f, v1alpha1.ConditionInjected, v1alpha1.ReasonBypassable, "Service shop (targetPort 8080) leads around the sidecar: let it target the port by its name (targetPort: http).")
		}, []Code{PolicyUnhealthy}},
		"a policy that nobody has looked at": {func(f *Facts) { f.Policies[0].Status = v1alpha1.RateLimitPolicyStatus{} }, []Code{PolicyUnhealthy}},
		"a node's clock is a little off":     {func(f *Facts) { pod(f, 0).Answer.State.Time = f.Now.Add(8 * time.Second) }, []Code{ClockOff}},
		"the leader's clock is far off":      {func(f *Facts) { f.Lease.Ahead = -5 * time.Minute }, []Code{ClockOff}},
		"this machine's clock is far off, and no other": {func(f *Facts) {
			f.Here = time.Hour
			for _, p := range f.Policies[0].Pods {
				p.Answer.At = p.Answer.At.Add(time.Hour)
			}
		}, []Code{ClockOff}},
		"a pod has an older sidecar":              {func(f *Facts) { pod(f, 0).Spec.InitContainers[0].Image = "registry.example/headgate-sidecar:v0.2.9" }, []Code{SidecarOutdated}},
		"a pod has a sidecar of two versions ago": {func(f *Facts) { pod(f, 0).Spec.InitContainers[0].Image = "registry.example/headgate-sidecar:v0.1.0" }, []Code{VersionsFar, SidecarOutdated}},
		"the plugin is of two versions ago":       {func(f *Facts) { f.Version = "v0.1.4" }, []Code{VersionsFar}},
		"the operator is alone": {func(f *Facts) {
			*f.Operator.Deployment.Spec.Replicas, f.Operator.Deployment.Status.ReadyReplicas = 1, 1
		}, []Code{OperatorAlone}},
		"a fact could not be had": {func(f *Facts) { f.Nodes, f.Blind = nil, []Blind{{"nodes", "nodes is forbidden"}} }, []Code{NotLookedAt}},
		"several causes at once are all named": {func(f *Facts) {
			pod(f, 2).Answer = fleet.Answer{Outcome: fleet.Silent}
			pod(f, 0).Spec.InitContainers = nil
			f.Trials[0].Injected = false
		}, []Code{WebhookUnreachable, PodWithoutSidecar, SidecarFrozen}},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			tc.change(f)
			r := Diagnose(f)
			var got []Code
			for _, x := range r.Findings {
				got = append(got, x.Code)
				if x.Why == "" || x.Do == "" || x.Code != NotLookedAt && len(x.Where) == 0 {
					t.Errorf("%s does not say where, why or what to do: %+v", x.Code, x)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if wrong := slices.ContainsFunc(r.Findings, func(x Finding) bool { return x.Level == Problem }); wrong != r.Wrong {
				t.Errorf("wrong is %v", r.Wrong)
			}
			var b bytes.Buffer
			r.Fprint(&b)
			golden(t, name, b.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it:\n%s", path, diff)
	}
}

func TestManyPodsWithTheSameTroubleAreOneFinding(t *testing.T) {
	f := healthy(t)
	for range 100 {
		p := *f.Policies[0].Pods[0]
		p.Name = "checkout-" + string(rune('a'+len(f.Policies[0].Pods)%26)) + time.Duration(len(f.Policies[0].Pods)).String()
		p.Answer = fleet.Answer{Outcome: fleet.Silent}
		f.Policies[0].Pods = append(f.Policies[0].Pods, &p)
	}
	r := Diagnose(f)
	if len(r.Findings) != 1 || len(r.Findings[0].Where) != 100 {
		t.Fatalf("%d findings", len(r.Findings))
	}
	var b bytes.Buffer
	r.Fprint(&b)
	if n := strings.Count(b.String(), "pod/checkout-"); n > 6 {
		t.Errorf("a hundred pods fill the screen with %d lines:\n%s", n, b.String())
	}
}

func TestVersionsOneMinorApartWorkTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"the same":           {"v0.3.0", "v0.3.9", false},
		"one apart":          {"v0.3.0", "v0.4.0", false},
		"two apart":          {"v0.5.0", "v0.3.0", true},
		"another major":      {"v1.0.0", "v0.9.0", true},
		"no version at all":  {"(devel)", "v0.3.0", false},
		"a hash for a tag":   {"3f2a1b", "v0.3.0", false},
		"nothing to compare": {"", "", false},
	} {
		if got := apart(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// egress are NetworkPolicies, of which one restricts what the pods reach.
func egress() []networkingv1.NetworkPolicy {
	of := func(ns, name string, kinds ...networkingv1.PolicyType) networkingv1.NetworkPolicy {
		return networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: networkingv1.NetworkPolicySpec{PolicyTypes: kinds}}
	}
	other := of("shop", "of-another-app", networkingv1.PolicyTypeEgress)
	other.Spec.PodSelector.MatchLabels = map[string]string{"app": "other"}
	return []networkingv1.NetworkPolicy{
		of("shop", "only-dns", networkingv1.PolicyTypeEgress), of("shop", "only-gateway", networkingv1.PolicyTypeIngress), of("elsewhere", "none", networkingv1.PolicyTypeEgress), other,
	}
}

func crash(p *fleet.Pod) {
	p.Answer = fleet.Answer{Outcome: fleet.Closed}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: quotav1.ContainerName, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container"}}}}
}

// old makes the answers of a cluster as fresh as its clock.
func old(f *Facts) {
	f.Lease.Since = f.Now
	for _, p := range f.Policies[0].Pods {
		p.Answer.At, p.Answer.State.Time = f.Now, f.Now
	}
}
