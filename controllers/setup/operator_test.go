// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/setup"
	"github.com/headgate/headgate/test/apiserver"
	"github.com/headgate/headgate/test/port"
	"github.com/headgate/headgate/test/testbed"
)

const installed = "headgate-system"

// refusals notes what the API server has refused.
type refusals struct {
	http.RoundTripper
	mu   sync.Mutex
	list []string
}

func (r *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusForbidden {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, req.Method+" "+req.URL.RequestURI())
	}
	return resp, err
}

// cluster is an API server on which the chart is installed, all but its Deployment, and an operator that runs with the rights
// that the chart gives it.
type cluster struct {
	client.Client
	t       *testing.T
	refused *refusals
	options setup.Options
}

func install(t *testing.T, args ...string) *cluster {
	t.Helper()
	server := apiserver.Run(t, &envtest.WebhookInstallOptions{}, "../../config/crd/bases")
	c := &cluster{t: t, refused: &refusals{}}
	var err error
	if c.Client, err = client.New(server.Config, client.Options{Scheme: setup.Scheme()}); err != nil {
		t.Fatal(err)
	}
	c.must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installed}}))
	text, err := os.ReadFile("../../config/manager/headgate.yaml") // the chart, rendered with its defaults
	c.must(err)
	for doc := range strings.SplitSeq(string(text), "---\n") {
		var o unstructured.Unstructured
		c.must(yaml.Unmarshal([]byte(doc), &o.Object))
		if o.GetKind() != "" && o.GetKind() != "Deployment" {
			c.must(c.Create(t.Context(), &o))
		}
	}
	for name, value := range map[string]string{"POD_NAMESPACE": installed, "POD_NAME": "operator-1", "POD_IP": "127.0.0.1"} {
		t.Setenv(name, value)
	}
	c.options, err = setup.Parse(append([]string{"--sidecar-image=sidecar:v1", "--health-probe-bind-address=" + free(t), "--metrics-bind-address=" + free(t)}, args...))
	c.must(err)
	for _, p := range []*int{&c.options.WebhookPort, &c.options.QuotaPort} {
		*p, err = port.Free()
		c.must(err)
	}
	cfg := rest.CopyConfig(server.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + installed + ":headgate-operator"}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { c.refused.RoundTripper = rt; return c.refused })
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- setup.Run(ctx, cfg, c.options) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		slices.Sort(c.refused.list)
		for _, r := range slices.Compact(c.refused.list) {
			t.Errorf("the operator has no right to %s", r)
		}
	})
	return c
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	p, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", p)
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) wait(what string, check func(context.Context) error) {
	c.t.Helper()
	c.must(testbed.Wait(c.t.Context(), time.Minute, what, check))
}

// roots is whom clients trust, as the API server was told.
func (c *cluster) roots() []byte {
	var hook admissionregistrationv1.ValidatingWebhookConfiguration
	c.must(c.Get(c.t.Context(), client.ObjectKey{Name: "headgate-operator"}, &hook))
	return hook.Webhooks[0].ClientConfig.CABundle
}

// web is a client that trusts what the API server trusts now.
func (c *cluster) web() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.roots())
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "headgate-operator." + installed + ".svc"}}}
}

func (c *cluster) ready() {
	c.t.Helper()
	c.wait("the operator to be ready", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.options.HealthAddr+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it says %s", resp.Status)
		}
		return nil
	})
}

// A process can hold one operator: its controllers and metrics have names.
func TestTheOperatorAsItIsInstalled(t *testing.T) {
	c := install(t, "--certificate-validity=9s", "--ca-validity=30s", "--ca-overlap=5s")
	c.ready()
	for name, test := range map[string]func(*cluster){
		"it works with the rights that the chart gives, and asks for no other":                               worksWithItsRights,
		"metrics are for whoever has the right":                                                              metricsAreForWhoeverHasTheRight,
		"certificates and their authority change without a restart, and sidecars that follow always connect": certificatesChange,
	} {
		t.Run(name, func(t *testing.T) {
			c := *c
			c.t = t
			test(&c)
		})
	}
}

func worksWithItsRights(c *cluster) {
	ctx := c.t.Context()
	c.must(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	labels := map[string]string{"app": "checkout"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: "shop"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
	c.must(c.Create(ctx, d))
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "checkout-1", Namespace: "shop",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
	c.must(c.Create(ctx, rs))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "checkout-1-a", Namespace: "shop", Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}}, Spec: *template.Spec.DeepCopy()}
	c.must(c.Create(ctx, pod))
	policy := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: "shop", Annotations: map[string]string{v1alpha1.AnnotationRelease: "checkout-0"}},
		Spec: v1alpha1.RateLimitPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Kind: "Deployment", Name: "checkout"}},
			Limits:     []v1alpha1.Limit{{Name: "all", Rate: v1alpha1.Rate{Requests: 10, Per: "1s"}}},
		}}
	c.must(c.Create(ctx, policy))

	c.wait("the workload to be restarted, and all else to be done", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if d.Spec.Template.Annotations[v1alpha1.AnnotationInjection] == "" {
			return fmt.Errorf("the deployment is as it was")
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		if len(policy.Status.Conditions) == 0 || policy.Annotations[v1alpha1.AnnotationRelease] != "" {
			return fmt.Errorf("the policy says %v", policy.Status.Conditions)
		}
		var ca corev1.ConfigMap
		if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "headgate-ca"}, &ca); err != nil {
			return err
		}
		var hook admissionregistrationv1.MutatingWebhookConfiguration
		if err := c.Get(ctx, client.ObjectKey{Name: "headgate-operator"}, &hook); err != nil {
			return err
		}
		if h := hook.Webhooks[0]; len(h.Rules) != 1 || string(h.ClientConfig.CABundle) != ca.Data["ca.crt"] {
			return fmt.Errorf("the webhook is %+v", h)
		}
		return nil
	})
}

func metricsAreForWhoeverHasTheRight(c *cluster) {
	t := c.t
	c.must(c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: "default"}}))
	c.must(c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: "default"}}))
	c.must(c.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "headgate-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "prometheus"}}}))
	token := func(name string) string {
		request := &authenticationv1.TokenRequest{}
		c.must(c.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}, request))
		return request.Status.Token
	}
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"nobody":                       {"", http.StatusUnauthorized},
		"a forged token":               {"forged", http.StatusInternalServerError}, // as controller-runtime says it
		"somebody without the right":   {token("stranger"), http.StatusForbidden},
		"somebody with the right only": {token("prometheus"), http.StatusOK},
	} {
		c.wait(name, func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.options.MetricsAddress+"/metrics", nil)
			if err != nil {
				return err
			}
			if tc.token != "" {
				req.Header.Set("Authorization", "Bearer "+tc.token)
			}
			resp, err := c.web().Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != tc.want {
				return fmt.Errorf("%s, want %d", resp.Status, tc.want)
			}
			return nil
		})
	}
}

// certificatesChange follows the operator as a sidecar does: it reads the authorities that its namespace has, then connects.
func certificatesChange(c *cluster) {
	ctx := c.t.Context()
	c.must(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "follower"}}))
	c.must(c.Create(ctx, &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: "follower"},
		Spec: v1alpha1.RateLimitPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Kind: "Deployment", Name: "app"}},
			Limits:     []v1alpha1.Limit{{Name: "all", Rate: v1alpha1.Rate{Requests: 10, Per: "1s"}}},
		}}))
	var ca corev1.ConfigMap
	c.wait("the authorities", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: "follower", Name: "headgate-ca"}, &ca)
	})
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(c.options.QuotaPort))
	certificates, authorities := map[string]bool{}, map[string]bool{}
	c.wait("two authorities, and certificates of both", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(&ca), &ca); err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(ca.Data["ca.crt"]))
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: quotav1.ServerName, NextProtos: []string{"h2"}}}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("%w: a sidecar cannot connect: %w", testbed.ErrStop, err)
		}
		defer func() { _ = conn.Close() }()
		chain := conn.(*tls.Conn).ConnectionState().VerifiedChains[0]
		certificates[chain[0].SerialNumber.String()] = true
		authorities[chain[len(chain)-1].SerialNumber.String()] = true
		if len(certificates) < 4 || len(authorities) < 2 {
			return fmt.Errorf("%d certificates of %d authorities were served", len(certificates), len(authorities))
		}
		return nil
	})
}
