// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parts are those of a token: header, claims, signature.
func parts(t *testing.T, token string) ([]string, map[string]any) {
	t.Helper()
	words := strings.Split(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(words[1])
	must(t, err)
	claims := map[string]any{}
	must(t, json.Unmarshal(raw, &claims))
	return words, claims
}

// resigned changes a token's claims and signs it with the API server's key, or with one of our own.
func resigned(t *testing.T, folder, token string, change func(map[string]any)) string {
	t.Helper()
	words, claims := parts(t, token)
	change(claims)
	raw, err := json.Marshal(claims)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	if folder != "" {
		written, err := os.ReadFile(filepath.Join(folder, "sa-signer.key"))
		must(t, err)
		block, _ := pem.Decode(written)
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		must(t, err)
		key = parsed.(*ecdsa.PrivateKey)
	}
	signing := words[0] + "." + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(signing))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	must(t, err)
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...) // ES256, RFC 7518, 3.4
	return signing + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// changed changes a token's claims and keeps the signature of what they were.
func changed(t *testing.T, token string, change func(map[string]any)) string {
	t.Helper()
	words, claims := parts(t, token)
	change(claims)
	raw, err := json.Marshal(claims)
	must(t, err)
	return words[0] + "." + base64.RawURLEncoding.EncodeToString(raw) + "." + words[2]
}
