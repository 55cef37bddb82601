// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// KeyPart is one element of a key: exactly one of its fields.
//
// +kubebuilder:validation:MinProperties=1
//
// +kubebuilder:validation:XValidation:rule="[has(self.header), has(self.clientIP), has(self.cookie), has(self.query), has(self.pathVariable), has(self.request), has(self.claimOfVerifiedJWT), has(self.expression)].filter(x, x).size() == 1",message="each entry of a key has exactly one of header, clientIP, cookie, query, pathVariable, request, claimOfVerifiedJWT and expression, such as {header: X-API-Key} or {clientIP: {}}"
type KeyPart struct {
	// header takes the value of this header; upper and lower case of the name are the same. Of several lines the first counts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="header must be the name of an HTTP header, such as X-API-Key"
	Header string `json:"header,omitempty"`

	// clientIP takes the address of the client, cut to a prefix.
	// +optional
	ClientIP *ClientIPKey `json:"clientIP,omitempty"`

	// cookie takes the value of this cookie.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="cookie must be the name of a cookie, such as session"
	Cookie string `json:"cookie,omitempty"`

	// query takes the value of this parameter of the URL's query; of several the first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Query string `json:"query,omitempty"`

	// pathVariable takes a variable of the path template that matched. Each entry of match must have a template with it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="pathVariable is the name between the braces of a path template, such as user of /users/{user}"
	PathVariable string `json:"pathVariable,omitempty"`

	// request takes the request's Path (normalised), Method or Host.
	// +optional
	Request RequestPart `json:"request,omitempty"`

	// claimOfVerifiedJWT takes a claim of a JSON Web Token that somebody in front (a gateway, the mesh) has verified already:
	// the signature is not checked here, so whoever reaches the pod directly can write any claim.
	// +optional
	ClaimOfVerifiedJWT JWTClaim `json:"claimOfVerifiedJWT,omitzero"`

	// expression is CEL that yields a string, a number or a bool, such as request.headers['x-tenant'].lowerAscii(). The key is
	// missing when the evaluation fails.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`
}

// RequestPart is a part of the request line.
// +kubebuilder:validation:Enum=Path;Method;Host
type RequestPart string

const (
	// RequestPath is the normalised path.
	RequestPath RequestPart = "Path"
	// RequestMethod is the method.
	RequestMethod RequestPart = "Method"
	// RequestHost is the host, in small letters and without a port.
	RequestHost RequestPart = "Host"
)

// ClientIPKey takes the client's address, cut to a prefix, so that one customer is one key. By default it is the peer that
// opened the connection.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.trustedHops) && has(self.fromHeader))",message="write one of trustedHops (for X-Forwarded-For) and fromHeader (for a header with one address), such as {trustedHops: 1}"
type ClientIPKey struct {
	// ipv4PrefixBits is how many bits of an IPv4 address count. Absent: 32, the whole address.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 8 && self <= 32",message="ipv4PrefixBits must be from 8 to 32, such as 24; leave it out for the whole address"
	IPv4PrefixBits *int32 `json:"ipv4PrefixBits,omitempty"`

	// ipv6PrefixBits is how many bits of an IPv6 address count. Absent: 64, since one customer usually holds a whole /64.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 16 && self <= 128",message="ipv6PrefixBits must be from 16 to 128, such as 56; leave it out for /64"
	IPv6PrefixBits *int32 `json:"ipv6PrefixBits,omitempty"`

	// trustedHops is how many proxies in front of the pod write X-Forwarded-For and are believed: 1 takes the last entry, 2 the
	// one before it. Where there are fewer entries, or it is no address, the peer's address counts. Absent: the peer's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 16",message="trustedHops must be from 1 to 16; leave it out to count the peer's own address"
	TrustedHops *int32 `json:"trustedHops,omitempty"`

	// fromHeader is a header with the client's address that the edge sets whatever the client sends, such as CF-Connecting-IP.
	// Where it is absent or no address, the peer's address counts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="fromHeader must be the name of an HTTP header, such as CF-Connecting-IP"
	FromHeader string `json:"fromHeader,omitempty"`
}

// JWTClaim names a claim of a token.
type JWTClaim struct {
	// claim is the name of a claim whose value is a string, a number or a bool, such as sub. A dot leads into an object: org.id.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Claim string `json:"claim,omitempty"`

	// header holds the token, alone or after "Bearer ".
	// +optional
	// +default="Authorization"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="header must be the name of an HTTP header, such as Authorization"
	Header string `json:"header,omitempty"`
}

// OnMissingKey says what becomes of a request that lacks a part of the key.
// +kubebuilder:validation:Enum=Skip;Deny;Shared
type OnMissingKey string

const (
	// MissingKeySkip does not count the request by this limit.
	MissingKeySkip OnMissingKey = "Skip"
	// MissingKeyDeny denies it.
	MissingKeyDeny OnMissingKey = "Deny"
	// MissingKeyShared counts all such requests in one bucket.
	MissingKeyShared OnMissingKey = "Shared"
)

// Override gives some keys numbers of their own.
type Override struct {
	// values are tuples with one value for each part of the limit's key: [[gold-7f3], [gold-91c]]. Addresses are written as the
	// prefix that the key cuts to, such as 10.1.2.3 or 2001:db8::.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []KeyTuple `json:"values,omitempty"`

	// rate is the rate of each of these keys.
	// +required
	Rate Rate `json:"rate,omitzero"`

	// burst is the burst of each of these keys. Absent: the rate's own number of requests.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="burst must be from 1 to 1000000000 requests; leave it out for the rate's own number"
	Burst *int64 `json:"burst,omitempty"`
}

// KeyTuple is one value for each part of a key.
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=4
// +kubebuilder:validation:items:MaxLength=256
type KeyTuple []string

// Tiers choose a limit's numbers by a value of the request, such as the tenant's plan.
type Tiers struct {
	// by is where the tier's name is found, as for a key.
	// +required
	By KeyPart `json:"by,omitzero"`

	// tiers are the numbers of each name. A request of another name, or of none, has the limit's own numbers.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Tiers []Tier `json:"tiers,omitempty"`
}

// Tier is one tier's numbers.
type Tier struct {
	// name is the value that is looked for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// rate is the rate of each key of the tier.
	// +required
	Rate Rate `json:"rate,omitzero"`

	// burst is the burst of each key of the tier. Absent: the rate's own number of requests.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="burst must be from 1 to 1000000000 requests; leave it out for the rate's own number"
	Burst *int64 `json:"burst,omitempty"`
}
