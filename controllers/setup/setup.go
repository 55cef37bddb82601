// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/certs"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/leader"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/ratelimitpolicy"
	"github.com/headgate/headgate/controllers/review"
)

// WebhookName is the name of the one webhook in the configuration.
const WebhookName = "inject.ratelimit.headgate.dev"

// The names in these rules are those of a release named headgate; the chart writes its own. rights_test.go has the reason of each.
// +kubebuilder:rbac:groups="",namespace=headgate-system,resources=secrets,resourceNames=headgate-operator-cert,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=headgate-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=headgate-system,resources=leases,resourceNames=headgate-operator,verbs=get;update

// Run runs the operator until the context ends or leadership is lost.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	log := logger(os.Stderr, o.Debug)
	slog.SetDefault(slog.New(logr.ToSlogHandler(log))) // net/http writes to the standard logger
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	cfg.QPS, cfg.Burst = 50, 100
	lock, err := leader.NewLock(cfg, o.Namespace, o.Lease, o.PodName, quota.Boottime)
	if err != nil {
		return err
	}
	var keeper *certs.Keeper
	getCertificate := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return keeper.GetCertificate(hello) }
	mgr, err := ctrl.NewManager(cfg, managerOptions(o, lock, getCertificate))
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	bell := &ratelimitpolicy.Bell{}
	keeper, err = certs.Setup(mgr, certs.Options{
		Changed: func(ctx context.Context) error { return ringAll(ctx, mgr.GetClient(), bell) },
		Secret:  types.NamespacedName{Namespace: o.Namespace, Name: o.Secret},
		Service: o.Service, Webhook: o.Webhook,
		Terms: o.Terms, External: o.Certificates == External, Now: time.Now,
	})
	if err != nil {
		return err
	}
	if err := addControllers(mgr, o, lock, keeper, bell); err != nil {
		return err
	}
	return addChecks(ctx, mgr, keeper)
}

func managerOptions(o Options, lock *leader.Lock, cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) manager.Options {
	server := metricsserver.Options{BindAddress: o.MetricsAddress, SecureServing: o.SecureMetrics}
	if o.SecureMetrics {
		server.FilterProvider = filters.WithAuthenticationAndAuthorization
		server.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = cert }}
	}
	if o.Pprof {
		server.ExtraHandlers = profiles()
	}
	return manager.Options{
		Scheme:                              Scheme(),
		Metrics:                             server,
		HealthProbeBindAddress:              o.HealthAddr,
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       new(leader.LeaseDuration),
		RenewDeadline:                       new(leader.RenewDeadline),
		RetryPeriod:                         new(leader.RetryPeriod),
		WebhookServer: webhook.NewServer(webhook.Options{Port: o.WebhookPort, TLSOpts: []func(*tls.Config){
			func(c *tls.Config) { c.GetCertificate, c.MinVersion = cert, tls.VersionTLS13 },
		}}),
		Cache: cacheOptions(o),
	}
}

// Scheme knows the types that the operator reads and writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // types that are compiled in cannot clash
		}
	}
	return s
}

// ringAll asks for every policy: the namespaces of all of them hold the CA.
func ringAll(ctx context.Context, c client.Reader, bell *ratelimitpolicy.Bell) error {
	var policies v1alpha1.RateLimitPolicyList
	if err := c.List(ctx, &policies); err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	for i := range policies.Items {
		bell.Ring(client.ObjectKeyFromObject(&policies.Items[i]))
	}
	return nil
}

func addControllers(mgr ctrl.Manager, o Options, lock *leader.Lock, keeper *certs.Keeper, bell *ratelimitpolicy.Bell) error {
	home := quota.NewHome(quota.Options{Now: quota.Boottime, LeaseUntil: lock.Until, Changed: bell.Ring})
	observer := &quota.Observer{Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Home: home}
	epochs := &leader.Epochs{
		Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(),
		Lease:   types.NamespacedName{Namespace: o.Namespace, Name: o.Lease},
		Address: net.JoinHostPort(o.PodIP, strconv.Itoa(o.QuotaPort)),
	}
	server := &quota.Server{
		Home: home, Auth: quota.NewReviewer(mgr.GetClient()), Elector: &elector{epochs: epochs, home: home},
		Log: ctrl.Log.WithName("quota"),
	}
	metrics.Registry.MustRegister(Collectors(home, certs.Expiry{Serving: keeper.GetCertificate, CA: keeper.CA}, mgr.GetCache())...)
	hook := &injector.Webhook{
		Config: o.sidecar(), Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("headgate-injector"),
	}
	if err := hook.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if err := (&review.Webhook{}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("review of policies: %w", err)
	}
	namespaces, err := o.namespaces()
	if err != nil {
		return fmt.Errorf("namespace selector: %w", err)
	}
	policies := &ratelimitpolicy.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Mint: home, Recorder: mgr.GetEventRecorder("headgate-operator"),
		CA: keeper.CA, Bell: bell, Sidecar: o.sidecar(),
		Settings: ratelimitpolicy.Settings{
			Namespace: o.Namespace, Webhook: o.Webhook, WebhookName: WebhookName, CAConfigMap: o.CAConfigMap,
			Namespaces: namespaces, NoRollouts: !o.Rollouts, RestartOwner: o.RestartOwner, Patience: o.RolloutPatience,
		},
	}
	if err := policies.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("policy controller: %w", err)
	}
	for _, r := range []manager.Runnable{
		observer,
		&quotaService{server: server, port: o.QuotaPort, cert: keeper.GetCertificate},
		&lead{home: home, observer: observer, epochs: epochs, live: mgr.GetAPIReader(), log: ctrl.Log.WithName("leader")},
	} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("runnable: %w", err)
		}
	}
	return nil
}

// quotaService serves streams in every replica: one that does not lead says who does.
type quotaService struct {
	server *quota.Server
	port   int
	cert   func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*quotaService) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (q *quotaService) Start(ctx context.Context) error {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(q.port)))
	if err != nil {
		return fmt.Errorf("quota service: %w", err)
	}
	return q.server.Serve(ctx, l, q.cert)
}

func addChecks(ctx context.Context, mgr ctrl.Manager, keeper *certs.Keeper) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("certificate", keeper.Ready); err != nil {
		return fmt.Errorf("readiness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("readiness check: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return nil
}
