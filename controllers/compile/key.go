// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/api/expression"
	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// compileKey reads the key of a limit, and what becomes of requests without one.
func compileKey(out *quotav1.Limit, l *v1alpha1.Limit) error {
	for i := range l.Key {
		part, err := compileKeyPart(&l.Key[i])
		if err != nil {
			return fmt.Errorf("key[%d]%w", i, err)
		}
		if name := l.Key[i].PathVariable; name != "" {
			if err := everyMatchHas(l, name); err != nil {
				return fmt.Errorf("key[%d].pathVariable: %w", i, err)
			}
		}
		out.Key = append(out.Key, part)
	}
	switch l.OnMissingKey {
	case v1alpha1.MissingKeyDeny:
		out.MissingKey = quotav1.MissingKey_DENY
	case v1alpha1.MissingKeyShared:
		out.MissingKey = quotav1.MissingKey_SHARED
	}
	return nil
}

// everyMatchHas refuses a key that some requests could never have.
func everyMatchHas(l *v1alpha1.Limit, name string) error {
	if len(l.Match) == 0 {
		return fmt.Errorf("there is no path template with %s: write for example match: [{path: {type: Template, value: \"/users/{%s}\"}}]", name, name)
	}
	for i, m := range l.Match {
		var found []string
		if m.Path.Type == v1alpha1.PathTemplate {
			found, _ = variables(m.Path.Value) // refused elsewhere
		}
		if !slices.Contains(found, name) {
			return fmt.Errorf("match[%d] has no path template with %s, so its requests would have no key: write for example path: {type: Template, value: \"/users/{%s}\"}", i, name, name)
		}
	}
	return nil
}

func compileKeyPart(k *v1alpha1.KeyPart) (*quotav1.KeyPart, error) {
	var parts []*quotav1.KeyPart
	if k.Header != "" {
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_Header{Header: strings.ToLower(k.Header)}})
	}
	if k.ClientIP != nil {
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_ClientIp{ClientIp: compileClientIP(k.ClientIP)}})
	}
	if k.Cookie != "" {
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_Cookie{Cookie: k.Cookie}})
	}
	if k.Query != "" {
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_Query{Query: k.Query}})
	}
	if k.PathVariable != "" {
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_PathVariable{PathVariable: k.PathVariable}})
	}
	if k.Request != "" {
		part, ok := requestParts[k.Request]
		if !ok {
			return nil, fmt.Errorf(".request: %q is none of Path, Method and Host", k.Request)
		}
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_Request{Request: part}})
	}
	if c := k.ClaimOfVerifiedJWT; c != (v1alpha1.JWTClaim{}) {
		header := c.Header
		if header == "" {
			header = "Authorization"
		}
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_JwtClaim{JwtClaim: &quotav1.JWTClaim{Claim: c.Claim, Header: strings.ToLower(header)}}})
	}
	if k.Expression != "" {
		if _, err := expression.Compile(k.Expression, expression.Text); err != nil {
			return nil, fmt.Errorf(".expression: %w; write for example request.headers['x-tenant'].lowerAscii()", err)
		}
		parts = append(parts, &quotav1.KeyPart{Part: &quotav1.KeyPart_Expression{Expression: k.Expression}})
	}
	if len(parts) != 1 {
		return nil, fmt.Errorf(": exactly one of header, clientIP, cookie, query, pathVariable, request, claimOfVerifiedJWT and expression must be set, such as {header: X-API-Key}")
	}
	return parts[0], nil
}

var requestParts = map[v1alpha1.RequestPart]quotav1.RequestPart{
	v1alpha1.RequestPath:   quotav1.RequestPart_PATH,
	v1alpha1.RequestMethod: quotav1.RequestPart_METHOD,
	v1alpha1.RequestHost:   quotav1.RequestPart_HOST,
}

func compileClientIP(k *v1alpha1.ClientIPKey) *quotav1.ClientIP {
	out := &quotav1.ClientIP{Ipv4Prefix: 32, Ipv6Prefix: 64, Header: strings.ToLower(k.FromHeader)}
	if k.IPv4PrefixBits != nil {
		out.Ipv4Prefix = uint32(*k.IPv4PrefixBits)
	}
	if k.IPv6PrefixBits != nil {
		out.Ipv6Prefix = uint32(*k.IPv6PrefixBits)
	}
	if k.TrustedHops != nil {
		out.TrustedHops = uint32(*k.TrustedHops)
	}
	return out
}

// compileVariants returns the limits that stand in the place of one for some requests.
func compileVariants(policyUID string, base *quotav1.Limit, l *v1alpha1.Limit) ([]*quotav1.Limit, error) {
	var out []*quotav1.Limit
	add := func(path, name string, rate v1alpha1.Rate, burst *int64, v *quotav1.Variant) error {
		numbers, err := compileRate(rate)
		if err != nil {
			return fmt.Errorf("%s.rate.%w", path, err)
		}
		most, err := compileBurst(burst, numbers)
		if err != nil {
			return fmt.Errorf("%s.%w", path, err)
		}
		v.BaseId, v.Name = base.Id, name
		cost, err := compileCost(l.Cost, most)
		if err != nil {
			return fmt.Errorf("cost%w (the burst is that of %s)", err, path)
		}
		out = append(out, &quotav1.Limit{
			Id: identity(policyUID, base, name), Name: base.Name, Key: base.Key, Rate: numbers, Burst: most, Scope: base.Scope,
			Strategy: base.Strategy, Cost: cost, Shadow: base.Shadow, MaxDelayNanoseconds: base.MaxDelayNanoseconds, Variant: v,
		})
		return nil
	}
	seen := map[string]bool{}
	for i := range l.Overrides {
		o := &l.Overrides[i]
		path := fmt.Sprintf("overrides[%d]", i)
		if len(o.Values) == 0 {
			return nil, fmt.Errorf("%s.values: empty: name the keys that the numbers are for, such as [[gold-7f3]]", path)
		}
		v := &quotav1.Variant{}
		for j, tuple := range o.Values {
			if err := checkTuple(base.Key, tuple); err != nil {
				return nil, fmt.Errorf("%s.values[%d]: %w", path, j, err)
			}
			if id := strings.Join(tuple, "\x00"); seen[id] {
				return nil, fmt.Errorf("%s.values[%d]: %q has numbers already: remove the repeated entry", path, j, tuple)
			}
			seen[strings.Join(tuple, "\x00")] = true
			v.Values = append(v.Values, &quotav1.KeyTuple{Values: tuple})
		}
		if err := add(path, "override-"+overrideName(o), o.Rate, o.Burst, v); err != nil {
			return nil, err
		}
	}
	if len(l.Tiers.Tiers) == 0 {
		return out, nil
	}
	by, err := compileKeyPart(&l.Tiers.By)
	if err != nil {
		return nil, fmt.Errorf("tiers.by%w", err)
	}
	base.TierBy = by
	for i := range l.Tiers.Tiers {
		t := &l.Tiers.Tiers[i]
		if err := add(fmt.Sprintf("tiers.tiers[%d]", i), t.Name, t.Rate, t.Burst, &quotav1.Variant{Tier: t.Name}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// overrideName tells an override from others by the first key that it is for, whatever its place in the list: moving it, and
// adding keys at its end, makes no account another.
func overrideName(o *v1alpha1.Override) string {
	return hash(&quotav1.KeyTuple{Values: o.Values[0]})[:8]
}

func checkTuple(key []*quotav1.KeyPart, tuple v1alpha1.KeyTuple) error {
	if len(tuple) != len(key) {
		return fmt.Errorf("%d values for a key of %d parts: write one value for each part of the key, such as [gold-7f3]", len(tuple), len(key))
	}
	for i, part := range key {
		if part.GetClientIp() == nil {
			continue
		}
		if _, err := netip.ParseAddr(tuple[i]); err != nil {
			return fmt.Errorf("%q is no address: write for example 10.1.2.3", tuple[i])
		}
	}
	return nil
}
