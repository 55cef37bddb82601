// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/certs"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/setup"
	"github.com/headgate/headgate/controllers/target"
)

// cluster has one policy.
type cluster struct{}

func (cluster) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (cluster) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.RateLimitPolicyList).Items = []v1alpha1.RateLimitPolicy{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"},
		Status:     v1alpha1.RateLimitPolicyStatus{Conditions: []metav1.Condition{{Type: string(v1alpha1.ConditionAccepted)}}},
	}}
	return nil
}

// Operator is what a leading operator answers to a scrape: what Headgate counts, or with foreign what its libraries do, as far as
// they count anything before they are used.
func Operator(foreign bool) (string, error) {
	registry := prometheus.NewPedanticRegistry()
	collectors, err := operator()
	if err != nil {
		return "", err
	}
	registry.MustRegister(collectors...)
	gatherer := prometheus.Gatherers{registry}
	if foreign {
		gatherer = append(gatherer, metrics.Registry)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, quotav1.PathMetrics, nil))
	if w.Code != http.StatusOK {
		return "", fmt.Errorf("scrape of the operator: status %d: %s", w.Code, w.Body)
	}
	return w.Body.String(), nil
}

// operator is a leader with a policy, long enough in office to say what is offered.
func operator() ([]prometheus.Collector, error) {
	now := int64(time.Hour)
	home := quota.NewHome(quota.Options{
		Now: func() int64 { return now }, LeaseUntil: func() int64 { return now + 1 }, Changed: func(types.NamespacedName) {},
	})
	limit := func(name string) *quotav1.Limit {
		return &quotav1.Limit{Id: name, Name: name, Burst: 1, Rate: &quotav1.Rate{Requests: 1, PeriodNanoseconds: uint64(time.Second)}}
	}
	lent := limit("lent")
	lent.Strategy = quotav1.Strategy_ADAPTIVE
	flight := limit("flight")
	flight.Algorithm = quotav1.Algorithm_CONCURRENCY
	home.Publish(&quotav1.Policy{Uid: "uid", Namespace: "shop", Name: "checkout", Generation: 1, Limits: []*quotav1.Limit{limit("all"), lent, flight}},
		[]target.Workload{{Kind: "Deployment", Namespace: "shop", Name: "checkout"}}, true)
	home.Lead(1, quota.Handover{})
	now += int64(time.Minute)

	cert, ca, err := certificate()
	if err != nil {
		return nil, err
	}
	expiry := certs.Expiry{
		Serving: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil },
		CA:      func() []byte { return ca },
	}
	return setup.Collectors(home, expiry, cluster{}), nil
}

// certificate is one that signs itself, and itself as PEM.
func certificate() (*tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return &tls.Certificate{Leaf: leaf}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
