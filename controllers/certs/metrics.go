// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"

	"github.com/prometheus/client_golang/prometheus"
)

var expiryDesc = prometheus.NewDesc("headgate_certificate_expiry_timestamp_seconds",
	"When the certificate that this replica serves with, or the newest CA that it hands out, expires, in seconds since 1970.", []string{"certificate"}, nil)

// Expiry shows when the certificates end that a Keeper, or whoever holds them, hands out.
type Expiry struct {
	Serving func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	CA      func() []byte // PEM
}

// Describe implements prometheus.Collector.
func (e Expiry) Describe(ch chan<- *prometheus.Desc) { ch <- expiryDesc }

// Collect implements prometheus.Collector. Of several CAs, as while they are exchanged, the last to expire counts: the others are
// on their way out.
func (e Expiry) Collect(ch chan<- prometheus.Metric) {
	if c, err := e.Serving(nil); err == nil && c.Leaf != nil {
		ch <- expiry("serving", c.Leaf)
	}
	var last *x509.Certificate
	for rest := e.CA(); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && (last == nil || c.NotAfter.After(last.NotAfter)) {
			last = c
		}
	}
	if last != nil {
		ch <- expiry("ca", last)
	}
}

func expiry(name string, c *x509.Certificate) prometheus.Metric {
	return prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(c.NotAfter.Unix()), name)
}
