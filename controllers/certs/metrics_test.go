// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// certificate is one that expires at a time, as PEM.
func certificate(t *testing.T, expires int64) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(expires), NotAfter: time.Unix(expires, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func TestExpiryIsSeenBeforeItHappens(t *testing.T) {
	var pair *tls.Certificate
	var bundle []byte
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Expiry{
		Serving: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if pair == nil {
				return nil, errors.New("none yet")
			}
			return pair, nil
		},
		CA: func() []byte { return bundle },
	})
	if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
		t.Errorf("before the first certificate: %d metrics, %v; an alert would fire at every start", n, err)
	}
	serving, key := certificate(t, 2_000_000_000)
	loaded, err := tls.X509KeyPair(serving, key)
	if err != nil {
		t.Fatal(err)
	}
	newer, _ := certificate(t, 4_000_000_000)
	older, _ := certificate(t, 3_000_000_000)
	pair, bundle = &loaded, slices.Concat(newer, older)
	want := `# HELP headgate_certificate_expiry_timestamp_seconds When the certificate that this replica serves with, or the newest CA that it hands out, expires, in seconds since 1970.
# TYPE headgate_certificate_expiry_timestamp_seconds gauge
headgate_certificate_expiry_timestamp_seconds{certificate="ca"} 4e+09
headgate_certificate_expiry_timestamp_seconds{certificate="serving"} 2e+09
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
