// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/target"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/quota"
)

// healthy is a cluster in which nothing is wrong: an operator with two replicas, and a policy for three pods on two nodes.
func healthy(t *testing.T) *Facts {
	t.Helper()
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	checkout := target.Workload{Kind: "Deployment", Namespace: "shop", Name: "checkout"}
	webhook := certificate(t, now, "headgate-ca", "headgate-operator.headgate-system.svc", quotav1.ServerName)
	f := &Facts{
		Now: now, Version: "v0.3.0", SidecarImage: "registry.example/headgate-sidecar:v0.3.0",
		Operator: Operator{Namespace: "headgate-system", Name: "headgate-operator", Deployment: &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "operator", Image: "registry.example/headgate-operator:v0.3.0"}}}}},
			Status: appsv1.DeploymentStatus{ReadyReplicas: 2},
		}},
		Webhook:     Webhook{Configured: true, Called: true, Covers: map[string]bool{"shop": true}, CABundle: webhook.pem, Service: true, Endpoints: 2},
		Lease:       Lease{Found: true, Holder: "headgate-operator-1", Epoch: "7", Renewed: true, Since: now},
		Authorities: map[string][]byte{"shop": webhook.pem},
		Trials:      []Trial{{Workload: checkout, Injected: true}},
		Found:       map[target.Workload]bool{checkout: true},
		Names:       map[string][]string{"shop/Deployment": {"cart", "search", "checkout-v2"}},
		Namespaces:  map[string]metav1.ObjectMeta{"shop": {Name: "shop"}},
	}
	for i := range 2 {
		for _, port := range []int{portWebhook, portQuota} {
			name := quotav1.ServerName
			if port == portWebhook {
				name = "headgate-operator.headgate-system.svc"
			}
			f.Served = append(f.Served, Served{Pod: fmt.Sprintf("headgate-operator-%d", i+1), Port: port, Name: name, Chain: []*x509.Certificate{webhook.leaf}})
		}
		f.Nodes = append(f.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node%d", i+1)}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Minute))}}}})
	}
	policy := fleet.Policy{RateLimitPolicy: v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: "shop", Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       v1alpha1.RateLimitPolicySpec{TargetRefs: []v1alpha1.TargetRef{{Kind: "Deployment", Name: "checkout"}}},
		Status: v1alpha1.RateLimitPolicyStatus{Conditions: []metav1.Condition{
			{Type: string(v1alpha1.ConditionAccepted), Status: metav1.ConditionTrue}, {Type: string(v1alpha1.ConditionInjected), Status: metav1.ConditionTrue},
			{Type: string(v1alpha1.ConditionProgrammed), Status: metav1.ConditionTrue}, {Type: string(v1alpha1.ConditionQuotaHealthy), Status: metav1.ConditionTrue},
		}},
	}}
	for i := range 3 {
		policy.Pods = append(policy.Pods, &fleet.Pod{
			Owners: []target.Workload{{Kind: "ReplicaSet", Namespace: "shop", Name: "checkout-5d"}, checkout},
			Pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("checkout-%d", i+1), Namespace: "shop", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)), Labels: map[string]string{"app": "checkout"}},
				Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node%d", i%2+1),
					InitContainers: []corev1.Container{{Name: quotav1.ContainerName, Image: f.SidecarImage}},
					Containers:     []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}},
				Status: corev1.PodStatus{
					Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
					InitContainerStatuses: []corev1.ContainerStatus{{Name: quotav1.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
				},
			},
			Answer: fleet.Answer{Outcome: fleet.Answered, At: now, State: &admin.State{Time: now, Version: "v0.3.0", Ready: true,
				Quota: quota.Status{Connected: true, Since: now.Add(-time.Hour), Heard: now, Epoch: 7}}},
		})
	}
	f.Policies = []fleet.Policy{policy}
	return f
}

// signed is a certificate that signs itself, as an authority does that signs nothing else.
type signed struct {
	leaf *x509.Certificate
	pem  []byte
}

// certificate is valid from an hour before now, for 90 days.
func certificate(t *testing.T, now time.Time, by string, names ...string) signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: by}, DNSNames: names, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(90*24*time.Hour - time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed{leaf, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}
