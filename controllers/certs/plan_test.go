// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"testing"
	"time"
)

var (
	begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	terms = Terms{Validity: time.Hour, CAValidity: 6 * time.Hour, Overlap: 10 * time.Minute}
	names = []string{"headgate-operator.headgate-system.svc", "headgate-operator.headgate.dev"}
)

func next(t *testing.T, now time.Time, have map[string][]byte) plan {
	t.Helper()
	p, err := planned(now, terms, names, have)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// trusts is what a client does that has read the bundle.
func trusts(bundle, cert []byte, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	block, _ := pem.Decode(cert)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return err
		}
	}
	return nil
}

func TestNoClientEverMeetsACertificateThatItDoesNotTrust(t *testing.T) {
	const step = 2 * time.Minute
	var past []map[string][]byte // what the Secret held, a step apart
	authorities, certificates := 0, 0
	have := map[string][]byte{}
	for now := begin; now.Before(begin.Add(36 * time.Hour)); now = now.Add(step) {
		p := next(t, now, have)
		if p.changed != !maps.EqualFunc(have, p.data, bytes.Equal) {
			t.Fatalf("%s: changed is %t", now, p.changed)
		}
		if !bytes.Equal(have[keyCAKey], p.data[keyCAKey]) {
			authorities++
		}
		if !bytes.Equal(have[keyCert], p.data[keyCert]) {
			certificates++
		}
		have = p.data
		past = append(past, have)
		// A client's bundle is as old as the overlap allows; a replica, or a client's clock, lags behind by a step.
		for lag := range min(len(past), int(terms.Overlap/step)) {
			if lag > 0 && bytes.Equal(past[len(past)-1-lag][keyCA], past[len(past)-lag][keyCA]) {
				continue // as the one before
			}
			if err := trusts(past[len(past)-1-lag][keyCA], have[keyCert], now); err != nil {
				t.Fatalf("%s: a client whose bundle is %s old: %v", now, time.Duration(lag)*step, err)
			}
		}
		if len(past) > 1 {
			if err := trusts(have[keyCA], past[len(past)-2][keyCert], now); err != nil {
				t.Fatalf("%s: a replica that lags behind: %v", now, err)
			}
		}
		if n := len(bundle(have[keyCA])); n > 3 {
			t.Fatalf("%s: %d authorities are trusted", now, n)
		}
	}
	if authorities < 8 || certificates < 50 {
		t.Errorf("there were %d authorities and %d certificates: too few to say anything", authorities, certificates)
	}
}

func TestNothingIsDoneBeforeItIsDue(t *testing.T) {
	p := next(t, begin, nil)
	again := next(t, begin.Add(p.again-time.Second), p.data)
	if again.changed {
		t.Error("something changed before it was due")
	}
	if due := next(t, begin.Add(p.again), p.data); !due.changed {
		t.Error("nothing changed when it was due")
	}
}

func TestWhatASecretHoldsIsMended(t *testing.T) {
	good := next(t, begin, nil).data
	rotating := next(t, begin.Add(4*time.Hour), good).data
	if rotating[keyNext] == nil {
		t.Fatal("no rotation is under way")
	}
	with := func(data map[string][]byte, key string, value []byte) map[string][]byte {
		data = maps.Clone(data)
		data[key] = value
		return data
	}
	for name, tc := range map[string]struct {
		have map[string][]byte
		at   time.Duration
		// sameCA says that clients which trusted the Secret's authority trust what is served.
		sameCA bool
	}{
		"an empty Secret":                          {nil, 0, false},
		"a certificate that is none":               {with(good, keyCert, []byte("x")), 0, true},
		"a key of another certificate":             {with(good, keyKey, rotating[keyNextKey]), 0, true},
		"an authority without its key":             {with(good, keyCAKey, nil), 0, false},
		"an authority that has expired":            {good, 7 * time.Hour, false},
		"one that has expired during its rotation": {rotating, 6*time.Hour + time.Minute, true},
		"a successor without its key":              {with(rotating, keyNextKey, nil), 4*time.Hour + time.Minute, true},
		"a successor of an unknown age":            {with(rotating, keySince, nil), 4*time.Hour + time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := begin.Add(tc.at)
			p := next(t, now, tc.have)
			if !p.changed {
				t.Error("nothing was mended")
			}
			if err := trusts(p.data[keyCA], p.data[keyCert], now); err != nil {
				t.Errorf("what is served is not trusted: %v", err)
			}
			if got := trusts(tc.have[keyCA], p.data[keyCert], now) == nil; got != tc.sameCA {
				t.Errorf("clients of before trust what is served: %t", got)
			}
			if next(t, now, p.data).changed {
				t.Error("it is not whole at once")
			}
		})
	}
}

func TestACertificateWithoutANameIsReplaced(t *testing.T) {
	have := next(t, begin, nil).data
	p, err := planned(begin, terms, append(names, "another.example"), have)
	if err != nil || !p.changed || bytes.Equal(p.data[keyCert], have[keyCert]) {
		t.Errorf("changed %t, %v", p.changed, err)
	}
	if !bytes.Equal(p.data[keyCA], have[keyCA]) {
		t.Error("the authority went with it")
	}
}

func TestShorterTermsHoldAtOnce(t *testing.T) {
	have := next(t, begin, nil).data
	p, err := planned(begin, Terms{time.Minute, terms.CAValidity, terms.Overlap}, names, have)
	if err != nil || bytes.Equal(p.data[keyCert], have[keyCert]) || !bytes.Equal(p.data[keyCA], have[keyCA]) {
		t.Errorf("changed %t, %v", p.changed, err)
	}
}

// The operator of before kept an RSA authority, made by another library, under the same keys.
func TestTheSecretOfAnEarlierReleaseGoesOn(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "headgate-ca"}, NotBefore: begin, NotAfter: begin.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	have := map[string][]byte{keyCA: ca, keyCAKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})}
	p := next(t, begin, have)
	if !bytes.Equal(p.data[keyCA], ca) {
		t.Error("its authority was replaced: sidecars that run would not trust the operator until they are told")
	}
	if err := trusts(ca, p.data[keyCert], begin); err != nil {
		t.Error(err)
	}
}

func TestTermsThatLeaveClientsBehindAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		terms Terms
		ok    bool
	}{
		"the defaults": {Terms{2160 * time.Hour, 43800 * time.Hour, 10 * time.Minute}, true},
		"a certificate that outlives its authority": {Terms{3 * time.Hour, 6 * time.Hour, time.Minute}, false},
		"an overlap without an end":                 {Terms{time.Hour, 6 * time.Hour, 2 * time.Hour}, false},
		"no overlap":                                {Terms{time.Hour, 6 * time.Hour, 0}, false},
	} {
		if err := tc.terms.Validate(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
