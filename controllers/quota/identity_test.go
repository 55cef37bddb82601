// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/test/apiserver"
)

// A pod is who its token says, as a real API server reads it; whatever else somebody presents opens nothing.
func TestOnlyATokenOfOurAudienceThatIsBoundToALivingPodIsBelieved(t *testing.T) {
	server := apiserver.Run(t, &envtest.WebhookInstallOptions{})
	clients, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Each review is asked anew: what a cache remembers is not the question here.
	review := func(token string) (quota.Identity, error) { return quota.NewReviewer(c).Review(t.Context(), token) }
	pod := func(namespace string) *corev1.Pod {
		must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
		must(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: namespace}}))
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "checkout-1", Namespace: namespace},
			Spec: corev1.PodSpec{ServiceAccountName: "app", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
		must(t, c.Create(t.Context(), p))
		return p
	}
	token := func(p *corev1.Pod, audience string, bound bool) string {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
		if bound {
			request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID}
		}
		out, err := clients.CoreV1().ServiceAccounts(p.Namespace).CreateToken(t.Context(), "app", request, metav1.CreateOptions{})
		must(t, err)
		return out.Status.Token
	}
	shop, bank := pod("shop"), pod("bank")
	good := token(shop, quotav1.TokenAudience, true)

	id, err := review(good)
	if err != nil || id.Namespace != "shop" || id.Pod != shop.Name || id.UID != shop.UID {
		t.Fatalf("a pod's own token is read as %+v, %v", id, err)
	}
	if other, err := review(token(bank, quotav1.TokenAudience, true)); err != nil || other.Namespace != "bank" || other.UID != bank.UID {
		t.Errorf("a pod of the same name in another namespace is read as %+v, %v", other, err)
	}
	if id, err := review(resigned(t, server.Folder, good, func(map[string]any) {})); err != nil || id.UID != shop.UID {
		t.Fatalf("the test cannot sign as the API server does: %+v, %v", id, err)
	}
	gone := token(bank, quotav1.TokenAudience, true)
	must(t, c.Delete(t.Context(), bank, client.GracePeriodSeconds(0)))
	for name, forged := range map[string]string{
		"of another audience":           token(shop, "https://kubernetes.default.svc", true),
		"that is bound to no pod":       token(shop, quotav1.TokenAudience, false),
		"of a pod that is gone":         gone,
		"that has expired":              resigned(t, server.Folder, good, func(claims map[string]any) { claims["exp"] = time.Now().Add(-time.Minute).Unix() }),
		"that somebody else has signed": resigned(t, "", good, func(map[string]any) {}),
		"whose claims were changed":     changed(t, good),
		"that claims another namespace": resigned(t, "", good, func(claims map[string]any) { claims["sub"] = "system:serviceaccount:bank:app" }),
		"that is none":                  "not-a-token",
		"that is larger than any":       strings.Repeat("a", 17<<10),
		"that is empty":                 "",
	} {
		if id, err := review(forged); !errors.Is(err, quota.ErrUnauthenticated) || id != (quota.Identity{}) {
			t.Errorf("a token %s is read as %+v, %v", name, id, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parts are those of a token: header, claims, signature.
func parts(t *testing.T, token string) ([]string, map[string]any) {
	t.Helper()
	words := strings.Split(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(words[1])
	must(t, err)
	claims := map[string]any{}
	must(t, json.Unmarshal(raw, &claims))
	return words, claims
}

// resigned changes a token's claims and signs it with the API server's key, or with one of our own.
func resigned(t *testing.T, folder, token string, change func(map[string]any)) string {
	t.Helper()
	words, claims := parts(t, token)
	change(claims)
	raw, err := json.Marshal(claims)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	if folder != "" {
		written, err := os.ReadFile(filepath.Join(folder, "sa-signer.key"))
		must(t, err)
		block, _ := pem.Decode(written)
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		must(t, err)
		key = parsed.(*ecdsa.PrivateKey)
	}
	signing := words[0] + "." + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(signing))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	must(t, err)
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...) // ES256, RFC 7518, 3.4
	return signing + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// changed keeps the signature of other claims.
func changed(t *testing.T, token string) string {
	words, claims := parts(t, token)
	claims["sub"] = "system:serviceaccount:bank:app"
	raw, err := json.Marshal(claims)
	must(t, err)
	return words[0] + "." + base64.RawURLEncoding.EncodeToString(raw) + "." + words[2]
}
