// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compile decides what the policies of a workload mean: a pure function from RateLimitPolicies to the one immutable
// snapshot that every pod of the workload enforces.
package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// Policy compiles one policy. The error names the path, the fault and an example of what is allowed; the API server's own
// validation refuses nearly all of it before.
func Policy(p *v1alpha1.RateLimitPolicy) (*quotav1.Policy, error) {
	out := &quotav1.Policy{Uid: string(p.UID), Namespace: p.Namespace, Name: p.Name, Generation: p.Generation}
	seen := map[string]bool{}
	for i := range p.Spec.Limits {
		limit := &p.Spec.Limits[i]
		path := fmt.Sprintf("spec.limits[%d]", i)
		if limit.Name == "" || seen[limit.Name] {
			return nil, fmt.Errorf("%s.name: %q is empty or already in use: give each limit a name of its own, such as per-api-key", path, limit.Name)
		}
		seen[limit.Name] = true
		l, err := compileLimit(string(p.UID), limit)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", path, err)
		}
		out.Limits = append(out.Limits, l)
	}
	return out, nil
}

// Snapshot joins compiled policies into the snapshot of one workload. The order of the arguments does not matter.
func Snapshot(policies ...*quotav1.Policy) *quotav1.Snapshot {
	s := &quotav1.Snapshot{Policies: slices.Clone(policies)}
	slices.SortFunc(s.Policies, func(a, b *quotav1.Policy) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	s.Version = hash(s)
	return s
}

func compileLimit(policyUID string, l *v1alpha1.Limit) (*quotav1.Limit, error) {
	rate, err := compileRate(l.Rate)
	if err != nil {
		return nil, err
	}
	out := &quotav1.Limit{
		Name:     l.Name,
		Rate:     rate,
		Burst:    rate.Requests,
		Scope:    quotav1.Scope_TOTAL,
		Strategy: quotav1.Strategy_EQUAL_SHARE,
	}
	if l.Burst != nil {
		if *l.Burst < 1 {
			return nil, fmt.Errorf("burst: %d is below 1, so nothing could ever be admitted: write burst: 1 or more, or leave it out", *l.Burst)
		}
		out.Burst = uint64(*l.Burst)
	}
	if l.Scope == v1alpha1.ScopePerPod {
		out.Scope = quotav1.Scope_PER_POD
	}
	for i := range l.Match {
		out.Matches = append(out.Matches, compileMatch(&l.Match[i]))
	}
	for i, k := range l.Key {
		part, err := compileKeyPart(k)
		if err != nil {
			return nil, fmt.Errorf("key[%d]: %w", i, err)
		}
		out.Key = append(out.Key, part)
	}
	out.Id = identity(policyUID, out)
	return out, nil
}

func compileRate(r v1alpha1.Rate) (*quotav1.Rate, error) {
	per, err := time.ParseDuration(r.Per)
	if err != nil || per <= 0 {
		return nil, fmt.Errorf("rate.per: %q is not a duration above zero: write for example 1s, 1m or 1h", r.Per)
	}
	if r.Requests < 1 {
		return nil, fmt.Errorf("rate.requests: %d is below 1: write for example {requests: 5, per: 1h}", r.Requests)
	}
	return &quotav1.Rate{Requests: uint64(r.Requests), PeriodNanoseconds: uint64(per)}, nil
}

func compileMatch(m *v1alpha1.Match) *quotav1.Match {
	out := &quotav1.Match{Methods: slices.Sorted(slices.Values(m.Methods))}
	if m.Path.Value != "" {
		out.Path = &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: m.Path.Value}
		if m.Path.Type == v1alpha1.PathExact {
			out.Path.Type = quotav1.PathMatch_EXACT
		}
	}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, &quotav1.HeaderMatch{
			Name: strings.ToLower(h.Name), Value: h.Value, Type: quotav1.HeaderMatch_EXACT,
		})
	}
	slices.SortFunc(out.Headers, func(a, b *quotav1.HeaderMatch) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func compileKeyPart(k v1alpha1.KeyPart) (*quotav1.KeyPart, error) {
	switch {
	case k.Header != "" && k.ClientIP == nil:
		return &quotav1.KeyPart{Part: &quotav1.KeyPart_Header{Header: strings.ToLower(k.Header)}}, nil
	case k.Header == "" && k.ClientIP != nil:
		ip := &quotav1.ClientIP{Ipv4Prefix: 32, Ipv6Prefix: 64}
		if k.ClientIP.IPv4PrefixBits != nil {
			ip.Ipv4Prefix = uint32(*k.ClientIP.IPv4PrefixBits)
		}
		if k.ClientIP.IPv6PrefixBits != nil {
			ip.Ipv6Prefix = uint32(*k.ClientIP.IPv6PrefixBits)
		}
		return &quotav1.KeyPart{Part: &quotav1.KeyPart_ClientIp{ClientIp: ip}}, nil
	default:
		return nil, fmt.Errorf("exactly one of header and clientIP must be set, such as {header: X-API-Key}")
	}
}

// identity names the accounts of a limit: whatever changes it makes another limit, whose accounts start
// with nothing. Rate, burst and match can change in place.
func identity(policyUID string, l *quotav1.Limit) string {
	return policyUID + "/" + l.Name + "/" + hash(&quotav1.Limit{Key: l.Key, Scope: l.Scope, Strategy: l.Strategy})[:12]
}

// hash is stable between processes and releases that write the same fields: the messages hold no maps, and unknown fields
// are never compiled.
func hash(m proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("compile: marshal a message that was just built: %v", err)) // only for invalid UTF-8, which the API server refuses
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
