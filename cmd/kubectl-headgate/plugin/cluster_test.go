// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/diagnosis"
	"github.com/headgate/headgate/test/apiserver"
)

// kubeconfig writes what kubectl would read.
func kubeconfig(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a", Namespace: "shop"}},
		CurrentContext: "a",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A real API server, on which nobody has installed anything but the CRD: no operator, no kubelets.
func TestACluster(t *testing.T) {
	log.SetLogger(logr.Discard())
	cfg := apiserver.Start(t, "../../../config/crd/bases")
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	config := kubeconfig(t, cfg)
	fill(t, c)
	run := func(args ...string) (bool, string, string) {
		return call(t, "", append(args, "--kubeconfig", config)...)
	}
	t.Run("the namespace of the context counts, and -A is the cluster", func(t *testing.T) {
		if failed, out, errOut := run("status"); failed || !strings.Contains(out, "checkout") || strings.Contains(out, "lost") {
			t.Errorf("%s%s", out, errOut)
		}
		if failed, out, errOut := run("status", "-A"); failed || !strings.Contains(out, "checkout") || !strings.Contains(out, "lost") {
			t.Errorf("%s%s", out, errOut)
		}
		if failed, out, errOut := run("status", "-n", "default"); failed || out != "" || !strings.Contains(errOut, "No policies in namespace default") {
			t.Errorf("%s%s", out, errOut)
		}
	})
	t.Run("status has its pods, each with what it lacks", func(t *testing.T) {
		failed, out, errOut := run("status", "checkout", "-o", "json")
		var got struct {
			Policies []struct {
				State    string
				Pods     int
				Troubles []struct{ Do string }
				Members  []struct{ Name, Sidecar string }
			}
		}
		if err := json.Unmarshal([]byte(out), &got); failed || err != nil {
			t.Fatalf("%v: %s%s", err, out, errOut)
		}
		p := got.Policies[0]
		if p.State != "Unseen" || p.Pods != 1 || p.Members[0].Sidecar != "none: not limited" || p.Troubles[0].Do == "" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("a policy that is not there is said so, with how to list those that are", func(t *testing.T) {
		if failed, _, errOut := run("status", "nobody"); !failed || !strings.Contains(errOut, "kubectl get") {
			t.Errorf("%q", errOut)
		}
		if failed, _, errOut := run("top", "checkout", "-A"); !failed || !strings.Contains(errOut, "leave -A out") {
			t.Errorf("%q", errOut)
		}
	})
	t.Run("doctor names what is missing", func(t *testing.T) {
		failed, out, errOut := run("doctor", "-A", "-o", "json")
		var r diagnosis.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s%s", err, out, errOut)
		}
		for _, code := range []diagnosis.Code{diagnosis.OperatorMissing, diagnosis.TargetMissing, diagnosis.PodWithoutSidecar} {
			if !r.Has(code) {
				t.Errorf("%s is not named: %s", code, out)
			}
		}
		if !failed || !r.Wrong || len(r.Findings) != 3 {
			t.Errorf("failed %v: %s", failed, out)
		}
	})
	t.Run("the documented rights are enough to look at everything", func(t *testing.T) {
		grant(t, c, config, "documented", documentedRole(t))
		for _, args := range [][]string{{"status", "-A"}, {"doctor", "-A"}} {
			_, out, errOut := run(append(args, "--as", "documented")...)
			if out == "" || strings.Contains(out+errOut, "forbidden") || strings.Contains(strings.ToLower(out), "not looked at") {
				t.Errorf("%v: %s%s", args, out, errOut)
			}
		}
	})
	t.Run("what a user may not look at is said, and the rest is looked at", func(t *testing.T) {
		role := documentedRole(t)
		role.Rules = role.Rules[:1]
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "replicasets", "deployments"}, Verbs: []string{"get", "list"}})
		grant(t, c, config, "narrow", role)
		_, out, errOut := run("doctor", "-A", "--as", "narrow")
		for _, want := range []string{"not looked at: nodes", "docs/plugin.md", "target Deployment/lost is not there"} {
			if !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
				t.Errorf("%q is not said:\n%s%s", want, out, errOut)
			}
		}
	})
	t.Run("the shell completes names of policies", func(t *testing.T) {
		for _, name := range []string{"status", "top", "explain"} {
			if _, out, errOut := call(t, "", "__complete", name, "--kubeconfig", config, ""); !strings.Contains(out, "checkout\n") {
				t.Errorf("%s: %s%s", name, out, errOut)
			}
		}
	})
	t.Run("nothing is written", func(t *testing.T) {
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods); err != nil || len(pods.Items) != 1 {
			t.Errorf("%v: %d pods, want the one that was there", err, len(pods.Items))
		}
	})
}

// fill makes a policy with a bare pod, and one whose target is not there.
func fill(t *testing.T, c client.Client) {
	t.Helper()
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "checkout"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}},
	}
	policy := func(ns, name string) *v1alpha1.RateLimitPolicy {
		return &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.RateLimitPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Group: "apps", Kind: "Deployment", Name: name}},
			Limits:     []v1alpha1.Limit{{Name: "all", Rate: v1alpha1.Rate{Requests: 5, Per: "1s"}}},
		}}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		account, deployment, policy("shop", "checkout"), policy("other", "lost"),
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-1", OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
	}}, Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: template}}
	if err := c.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-1-a", Labels: template.Labels, OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
	}}, Spec: template.Spec}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// documentedRole is the ClusterRole that docs/plugin.md shows.
func documentedRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	page, err := os.ReadFile("../../../docs/plugin.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\n")
	text, _, ended := strings.Cut(text, "```")
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(text), role); err != nil || !found || !ended || role.Name == "" {
		t.Fatalf("docs/plugin.md shows no ClusterRole: %v", err)
	}
	return role
}

// grant gives a user the rules of a role, and waits until they count.
func grant(t *testing.T, c client.Client, config, user string, role *rbacv1.ClusterRole) {
	t.Helper()
	role.Name = user
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}}
	for _, o := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		if failed, _, errOut := call(t, "", "status", "-A", "--as", user, "--kubeconfig", config); !failed || !strings.Contains(errOut, "forbidden") || time.Now().After(deadline) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
