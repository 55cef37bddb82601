// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Credentials are the files that prove the two ends to each other. They are read anew at each connect: tokens expire, and
// the CA is rotated and may appear after the pod has started.
type Credentials struct {
	TokenFile string
	CAFile    string
}

var errNoCA = errors.New("no certificate in the CA file")

// tls returns the configuration that accepts the operator's certificate and no other.
func (c Credentials) tls() (*tls.Config, error) {
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the operator's CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w %s", errNoCA, c.CAFile)
	}
	return &tls.Config{
		RootCAs:    roots,
		ServerName: quotav1.ServerName,
		MinVersion: tls.VersionTLS13,
	}, nil
}

func (c Credentials) token() (string, error) {
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the pod's token: %w", err)
	}
	token = bytes.TrimSpace(token)
	if len(token) == 0 {
		return "", fmt.Errorf("the pod's token %s is empty", c.TokenFile)
	}
	return string(token), nil
}
