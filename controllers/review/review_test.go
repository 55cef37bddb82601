// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/review"
	"github.com/headgate/headgate/controllers/setup"
	"github.com/headgate/headgate/test/apiserver"
)

// collected are the warnings that kubectl would print.
type collected struct{ lines []string }

func (c *collected) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	c.lines = append(c.lines, text)
}

func TestABadPolicyIsRefusedWhenItIsAppliedAndTheStoredOneStays(t *testing.T) {
	hooks := envtest.WebhookInstallOptions{Paths: []string{"../../config/webhook"}, LocalServingHost: "127.0.0.1"}
	cfg := apiserver.StartWith(t, &hooks, "../../config/crd/bases")
	c, warned := serve(t, cfg, &hooks)

	p := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	p.Spec.TargetRefs = []v1alpha1.TargetRef{{Kind: "Deployment", Name: "a"}}
	p.Spec.Limits = []v1alpha1.Limit{{Name: "all", Rate: v1alpha1.Rate{Requests: 1, Per: "1s"}, When: "request.method = 'GET'"}}
	err := c.Create(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "spec.limits[0].when") || !strings.Contains(err.Error(), "write for example request.headers") {
		t.Fatalf("an expression that does not compile was answered %v", err)
	}
	p.Spec.Limits[0].When = "request.method == 'GET'"
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Limits[0].Cost = &v1alpha1.Cost{Tokens: new(int64(5))}
	if err := c.Update(t.Context(), p); err == nil || !strings.Contains(err.Error(), "5 is more than burst 1") {
		t.Errorf("a cost that can never be granted was answered %v", err)
	}
	stored := &v1alpha1.RateLimitPolicy{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), stored); err != nil || stored.Spec.Limits[0].Cost != nil {
		t.Errorf("stored is %v, %v", stored.Spec, err)
	}
	warned.lines = nil
	stored.Spec.Limits[0].Key = []v1alpha1.KeyPart{{ClaimOfVerifiedJWT: v1alpha1.JWTClaim{Claim: "sub"}}}
	if err := c.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(warned.lines, "\n"); !strings.Contains(got, "signature is not checked") || !strings.Contains(got, "without the key is not limited") {
		t.Errorf("kubectl would print %q", got)
	}
}

// serve runs the webhook, and returns a client that waits until it answers.
func serve(t *testing.T, cfg *rest.Config, hooks *envtest.WebhookInstallOptions) (client.Client, *collected) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, manager.Options{Scheme: setup.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir})})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&review.Webhook{}).SetupWithManager(mgr); err != nil {
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
	for give := time.Now().Add(30 * time.Second); mgr.GetWebhookServer().StartedChecker()(nil) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatal("the webhook does not start")
		}
	}
	warned := &collected{}
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandlerWithContext = warned
	c, err := client.New(cfg, client.Options{Scheme: setup.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c, warned
}
