//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/test/testbed"
)

// Which packets a filter sees.
var (
	incoming = nftables.ChainHookInput
	outgoing = nftables.ChainHookOutput
)

// drop lets a packet filter in a pod's network drop what goes to a port. It returns how to undo that.
func (s *space) drop(pod *corev1.Pod, container string, hook *nftables.ChainHook, port uint16) (undo func()) {
	s.Helper()
	pid, err := s.containerProcess(pod, container)
	s.must(err, "container "+container)
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	s.must(err, "network of the pod")
	conn, err := nftables.New(nftables.WithNetNSFd(int(network.Fd())))
	s.must(err, "packet filter")
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "e2e"})
	chain := conn.AddChain(&nftables.Chain{Name: "drop", Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityFilter})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	s.must(conn.Flush(), "packet filter")
	done := false
	undo = func() {
		if done {
			return
		}
		done = true
		defer network.Close()
		conn.DelTable(table)
		if err := conn.Flush(); err != nil {
			s.Errorf("packet filter: %v", err)
		}
	}
	s.Cleanup(undo)
	return undo
}

// expire keeps the operator from renewing its certificate, and gives it one that is about to expire.
func (s *space) expire() (undo func()) {
	s.Helper()
	role := &rbacv1.Role{}
	s.must(suite.Get(s.ctx, client.ObjectKey{Namespace: testbed.Namespace, Name: testbed.Operator}, role), "role")
	secret := &corev1.Secret{}
	s.must(suite.Get(s.ctx, client.ObjectKey{Namespace: testbed.Namespace, Name: testbed.Operator + "-cert"}, secret), "certificate")
	rights, data := role.DeepCopy(), maps.Clone(secret.Data)
	done := false
	undo = func() {
		if done {
			return
		}
		done = true
		s.set(secret, func() { secret.Data = data })
		s.set(role, func() { role.Rules = rights.Rules })
	}
	s.Cleanup(undo)
	s.set(role, func() {
		for i := range role.Rules {
			if slices.Contains(role.Rules[i].Resources, "secrets") {
				role.Rules[i].Verbs = []string{"get", "list", "watch"}
			}
		}
	})
	waitFor(s, soon, "the right to renew to be gone", func(ctx context.Context) error {
		may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + testbed.Namespace + ":" + testbed.Operator,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: testbed.Namespace, Verb: "update", Resource: "secrets", Name: secret.Name},
		}}
		if err := suite.Create(ctx, may); err != nil {
			return err
		}
		if may.Status.Allowed {
			return errors.New("it is still there")
		}
		return nil
	})
	s.set(secret, func() {
		secret.Data = maps.Clone(data)
		secret.Data["tls.crt"], secret.Data["tls.key"] = s.brief(data)
	})
	return undo
}

// set changes an object as it is now.
func (s *space) set(o client.Object, change func()) {
	s.Helper()
	err := testbed.Wait(s.ctx, soon, "the edit", func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		return suite.Update(ctx, o)
	})
	if err != nil {
		s.Errorf("%s: %v", o.GetName(), err)
	}
}

// brief is the operator's certificate, of the same authority, that lasts for a moment only.
func (s *space) brief(data map[string][]byte) (cert, key []byte) {
	s.Helper()
	authority, err := tls.X509KeyPair(data["ca.crt"], data["ca.key"])
	s.must(err, "authority")
	old, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	s.must(err, "certificate")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err, "key")
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: old.Leaf.Subject, DNSNames: old.Leaf.DNSNames,
		NotBefore: time.Now().Add(-time.Second), NotAfter: time.Now().Add(20 * time.Second),
		KeyUsage: old.Leaf.KeyUsage, ExtKeyUsage: old.Leaf.ExtKeyUsage,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, &private.PublicKey, authority.PrivateKey)
	s.must(err, "certificate")
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	s.must(err, "key")
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}
