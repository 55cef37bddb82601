// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs decides which certificate the operator serves: cert-controller's rotator makes and renews it in a Secret,
// and the Keeper takes it from there into memory, in every replica, without a restart.
package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Keys of the Secret, as cert-controller writes them.
const (
	keyCert = "tls.crt"
	keyKey  = "tls.key"
	keyCA   = "ca.crt"
)

// Options say where the certificate lives and who uses it.
type Options struct {
	Secret  types.NamespacedName
	Service string // of the operator, in the Secret's namespace
	Webhook string // MutatingWebhookConfiguration and ValidatingWebhookConfiguration whose caBundle the rotator keeps
	Dir     string // the rotator waits for the files here; the Keeper writes them
	// Changed is called when a certificate has been taken into memory.
	Changed func(context.Context) error
}

// Keeper holds the certificate in force.
type Keeper struct {
	opts   Options
	reader client.Reader
	cert   atomic.Pointer[tls.Certificate]
	ca     atomic.Pointer[[]byte]
}

// errNoCertificate is what a client's handshake fails with before the first certificate exists.
var errNoCertificate = errors.New("no certificate yet: the rotator is making the first one")

// Setup adds the rotator and the Keeper to the manager. The channel is closed when the webhook's CA is in place.
func Setup(mgr ctrl.Manager, opts Options) (*Keeper, <-chan struct{}, error) {
	k := &Keeper{opts: opts, reader: mgr.GetCache()}
	ready := make(chan struct{})
	err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      opts.Secret,
		CertDir:        opts.Dir,
		CAName:         "headgate-ca",
		CAOrganization: "headgate",
		DNSName:        opts.Service + "." + opts.Secret.Namespace + ".svc",
		ExtraDNSNames:  []string{quotav1.ServerName},
		IsReady:        ready,
		Webhooks:       []rotator.WebhookInfo{{Type: rotator.Mutating, Name: opts.Webhook}, {Type: rotator.Validating, Name: opts.Webhook}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("certificate rotator: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("certificate").For(&corev1.Secret{}).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).Complete(k)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate keeper: %w", err)
	}
	return k, ready, nil
}

// Reconcile takes a changed Secret into memory.
func (k *Keeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.NamespacedName != k.opts.Secret {
		return reconcile.Result{}, nil
	}
	var s corev1.Secret
	if err := k.reader.Get(ctx, req.NamespacedName, &s); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if len(s.Data[keyCert]) == 0 || len(s.Data[keyCA]) == 0 {
		return reconcile.Result{}, nil // the rotator has not been here
	}
	pair, err := tls.X509KeyPair(s.Data[keyCert], s.Data[keyKey])
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("certificate in secret %s: %w", k.opts.Secret, err))
	}
	for _, name := range []string{keyCA, keyKey, keyCert} {
		if err := os.WriteFile(filepath.Join(k.opts.Dir, name), s.Data[name], 0o600); err != nil {
			return reconcile.Result{}, fmt.Errorf("certificate file: %w", err)
		}
	}
	ca := s.Data[keyCA]
	k.cert.Store(&pair)
	k.ca.Store(&ca)
	return reconcile.Result{}, k.opts.Changed(ctx)
}

// GetCertificate serves TLS handshakes.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.cert.Load(); c != nil {
		return c, nil
	}
	return nil, errNoCertificate
}

// CA returns the certificate authority, PEM, or nil before there is one.
func (k *Keeper) CA() []byte {
	if ca := k.ca.Load(); ca != nil {
		return *ca
	}
	return nil
}
