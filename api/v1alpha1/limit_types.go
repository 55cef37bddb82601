// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Limit is a rate and a burst for the requests that it matches, per key; or, of algorithm Concurrency, how many of them may
// be under way at once.
//
// +kubebuilder:validation:XValidation:rule="self.algorithm == 'Concurrency' ? (has(self.maxInFlight) && !has(self.rate) && !has(self.burst)) : (has(self.rate) && !has(self.maxInFlight))",message="algorithm TokenBucket has a rate, such as {requests: 100, per: 1s}; algorithm Concurrency has maxInFlight, and neither rate nor burst"
// +kubebuilder:validation:XValidation:rule="self.algorithm != 'Concurrency' || !(has(self.cost) || has(self.overrides) || has(self.tiers) || has(self.maxDelay))",message="algorithm Concurrency counts requests: leave out cost, overrides, tiers and maxDelay"
// +kubebuilder:validation:XValidation:rule="has(self.maxDelay) == (self.onExceed == 'Delay')",message="onExceed: Delay needs maxDelay, such as 500ms, and onExceed: Deny takes none"
// +kubebuilder:validation:XValidation:rule="has(self.key) || !has(self.overrides)",message="overrides are for some values of a key: give the limit a key, such as [{header: X-API-Key}]"
// +kubebuilder:validation:XValidation:rule="has(self.key) || !has(self.onMissingKey)",message="onMissingKey is for a limit with a key: leave it out, or give the limit a key, such as [{header: X-API-Key}]"
// +kubebuilder:validation:XValidation:rule="!has(self.overrides) || !has(self.tiers)",message="a limit has overrides or tiers, not both: write two limits, or put the tier's numbers into overrides"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || self.strategy != 'Adaptive' || (self.algorithm != 'Concurrency' && self.scope != 'PerPod' && !(has(self.cost) && has(self.cost.fromResponse)))",message="strategy Adaptive lends tokens, which algorithm Concurrency and scope PerPod do not share, and which cost.fromResponse settles too late: leave strategy out, or write EqualShare"
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

	// when is CEL over the request that must hold too, such as request.headers['x-plan'] == 'free'. Where it cannot be evaluated
	// (a header that is not there) it does not hold.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	When string `json:"when,omitempty"`

	// key gives one bucket to each distinct tuple of values. Absent: one bucket for all requests.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.filter(k, has(k.clientIP)).size() <= 1",message="clientIP may stand once in a key: remove the repeated entry"
	Key []KeyPart `json:"key,omitempty"`

	// onMissingKey says what becomes of a request that lacks a part of the key: Skip (this limit does not count it), Deny, or
	// Shared (all such requests have one bucket). Absent: Skip.
	// +optional
	OnMissingKey OnMissingKey `json:"onMissingKey,omitempty"`

	// rate is how many requests are admitted, over time, by all pods together. Required, but for algorithm Concurrency.
	// +optional
	Rate Rate `json:"rate,omitzero"`

	// burst is how many requests may be admitted at once after a pause. Absent: the rate's own number of requests. Over any
	// interval of length W at most burst + rate * W requests are admitted.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="burst must be from 1 to 1000000000 requests: a limit whose burst is below 1 could never admit anything; leave it out for the rate's own number"
	Burst *int64 `json:"burst,omitempty"`

	// overrides give some keys numbers of their own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Overrides []Override `json:"overrides,omitempty"`

	// tiers choose the numbers by a value of the request, such as the plan that a header names.
	// +optional
	Tiers Tiers `json:"tiers,omitzero"`

	// cost is how many tokens a request takes. Absent: 1.
	// +optional
	Cost *Cost `json:"cost,omitempty"`

	// algorithm is TokenBucket (a rate with bursts) or Concurrency (how many requests may be under way at once).
	// +optional
	// +default="TokenBucket"
	Algorithm Algorithm `json:"algorithm,omitempty"`

	// maxInFlight is how many requests may be under way at once, in all pods together, for algorithm Concurrency.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="maxInFlight must be from 1 to 1000000000"
	MaxInFlight *int64 `json:"maxInFlight,omitempty"`

	// mode is Enforce, or Shadow: count what would have been denied, and deny nothing.
	// +optional
	// +default="Enforce"
	Mode Mode `json:"mode,omitempty"`

	// onExceed is Deny, or Delay: hold a request until there is a token for it, for at most maxDelay, and deny it only where that
	// is not enough. It shapes bursts into the rate.
	// +optional
	// +default="Deny"
	OnExceed OnExceed `json:"onExceed,omitempty"`

	// maxDelay is how long a request may be held, as a duration such as 500ms: at most 60s.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}(h|m|s|ms))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('60s')",message="maxDelay must be a duration from 1ms to 60s, such as 500ms"
	MaxDelay string `json:"maxDelay,omitempty"`

	// scope is Total (the pods together admit what the limit says, however many there are) or PerPod (each pod admits the
	// whole limit, so the total grows with the number of pods).
	// +optional
	// +default="Total"
	Scope Scope `json:"scope,omitempty"`

	// strategy says how the pods share the limit. Adaptive: tokens are lent to the pods where the demand is, so that any number
	// of pods admits what one would. EqualShare: each of N pods enforces one N-th. Absent: Adaptive, and EqualShare for algorithm
	// Concurrency and for cost.fromResponse, which lend nothing.
	// +optional
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

// Algorithm says what a limit counts.
// +kubebuilder:validation:Enum=TokenBucket;Concurrency
type Algorithm string

const (
	// TokenBucket admits a rate, with bursts (GCRA; the committed bucket of RFC 2697).
	TokenBucket Algorithm = "TokenBucket"
	// Concurrency admits while fewer than so many requests are under way.
	Concurrency Algorithm = "Concurrency"
)

// OnExceed says what becomes of a request that is over the limit.
// +kubebuilder:validation:Enum=Deny;Delay
type OnExceed string

const (
	// ExceedDeny denies at once.
	ExceedDeny OnExceed = "Deny"
	// ExceedDelay holds the request until there is a token.
	ExceedDelay OnExceed = "Delay"
)

// Strategy says how pods share a limit.
// +kubebuilder:validation:Enum=EqualShare;Adaptive
type Strategy string

const (
	// EqualShare gives each of N pods one N-th of the rate and of the burst.
	EqualShare Strategy = "EqualShare"
	// Adaptive lends the tokens of the limit to the pods where the demand is.
	Adaptive Strategy = "Adaptive"
)

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
