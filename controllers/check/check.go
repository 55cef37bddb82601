// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check asks a running operator what the API server, a sidecar and a stranger would ask it, and decides whether it is
// well. It needs no right in the cluster; `helm test` runs it.
package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// asker asks one operator.
type asker struct {
	host                    string
	webhook, quota, metrics string // ports
	roots                   *x509.CertPool
}

// Run asks every question and writes what is well; the error names all that is not.
func Run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("headgate-operator check", flag.ContinueOnError)
	a := &asker{roots: x509.NewCertPool()}
	fs.StringVar(&a.host, "host", "headgate-operator.headgate-system.svc", "Host of the operator's Service.")
	caFile := fs.String("ca-file", "/certificate/ca.crt", "File with the authorities that the operator's clients trust.")
	fs.StringVar(&a.webhook, "webhook-port", "443", "Port of the webhooks.")
	fs.StringVar(&a.quota, "quota-port", "9444", "Port of the quota service.")
	fs.StringVar(&a.metrics, "metrics-port", "8443", "Port of the metrics.")
	timeout := fs.Duration("timeout", 20*time.Second, "How long all questions may take.")
	if err := fs.Parse(args); err != nil {
		return err
	}
	pem, err := os.ReadFile(*caFile)
	if err != nil {
		return fmt.Errorf("authorities: %w", err)
	}
	if !a.roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("authorities: no certificate in %s", *caFile)
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	var errs []error
	for _, q := range []struct {
		about string
		ask   func(context.Context) error
	}{
		{"the webhook answers the API server, over a certificate that it trusts", a.askWebhook},
		{"the quota service shows sidecars a certificate that they trust", a.askQuota},
		{"the metrics are refused to strangers", a.askMetrics},
	} {
		if err := q.ask(ctx); err != nil {
			errs = append(errs, fmt.Errorf("not so: %s: %w", q.about, err))
			continue
		}
		fmt.Fprintln(out, "ok:", q.about)
	}
	return errors.Join(errs...)
}

func (a *asker) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.roots, MinVersion: tls.VersionTLS12}}}
}

// askWebhook asks about a pod of a namespace that has no policy: it must be let in as it is.
func (a *asker) askWebhook(ctx context.Context) error {
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "headgate-check", Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
			Namespace: "headgate-check", Operation: admissionv1.Create, DryRun: new(true),
			Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"check-"},"spec":{"containers":[{"name":"app","image":"app"}]}}`)},
		},
	})
	if err != nil {
		return fmt.Errorf("review: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+net.JoinHostPort(a.host, a.webhook)+"/mutate--v1-pod", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&review); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if r := review.Response; r == nil || !r.Allowed || len(r.Patch) > 0 {
		return fmt.Errorf("it does not leave a pod alone that no policy covers: %+v", r)
	}
	return nil
}

func (a *asker) askQuota(ctx context.Context) error {
	d := tls.Dialer{Config: &tls.Config{RootCAs: a.roots, ServerName: quotav1.ServerName, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.host, a.quota))
	if err != nil {
		return err
	}
	return conn.Close()
}

func (a *asker) askMetrics(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(a.host, a.metrics)+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := a.client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}
