// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// identity is one certificate of the cluster. Kubernetes reads the user from the
// common name and the groups from the organizations.
type identity struct {
	name   string // of the files
	ca     string
	user   string
	groups []string
	hosts  []string // names and addresses, for servers
}

func identities() []identity {
	ids := []identity{
		{name: "kube-apiserver", ca: "ca", user: "kube-apiserver", hosts: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			"127.0.0.1", machineIP, apiIP}},
		{name: "apiserver-kubelet-client", ca: "ca", user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		{name: "front-proxy-client", ca: "front-proxy-ca", user: "front-proxy-client"},
		{name: "admin", ca: "ca", user: "admin", groups: []string{"system:masters"}},
		{name: "kube-controller-manager", ca: "ca", user: "system:kube-controller-manager", hosts: []string{"localhost", "127.0.0.1"}},
		{name: "kube-scheduler", ca: "ca", user: "system:kube-scheduler", hosts: []string{"localhost", "127.0.0.1"}},
		{name: "kube-proxy", ca: "ca", user: "system:kube-proxy"},
		{name: "metrics-server", ca: "ca", user: "system:metrics-server", hosts: []string{
			"metrics-server.kube-system.svc", "localhost", "127.0.0.1", machineIP}},
	}
	for _, n := range nodes {
		ids = append(ids, identity{name: "kubelet-" + n.Name(), ca: "ca", user: "system:node:" + n.Name(),
			groups: []string{"system:nodes"}, hosts: []string{n.Name(), n.IP()}})
	}
	return ids
}

// kubeconfigs are the clients that get one, with the address that they use.
func kubeconfigs() map[string]string {
	local := fmt.Sprintf("https://127.0.0.1:%d", apiPort)
	bridge := fmt.Sprintf("https://%s:%d", machineIP, apiPort)
	servers := map[string]string{
		"admin": local, "kube-controller-manager": local, "kube-scheduler": local, "metrics-server": local,
		"kube-proxy": bridge,
	}
	for _, n := range nodes {
		servers["kubelet-"+n.Name()] = bridge
	}
	return servers
}

// createPKI makes all keys, certificates and kubeconfigs of a new cluster. The
// admin's kubeconfig is written last: it says that the rest is complete.
func createPKI(s settings) error {
	if _, err := os.Stat(s.adminKubeconfig()); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.pki(""), 0o700); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	authorities := map[string]*authority{}
	for _, name := range []string{"ca", "front-proxy-ca"} {
		a, err := newAuthority(s, name)
		if err != nil {
			return fmt.Errorf("certificate authority %s: %w", name, err)
		}
		authorities[name] = a
	}
	for _, id := range identities() {
		if err := authorities[id.ca].issue(s, id); err != nil {
			return fmt.Errorf("certificate %s: %w", id.name, err)
		}
	}
	if err := createTokenKey(s); err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	for name, server := range kubeconfigs() {
		if err := writeKubeconfig(s, name, server, s.pki(name+".kubeconfig")); err != nil {
			return err
		}
	}
	return writeKubeconfig(s, "admin", kubeconfigs()["admin"], s.adminKubeconfig())
}

// validity is longer than any cluster lives: it gets new certificates at every
// first `up`.
const validity = 365 * 24 * time.Hour

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(s settings, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(name)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert, key}, writePair(s, name, der, key)
}

func (a *authority) issue(s settings, id identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := newTemplate(id.user, id.groups...)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range id.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return writePair(s, id.name, der, key)
}

func newTemplate(user string, groups ...string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: user, Organization: groups},
		NotBefore:             time.Now().Add(-time.Hour), // clocks may be set back a little
		NotAfter:              time.Now().Add(validity),
		BasicConstraintsValid: true,
	}, nil
}

func writePair(s settings, name string, der []byte, key *ecdsa.PrivateKey) error {
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := writeFile(s.pki(name+".crt"), cert, 0o644); err != nil {
		return err
	}
	return writeKey(s.pki(name+".key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// createTokenKey makes the pair that signs and checks service account tokens.
func createTokenKey(s settings) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(s.pki("service-account.key"), key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writeFile(s.pki("service-account.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}
