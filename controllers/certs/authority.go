// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// pair is a certificate with its key, as kept in the Secret.
type pair struct {
	certPEM, keyPEM []byte
	cert            *x509.Certificate
	key             crypto.Signer
}

// parse reads a pair; nil when it is not there or makes no sense, which is the same: another one is needed.
func parse(certPEM, keyPEM []byte) *pair {
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil
	}
	key, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return nil
	}
	return &pair{encode(both.Leaf), keyPEM, both.Leaf, key}
}

// newAuthority makes an authority that signs itself.
func newAuthority(now time.Time, validity time.Duration) (*pair, error) {
	begin, end := lifetime(now, validity)
	return issue(nil, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "headgate-ca", Organization: []string{"headgate"}},
		NotBefore:             begin,
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	})
}

// sign makes a certificate for a server with these names. It does not outlive the authority.
func (ca *pair) sign(now time.Time, validity time.Duration, names []string) (*pair, error) {
	begin, end := lifetime(now, validity)
	if end.After(ca.cert.NotAfter) {
		end = ca.cert.NotAfter
	}
	return issue(ca, &x509.Certificate{
		Subject:               pkix.Name{CommonName: names[0]},
		DNSNames:              names,
		NotBefore:             begin,
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	})
}

// issue signs a certificate by an authority, or by itself.
func issue(by *pair, template *x509.Certificate) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return &pair{encode(cert), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), cert, key}, nil
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// bundle reads the certificates of a PEM text; what is none is skipped.
func bundle(text []byte) (out []*x509.Certificate) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
}
