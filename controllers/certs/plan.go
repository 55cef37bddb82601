// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Keys of the Secret.
const (
	keyCert = "tls.crt"
	keyKey  = "tls.key"
	// keyCA has every authority that clients trust: first the one that signs, then the one that will, then those that have.
	keyCA    = "ca.crt"
	keyCAKey = "ca.key"
	// keyNext is the authority that will sign, trusted since keySince.
	keyNext    = "next.crt"
	keyNextKey = "next.key"
	keySince   = "next-since"
)

// often is how often the Secret is looked at when nothing is due.
const often = 12 * time.Hour

// plan is what the Secret shall hold.
type plan struct {
	data map[string][]byte
	// changed says that this is other than what it holds.
	changed bool
	// again is when to plan next.
	again time.Duration
}

// planned decides what the Secret shall hold at a time, from what it holds. An authority is replaced in three steps, so that no
// client ever meets a certificate that it does not trust: the successor is trusted; an overlap later it signs; its predecessor
// is trusted until it has expired.
func planned(now time.Time, terms Terms, names []string, have map[string][]byte) (plan, error) {
	trusted := bundle(have[keyCA])
	signer, next := parse(have[keyCA], have[keyCAKey]), parse(have[keyNext], have[keyNextKey])
	since, err := time.Parse(time.RFC3339Nano, string(have[keySince]))
	if err != nil {
		next = nil
	}
	if !lasts(next, now) {
		next = nil
	}
	if !lasts(signer, now) {
		signer, next = next, nil
	}
	if signer == nil {
		if signer, err = newAuthority(now, terms.CAValidity); err != nil {
			return plan{}, fmt.Errorf("authority: %w", err)
		}
	}
	due := renewal(signer.cert.NotBefore, signer.cert.NotAfter)
	switch {
	case next == nil && !now.Before(due):
		if next, err = newAuthority(now, terms.CAValidity); err != nil {
			return plan{}, fmt.Errorf("next authority: %w", err)
		}
		since, due = now, now.Add(terms.Overlap)
	case next != nil && !now.Before(since.Add(terms.Overlap)):
		signer, next = next, nil
		due = renewal(signer.cert.NotBefore, signer.cert.NotAfter)
	case next != nil:
		due = since.Add(terms.Overlap)
	}
	leaf := parse(have[keyCert], have[keyKey])
	if !serves(leaf, signer, names, now) || leaf.cert.NotAfter.After(now.Add(terms.Validity)) {
		if leaf, err = signer.sign(now, terms.Validity, names); err != nil {
			return plan{}, fmt.Errorf("certificate of the operator: %w", err)
		}
	}
	data := map[string][]byte{
		keyCert: leaf.certPEM, keyKey: leaf.keyPEM,
		keyCA: join(now, signer, next, trusted), keyCAKey: signer.keyPEM,
	}
	if next != nil {
		data[keyNext], data[keyNextKey], data[keySince] = next.certPEM, next.keyPEM, []byte(since.Format(time.RFC3339Nano))
	}
	if renew := renewal(leaf.cert.NotBefore, leaf.cert.NotAfter); renew.Before(due) {
		due = renew
	}
	return plan{data, !maps.EqualFunc(have, data, bytes.Equal), min(max(due.Sub(now), time.Second), often)}, nil
}

func lasts(p *pair, now time.Time) bool { return p != nil && now.Before(p.cert.NotAfter) }

// serves reports whether a certificate may go on: it is the authority's, has the names, and is not due for renewal.
func serves(leaf, signer *pair, names []string, now time.Time) bool {
	return leaf != nil && now.Before(renewal(leaf.cert.NotBefore, leaf.cert.NotAfter)) &&
		leaf.cert.CheckSignatureFrom(signer.cert) == nil &&
		!slices.ContainsFunc(names, func(n string) bool { return leaf.cert.VerifyHostname(n) != nil })
}

// join lists every authority that clients shall trust, each once.
func join(now time.Time, signer, next *pair, trusted []*x509.Certificate) []byte {
	all := []*x509.Certificate{signer.cert}
	if next != nil {
		all = append(all, next.cert)
	}
	var out []byte
	var seen []*x509.Certificate
	for _, c := range append(all, trusted...) {
		if now.Before(c.NotAfter) && !slices.ContainsFunc(seen, c.Equal) {
			seen = append(seen, c)
			out = append(out, encode(c)...)
		}
	}
	return out
}
