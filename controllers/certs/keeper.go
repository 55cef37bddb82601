// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs decides which certificate the operator serves and which authorities its clients trust. It observes a Secret
// and the webhook configurations; it keeps the certificate in the Secret, renews it and its authority without a restart, in
// every replica, and writes the authorities where the API server finds them. Where cert-manager does all of that, it takes
// what is there.
package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Options say where the certificate lives and who uses it.
type Options struct {
	Secret  types.NamespacedName
	Service string // of the operator, in the Secret's namespace
	Webhook string // MutatingWebhookConfiguration and ValidatingWebhookConfiguration that shall trust the certificate
	Terms   Terms
	// External says that somebody else, such as cert-manager, fills the Secret and the webhook configurations.
	External bool
	Now      func() time.Time
	// Changed is called when other authorities are to be trusted.
	Changed func(context.Context) error
}

// Keeper holds the certificate in force.
type Keeper struct {
	opts   Options
	client client.Client
	cert   atomic.Pointer[tls.Certificate]
	ca     atomic.Pointer[[]byte]
	ready  atomic.Bool
}

var (
	// errNoCertificate is what a client's handshake fails with before the first certificate exists.
	errNoCertificate = errors.New("no certificate yet")
	errNotTrusted    = errors.New("the webhook configurations do not trust the certificate yet")
)

// behind is how long the cache is given to show what another replica has just written.
const behind = 100 * time.Millisecond

// Setup adds the Keeper to the manager.
func Setup(mgr ctrl.Manager, opts Options) (*Keeper, error) {
	k := &Keeper{opts: opts, client: mgr.GetClient()}
	builder := ctrl.NewControllerManagedBy(mgr).Named("certificate").For(&corev1.Secret{}).
		WithOptions(controller.Options{NeedLeaderElection: new(false)})
	for _, hooks := range k.webhooks() {
		builder.Watches(hooks.object, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: opts.Secret}}
		}))
	}
	if err := builder.Complete(k); err != nil {
		return nil, fmt.Errorf("certificate keeper: %w", err)
	}
	return k, nil
}

// Reconcile renews what is due and takes it into memory. The replicas do the same: of two that write at once, one is refused
// and takes what the other has written.
func (k *Keeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.NamespacedName != k.opts.Secret {
		return reconcile.Result{}, nil
	}
	var s corev1.Secret
	err := k.client.Get(ctx, req.NamespacedName, &s)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil // what is in memory goes on; the chart brings it back
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("secret %s: %w", req.NamespacedName, err)
	}
	again, err := k.renew(ctx, &s)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: behind}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := k.take(ctx, &s); err != nil {
		return reconcile.Result{}, err
	}
	trusted, err := k.trust(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	k.ready.Store(trusted && k.cert.Load() != nil)
	return reconcile.Result{RequeueAfter: again}, nil
}

// renew brings the Secret to what it shall hold now, and returns when that is over.
func (k *Keeper) renew(ctx context.Context, s *corev1.Secret) (again time.Duration, err error) {
	if k.opts.External {
		return 0, nil
	}
	names := []string{k.opts.Service + "." + k.opts.Secret.Namespace + ".svc", quotav1.ServerName}
	p, err := planned(k.opts.Now(), k.opts.Terms, names, s.Data)
	if err != nil || !p.changed {
		return p.again, err
	}
	s.Data = p.data
	if err := k.client.Update(ctx, s); err != nil {
		return 0, fmt.Errorf("secret %s: %w", k.opts.Secret, err)
	}
	ctrl.LoggerFrom(ctx).Info("Renewed certificates", "authorities", len(bundle(p.data[keyCA])), "again", p.again.String())
	return p.again, nil
}

// take takes the Secret into memory.
func (k *Keeper) take(ctx context.Context, s *corev1.Secret) error {
	if len(s.Data[keyCert]) == 0 || len(s.Data[keyCA]) == 0 {
		return nil // nobody has been here
	}
	cert, err := tls.X509KeyPair(s.Data[keyCert], s.Data[keyKey])
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("certificate in secret %s: %w", k.opts.Secret, err))
	}
	k.cert.Store(&cert)
	ca := s.Data[keyCA]
	if bytes.Equal(k.CA(), ca) {
		return nil
	}
	k.ca.Store(&ca)
	return k.opts.Changed(ctx)
}

// GetCertificate serves TLS handshakes.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.cert.Load(); c != nil {
		return c, nil
	}
	return nil, errNoCertificate
}

// CA returns the authorities that clients trust, PEM, or nil before there is one.
func (k *Keeper) CA() []byte {
	if ca := k.ca.Load(); ca != nil {
		return *ca
	}
	return nil
}

// Ready is a readiness check: the API server reaches the webhooks only when it trusts what they serve.
func (k *Keeper) Ready(*http.Request) error {
	switch {
	case k.cert.Load() == nil:
		return fmt.Errorf("%w in secret %s", errNoCertificate, k.opts.Secret)
	case !k.ready.Load():
		return errNotTrusted
	}
	return nil
}
