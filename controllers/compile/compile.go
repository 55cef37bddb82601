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
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/api/expression"
	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// Policy compiles one policy. namespaceMode is what the label of its namespace says: v1alpha1.ModeShadow or nothing. The error
// names the path, the fault and an example of what is allowed.
func Policy(p *v1alpha1.RateLimitPolicy, namespaceMode v1alpha1.Mode) (*quotav1.Policy, error) {
	out := &quotav1.Policy{Uid: string(p.UID), Namespace: p.Namespace, Name: p.Name, Generation: p.Generation}
	if !p.CreationTimestamp.IsZero() {
		out.CreatedSeconds = p.CreationTimestamp.Unix()
	}
	shadow := p.Spec.Mode == v1alpha1.ModeShadow || namespaceMode == v1alpha1.ModeShadow
	seen := map[string]bool{}
	for i := range p.Spec.Limits {
		limit := &p.Spec.Limits[i]
		path := fmt.Sprintf("spec.limits[%d]", i)
		if limit.Name == "" || seen[limit.Name] {
			return nil, fmt.Errorf("%s.name: %q is empty or already in use: give each limit a name of its own, such as per-api-key", path, limit.Name)
		}
		seen[limit.Name] = true
		limits, err := compileLimit(string(p.UID), limit)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", path, err)
		}
		for _, l := range limits {
			l.Shadow = l.Shadow || shadow
		}
		out.Limits = append(out.Limits, limits...)
	}
	var err error
	if out.MaxHoldNanoseconds, err = compileHold(p.Spec.MaxHold); err != nil {
		return nil, fmt.Errorf("spec.maxHold: %w", err)
	}
	if out.Exempt, err = compileExempt(&p.Spec.Exempt); err != nil {
		return nil, fmt.Errorf("spec.exempt.%w", err)
	}
	out.Response = compileResponse(&p.Spec.Response)
	return out, nil
}

// Snapshot joins compiled policies into the snapshot of one workload. The order of the arguments does not matter. The oldest
// policy that says how clients are answered decides it.
func Snapshot(policies ...*quotav1.Policy) *quotav1.Snapshot {
	s := &quotav1.Snapshot{Policies: slices.Clone(policies)}
	slices.SortFunc(s.Policies, func(a, b *quotav1.Policy) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var elder *quotav1.Policy
	for _, p := range s.Policies {
		if p.Response != nil && (elder == nil || older(p, elder)) {
			elder = p
		}
	}
	s.Response = elder.GetResponse()
	s.Version = hash(s)
	return s
}

func older(a, b *quotav1.Policy) bool {
	return cmp.Or(cmp.Compare(a.CreatedSeconds, b.CreatedSeconds), strings.Compare(a.Name, b.Name)) < 0
}

// Bases are the limits as the policy lists them, without those that stand in the place of one for some requests.
func Bases(p *quotav1.Policy) []*quotav1.Limit {
	var out []*quotav1.Limit
	for _, l := range p.GetLimits() {
		if l.GetVariant() == nil {
			out = append(out, l)
		}
	}
	return out
}

// NamespaceMode is what a namespace's labels say of all its policies.
func NamespaceMode(labels map[string]string) v1alpha1.Mode {
	if labels[v1alpha1.LabelMode] == string(v1alpha1.ModeShadow) {
		return v1alpha1.ModeShadow
	}
	return ""
}

// compileLimit returns a limit, and after it those that stand in its place for some requests.
func compileLimit(policyUID string, l *v1alpha1.Limit) ([]*quotav1.Limit, error) {
	out := &quotav1.Limit{
		Name:     l.Name,
		Scope:    quotav1.Scope_TOTAL,
		Strategy: quotav1.Strategy_EQUAL_SHARE,
		Shadow:   l.Mode == v1alpha1.ModeShadow,
		When:     l.When,
	}
	if l.Scope == v1alpha1.ScopePerPod {
		out.Scope = quotav1.Scope_PER_POD
	}
	if l.Strategy == v1alpha1.Adaptive && !lends(l) {
		return nil, fmt.Errorf("strategy: Adaptive cannot be of algorithm Concurrency, scope PerPod or cost.fromResponse: leave it out, or write strategy: EqualShare")
	}
	if l.Strategy != v1alpha1.EqualShare && lends(l) {
		out.Strategy = quotav1.Strategy_ADAPTIVE
	}
	if err := compileNumbers(out, l); err != nil {
		return nil, err
	}
	if l.When != "" {
		if _, err := expression.Compile(l.When, expression.Condition); err != nil {
			return nil, fmt.Errorf("when: %w; write for example request.headers['x-plan'] == 'free'", err)
		}
	}
	for i := range l.Match {
		m, err := compileMatch(&l.Match[i])
		if err != nil {
			return nil, fmt.Errorf("match[%d].%w", i, err)
		}
		out.Matches = append(out.Matches, m)
	}
	if err := compileKey(out, l); err != nil {
		return nil, err
	}
	var err error
	if out.Cost, err = compileCost(l.Cost, out.Burst); err != nil {
		return nil, fmt.Errorf("cost%w", err)
	}
	out.Id = identity(policyUID, out, "")
	variants, err := compileVariants(policyUID, out, l)
	if err != nil {
		return nil, err
	}
	return append([]*quotav1.Limit{out}, variants...), nil
}

// lends reports whether a limit's tokens can be lent: where every pod has the whole there is nothing to lend, what ends by
// itself cannot be spent, and what an answer says of its cost is settled in the pod's own bucket, when a loan may have been
// reported as spent.
func lends(l *v1alpha1.Limit) bool {
	return l.Scope != v1alpha1.ScopePerPod && l.Algorithm != v1alpha1.Concurrency && (l.Cost == nil || l.Cost.FromResponse.Header == "")
}

// compileNumbers reads the rate and burst, or how many requests may be under way.
func compileNumbers(out *quotav1.Limit, l *v1alpha1.Limit) error {
	if l.Algorithm == v1alpha1.Concurrency {
		out.Algorithm = quotav1.Algorithm_CONCURRENCY
		if l.MaxInFlight == nil || *l.MaxInFlight < 1 {
			return fmt.Errorf("maxInFlight: a limit of algorithm Concurrency needs one of 1 or more, such as maxInFlight: 50")
		}
		// What a departed pod leaves is free again after burst/rate: a second.
		out.Burst = uint64(*l.MaxInFlight)
		out.Rate = &quotav1.Rate{Requests: out.Burst, PeriodNanoseconds: uint64(time.Second)}
		return nil
	}
	rate, err := compileRate(l.Rate)
	if err != nil {
		return fmt.Errorf("rate.%w", err)
	}
	out.Rate = rate
	if out.Burst, err = compileBurst(l.Burst, rate); err != nil {
		return err
	}
	if l.OnExceed == v1alpha1.ExceedDelay {
		delay, err := time.ParseDuration(l.MaxDelay)
		if err != nil || delay <= 0 || delay > time.Minute {
			return fmt.Errorf("maxDelay: %q is not a duration above zero and up to 60s: write for example 500ms", l.MaxDelay)
		}
		out.MaxDelayNanoseconds = uint64(delay)
	}
	return nil
}

// compileHold reads how long a request may be held; nil where nothing is said.
func compileHold(hold string) (*uint64, error) {
	if hold == "" {
		return nil, nil
	}
	d, err := time.ParseDuration(hold)
	if err != nil || d < 0 || d > time.Second {
		return nil, fmt.Errorf("%q is not a duration from 0s to 1s: write for example 50ms", hold)
	}
	return new(uint64(d)), nil
}

func compileBurst(burst *int64, rate *quotav1.Rate) (uint64, error) {
	switch {
	case burst == nil:
		return rate.Requests, nil
	case *burst < 1:
		return 0, fmt.Errorf("burst: %d is below 1, so nothing could ever be admitted: write burst: 1 or more, or leave it out", *burst)
	}
	return uint64(*burst), nil
}

func compileRate(r v1alpha1.Rate) (*quotav1.Rate, error) {
	per, err := time.ParseDuration(r.Per)
	if err != nil || per <= 0 {
		return nil, fmt.Errorf("per: %q is not a duration above zero: write for example 1s, 1m or 1h", r.Per)
	}
	if r.Requests < 1 {
		return nil, fmt.Errorf("requests: %d is below 1: write for example {requests: 5, per: 1h}", r.Requests)
	}
	return &quotav1.Rate{Requests: uint64(r.Requests), PeriodNanoseconds: uint64(per)}, nil
}

func compileResponse(r *v1alpha1.Response) *quotav1.Response {
	if reflect.ValueOf(*r).IsZero() {
		return nil
	}
	out := &quotav1.Response{Body: r.Body, ContentType: r.ContentType}
	if r.Status != nil {
		out.Status = uint32(*r.Status)
	}
	for _, f := range r.Fields {
		out.Fields = append(out.Fields, &quotav1.HeaderField{Name: f.Name, Value: f.Value})
	}
	switch r.Headers {
	case v1alpha1.HeadersIETFDraft10:
		out.Headers = quotav1.HeaderFamily_IETF_DRAFT_10
	case v1alpha1.HeadersXRateLimit:
		out.Headers = quotav1.HeaderFamily_X_RATE_LIMIT
	}
	return out
}

// identity names the accounts of a limit: whatever changes it makes another limit, whose accounts start
// with nothing. Rate, burst, match and mode can change in place.
func identity(policyUID string, l *quotav1.Limit, variant string) string {
	which := &quotav1.Limit{Key: l.Key, Scope: l.Scope, Strategy: l.Strategy, Algorithm: l.Algorithm}
	if l.Cost != nil {
		which.Cost = proto.CloneOf(l.Cost)
		which.Cost.Max, which.Cost.Fallback = 0, 0
	}
	name := l.Name
	if variant != "" {
		name += "." + variant
	}
	return policyUID + "/" + name + "/" + hash(which)[:12]
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
