// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/test/apiserver"
)

// operator is a server as a replica runs it: real TLS, real gRPC, tokens reviewed by a real API server.
type operator struct {
	t       *testing.T
	home    *Home
	address string
	roots   *x509.CertPool
	api     client.Client
	folder  string // of the API server's keys
	elector *fixedElector
}

// fixedElector says who leads, as the test has decided.
type fixedElector struct {
	address string // set before streams are opened
	epoch   uint64
	home    *Home
	raised  atomic.Uint64
}

func (e *fixedElector) Leader(context.Context) (string, uint64, error) {
	return e.address, e.epoch, nil
}

func (e *fixedElector) Raise(_ context.Context, floor uint64) error {
	e.raised.Store(floor + 1)
	e.home.Raise(floor + 1)
	return nil
}

func startOperator(t *testing.T) *operator {
	behind := apiserver.Run(t, &envtest.WebhookInstallOptions{})
	api, err := client.New(behind.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{t: t, api: api, folder: behind.Folder}
	o.home = NewHome(Options{Now: Boottime, LeaseUntil: func() int64 { return Boottime() + int64(time.Hour) }, Changed: func(types.NamespacedName) {}})
	o.elector = &fixedElector{home: o.home}
	server := &Server{Home: o.home, Auth: NewReviewer(api), Elector: o.elector, Log: logr.Discard()}
	cert, roots := certificate(t)
	o.roots = roots
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.address = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	served, ran := make(chan error, 1), make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, l, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil })
	}()
	go func() { ran <- o.home.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, <-ran); err != nil {
			t.Error(err)
		}
	})
	return o
}

func certificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{quotav1.ServerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// pod makes a pod in the API server and tells the home of it.
func (o *operator) pod(name string) *corev1.Pod {
	o.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}, ServiceAccountName: "default"},
	}
	o.ensureAccount()
	if err := o.api.Create(o.t.Context(), p); err != nil {
		o.t.Fatal(err)
	}
	s := state(name)
	s.UID = p.UID
	o.home.ObservePod(s)
	return p
}

func (o *operator) ensureAccount() {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	if err := client.IgnoreAlreadyExists(o.api.Create(o.t.Context(), sa)); err != nil {
		o.t.Fatal(err)
	}
}

// token asks the API server for a token, bound to the pod if there is one.
func (o *operator) token(audience string, p *corev1.Pod) string {
	o.t.Helper()
	o.ensureAccount()
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}
	if audience != "" {
		req.Spec.Audiences = []string{audience}
	}
	if p != nil {
		req.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID}
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	if err := o.api.SubResource("token").Create(o.t.Context(), sa, req); err != nil {
		o.t.Fatal(err)
	}
	return req.Status.Token
}

type clientStream = grpc.BidiStreamingClient[quotav1.SidecarMessage, quotav1.OperatorMessage]

// dial opens a stream with a token.
func (o *operator) dial(token string) clientStream {
	o.t.Helper()
	conn, err := grpc.NewClient(o.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: o.roots, ServerName: quotav1.ServerName})))
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = conn.Close() })
	s, err := quotav1.NewQuotaClient(conn).Connect(metadata.AppendToOutgoingContext(o.t.Context(), "authorization", "Bearer "+token))
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func hello(epoch uint64) *quotav1.SidecarMessage {
	return &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Hello{Hello: &quotav1.Hello{
		Protocol: quotav1.Protocol, Incarnation: "one", StartedAt: timestamppb.Now(), Epoch: epoch,
	}}}
}

// say sends a message and returns what comes first.
func say(t *testing.T, s clientStream, m *quotav1.SidecarMessage) (*quotav1.OperatorMessage, error) {
	t.Helper()
	if err := s.Send(m); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return s.Recv() // after io.EOF this says why the stream has ended
}

func TestStreams(t *testing.T) {
	o := startOperator(t)
	o.home.Publish(&quotav1.Policy{Uid: "uid", Namespace: "shop", Name: "checkout", Generation: 1, Limits: []*quotav1.Limit{limit("all")}}, nil, false)
	run := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			before := o.t
			o.t = t
			defer func() { o.t = before }()
			f(t)
		})
	}
	refused := func(token func() string) func(*testing.T) {
		return func(t *testing.T) {
			if _, err := say(t, o.dial(token()), hello(0)); status.Code(err) != codes.Unauthenticated {
				t.Fatalf("got %v, want Unauthenticated", err)
			}
		}
	}
	run("a replica that does not lead names the leader", func(t *testing.T) {
		o.elector.address, o.elector.epoch = "10.0.0.7:9444", 4
		m, err := say(t, o.dial(o.token(quotav1.TokenAudience, o.pod("early"))), hello(0))
		if r := m.GetRedirect(); err != nil || r.GetLeaderAddress() != "10.0.0.7:9444" || r.GetEpoch() != 4 {
			t.Fatalf("got %v, %v", m, err)
		}
	})
	run("a stream is held while nobody leads, and served when this replica takes over", func(t *testing.T) {
		o.elector.address = ""
		s := o.dial(o.token(quotav1.TokenAudience, o.pod("patient")))
		if err := s.Send(hello(0)); err != nil {
			t.Fatal(err)
		}
		o.home.Lead(5, Handover{})
		m, err := s.Recv()
		if err != nil || m.GetWelcome().GetEpoch() != 5 {
			t.Fatalf("got %v, %v, want Welcome of epoch 5", m, err)
		}
	})
	run("no token is refused", refused(func() string { return "" }))
	run("a token that the API server has not made is refused", refused(func() string { return "eyJhbGciOiJub25lIn0.e30." }))
	run("a pod's ordinary token is refused: whoever steals it must not speak for the pod", refused(func() string { return o.token("", o.pod("ordinary")) }))
	run("a token of another audience is refused", refused(func() string { return o.token("vault", o.pod("vault")) }))
	run("a token that is bound to no pod is refused", refused(func() string { return o.token(quotav1.TokenAudience, nil) }))
	run("the token of a deleted pod is refused", refused(func() string {
		p := o.pod("deleted")
		token := o.token(quotav1.TokenAudience, p)
		if err := o.api.Delete(o.t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
			o.t.Fatal(err)
		}
		return token
	}))
	genuine := func(name string) string { return o.token(quotav1.TokenAudience, o.pod(name)) }
	same := func(map[string]any) {}
	elsewhere := func(claims map[string]any) { claims["sub"] = "system:serviceaccount:bank:default" }
	run("an expired token is refused", refused(func() string {
		return resigned(o.t, o.folder, genuine("expired"), func(claims map[string]any) { claims["exp"] = time.Now().Add(-time.Minute).Unix() })
	}))
	run("a token that somebody else has signed is refused", refused(func() string { return resigned(o.t, "", genuine("forged"), same) }))
	run("a token that claims another namespace is refused", refused(func() string { return resigned(o.t, "", genuine("claimed"), elsewhere) }))
	run("a token whose claims were changed is refused", refused(func() string { return changed(o.t, genuine("changed"), elsewhere) }))
	run("a token that is larger than any is refused", refused(func() string { return strings.Repeat("a", maxTokenBytes+1) }))
	run("a token that is signed as the API server signs is believed, so that the others are refused for what they say", func(t *testing.T) {
		if m, err := say(t, o.dial(resigned(t, o.folder, genuine("resigned"), same)), hello(0)); err != nil || m.GetWelcome() == nil {
			t.Fatalf("got %v, %v, want Welcome", m, err)
		}
	})
	run("a message that is larger than any ends the stream", func(t *testing.T) {
		s := o.dial(genuine("large"))
		large := hello(0)
		large.GetHello().Version = strings.Repeat("v", maxMessageBytes)
		if _, err := say(t, s, large); status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("got %v, want ResourceExhausted", err)
		}
	})
	run("a pod is welcomed, told what to enforce, and heard", func(t *testing.T) {
		p := o.pod("good")
		s := o.dial(o.token(quotav1.TokenAudience, p))
		m, err := say(t, s, hello(0))
		if err != nil || m.GetWelcome().GetEpoch() != 5 {
			t.Fatalf("got %v, %v, want Welcome of epoch 5", m, err)
		}
		m, err = s.Recv()
		if a := m.GetAssignment(); err != nil || a == nil || a.Snapshot == nil || a.Epoch != 5 {
			t.Fatalf("got %v, %v, want an assignment with a snapshot", m, err)
		}
		m, err = say(t, s, &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Usage{Usage: &quotav1.Usage{Nonce: 9}}})
		if err != nil || m.GetHeartbeatAck().GetNonce() != 9 {
			t.Fatalf("got %v, %v, want the heartbeat answered", m, err)
		}
	})
	run("the first message must be a Hello", func(t *testing.T) {
		s := o.dial(o.token(quotav1.TokenAudience, o.pod("mute")))
		if _, err := say(t, s, &quotav1.SidecarMessage{}); status.Code(err) != codes.InvalidArgument {
			t.Fatalf("got %v, want InvalidArgument", err)
		}
	})
	run("a stream that talks too much is ended", func(t *testing.T) {
		s := o.dial(o.token(quotav1.TokenAudience, o.pod("flood")))
		if _, err := say(t, s, hello(0)); err != nil {
			t.Fatal(err)
		}
		for range 10 * messagesPerSecond {
			if s.Send(&quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Usage{Usage: &quotav1.Usage{}}}) != nil {
				break
			}
		}
		for {
			if _, err := s.Recv(); err != nil {
				if status.Code(err) != codes.ResourceExhausted {
					t.Fatalf("got %v, want ResourceExhausted", err)
				}
				return
			}
		}
	})
	run("a pod that has seen a higher epoch makes the leader raise its own", func(t *testing.T) {
		s := o.dial(o.token(quotav1.TokenAudience, o.pod("ahead")))
		if _, err := say(t, s, hello(40)); status.Code(err) != codes.Aborted {
			t.Fatalf("got %v, want Aborted", err)
		}
		if got := o.elector.raised.Load(); got != 41 {
			t.Fatalf("raised to %d, want 41", got)
		}
	})
}
