// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Limit is a rate and a burst for the requests that it matches, per key.
type Limit struct {
	// name is the identity of the limit's buckets, unique in the policy. A renamed limit is a new limit: it starts empty.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="name must be lower-case letters, digits and '-', such as per-api-key"
	Name string `json:"name,omitempty"`

	// match says which requests count: any entry of the list, where all fields of that entry hold. Absent: every request.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Match []Match `json:"match,omitempty"`

	// key gives one bucket to each distinct tuple of values. Absent: one bucket for all requests. A request that lacks a
	// header of the key is not counted by this limit.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.filter(k, has(k.clientIP)).size() <= 1",message="clientIP may stand once in a key: remove the repeated entry"
	Key []KeyPart `json:"key,omitempty"`

	// rate is how many requests are admitted, over time, by all pods together.
	// +required
	Rate Rate `json:"rate,omitzero"`

	// burst is how many requests may be admitted at once after a pause. Absent: the rate's own number of requests. Over any
	// interval of length W at most burst + rate * W requests are admitted.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="burst must be from 1 to 1000000000 requests: a limit whose burst is below 1 could never admit anything; leave it out for the rate's own number"
	Burst *int64 `json:"burst,omitempty"`

	// scope is Total (the pods together admit what the limit says, however many there are) or PerPod (each pod admits the
	// whole limit, so the total grows with the number of pods).
	// +optional
	// +default="Total"
	Scope Scope `json:"scope,omitempty"`

	// strategy says how the pods share the limit. EqualShare: each of N pods enforces one N-th.
	// +optional
	// +default="EqualShare"
	Strategy Strategy `json:"strategy,omitempty"`
}

// Scope says whether pods share a limit.
// +kubebuilder:validation:Enum=Total;PerPod
type Scope string

const (
	// ScopeTotal keeps the total constant while pods come and go.
	ScopeTotal Scope = "Total"
	// ScopePerPod gives every pod the whole limit.
	ScopePerPod Scope = "PerPod"
)

// Strategy says how pods share a limit.
// +kubebuilder:validation:Enum=EqualShare
type Strategy string

// EqualShare gives each of N pods one N-th of the rate and of the burst.
const EqualShare Strategy = "EqualShare"

// Rate is an exact ratio: 5 per 1h is 5 per 1h.
type Rate struct {
	// requests is how many requests are admitted per period.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="requests must be from 1 to 1000000000; for less than one request per second write a longer period, such as {requests: 5, per: 1h}"
	Requests int64 `json:"requests,omitempty"` //nolint:kubeapilinter // the rule refuses zero, and says what to write instead; a minimum would not

	// per is the period, as a duration such as 1s, 1m or 1h: at least 1ms, at most 8784h (366 days).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}(h|m|s|ms))+$')",message="per must be a duration in h, m, s and ms, such as 1s, 1m or 1h30m (a bare number or a unit such as d is not understood: write 24h for a day)"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,8}(h|m|s|ms))+$') || (duration(self) >= duration('1ms') && duration(self) <= duration('8784h'))",message="per must be at least 1ms and at most 8784h, such as 1s, 1m or 1h"
	Per string `json:"per,omitempty"`
}

// Match holds when every field that is present holds.
//
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.methods) || has(self.headers)",message="a match needs at least one of path, methods and headers; to count every request leave match out"
type Match struct {
	// path matches the path of the request, without its query.
	// +optional
	Path PathMatch `json:"path,omitzero"`

	// methods holds when the request's method is one of the list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.matches('^[A-Z][A-Z-]*$'))",message="methods are written in capitals, such as GET or POST"
	Methods []string `json:"methods,omitempty"`

	// headers holds when each entry of the list holds.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Headers []HeaderMatch `json:"headers,omitempty"`
}

// PathMatchType says how a path is compared.
// +kubebuilder:validation:Enum=Exact;PathPrefix
type PathMatchType string

const (
	// PathExact compares the whole path.
	PathExact PathMatchType = "Exact"
	// PathPrefix compares by segments: /v1 matches /v1 and /v1/x, not /v10.
	PathPrefix PathMatchType = "PathPrefix"
)

// PathMatch compares the path of a request, after dot segments, repeated slashes and percent-encoding of unreserved
// characters have been resolved; the request itself is forwarded as it was sent.
type PathMatch struct {
	// type is PathPrefix (by whole segments: /v1 matches /v1 and /v1/x, not /v10) or Exact.
	// +optional
	// +default="PathPrefix"
	Type PathMatchType `json:"type,omitempty"`

	// value is the path, which starts with a slash.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="value must be an absolute path, such as /v1/"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#') && !self.matches('\\\\s')",message="value is a path alone: leave out the query, the fragment and spaces, as in /v1/orders"
	// +kubebuilder:validation:XValidation:rule="!self.contains('//') && !self.matches('/[.][.]?(/|$)')",message="value must have no empty, '.' or '..' segments: a request's path is compared after these are resolved, so it would never match; write /v1/orders"
	Value string `json:"value,omitempty"`
}

// HeaderMatchType says how a header's value is compared.
// +kubebuilder:validation:Enum=Exact
type HeaderMatchType string

// HeaderExact compares the whole value.
const HeaderExact HeaderMatchType = "Exact"

// HeaderMatch compares one header of a request.
type HeaderMatch struct {
	// type is Exact.
	// +optional
	// +default="Exact"
	Type HeaderMatchType `json:"type,omitempty"`

	// name is the header's name; upper and lower case are the same.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="name must be the name of an HTTP header, such as X-Tenant"
	Name string `json:"name,omitempty"`

	// value is the value to find.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// KeyPart is one element of a key.
//
// +kubebuilder:validation:XValidation:rule="[has(self.header), has(self.clientIP)].filter(x, x).size() == 1",message="each entry of a key has exactly one of header and clientIP, such as {header: X-API-Key} or {clientIP: {}}"
type KeyPart struct {
	// header takes the value of this header; upper and lower case of the name are the same.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="header must be the name of an HTTP header, such as X-API-Key"
	Header string `json:"header,omitempty"`

	// clientIP takes the address of the peer that opened the connection, cut to a prefix.
	// +optional
	ClientIP *ClientIPKey `json:"clientIP,omitempty"`
}

// ClientIPKey takes the peer's address, cut to a prefix, so that one customer is one key.
type ClientIPKey struct {
	// ipv4PrefixBits is how many bits of an IPv4 address count. Absent: 32, the whole address.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 8 && self <= 32",message="ipv4PrefixBits must be from 8 to 32, such as 24; leave it out for the whole address"
	IPv4PrefixBits *int32 `json:"ipv4PrefixBits,omitempty"`

	// ipv6PrefixBits is how many bits of an IPv6 address count. Absent: 64, since one customer usually holds a whole /64.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 16 && self <= 128",message="ipv6PrefixBits must be from 16 to 128, such as 56; leave it out for /64"
	IPv6PrefixBits *int32 `json:"ipv6PrefixBits,omitempty"`
}
