// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Cost is how many tokens a request takes. Whole tokens count: a fraction is rounded up, and no request is free: what is
// below 1 costs 1. A value that is no number, or is negative or infinite, costs max.
//
// +kubebuilder:validation:XValidation:rule="[has(self.tokens), has(self.header), has(self.expression), has(self.fromResponse)].filter(x, x).size() == 1",message="cost has exactly one of tokens, header, expression and fromResponse, such as {tokens: 5}"
// +kubebuilder:validation:XValidation:rule="!has(self.fallback) || has(self.header)",message="fallback is the cost of a request without the header: leave it out, or name a header"
type Cost struct {
	// tokens is what each request costs.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="tokens must be from 1 to 1000000000; to leave requests out of a limit use match or exempt"
	Tokens *int64 `json:"tokens,omitempty"`

	// header holds the cost. Use one that clients cannot write.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="header must be the name of an HTTP header, such as X-Request-Cost"
	Header string `json:"header,omitempty"`

	// fallback is the cost of a request that lacks the header. Absent: 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="fallback must be from 1 to 1000000000"
	Fallback *int64 `json:"fallback,omitempty"`

	// expression is CEL that yields a number, such as request.method == 'POST' ? 5 : 1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// fromResponse takes the cost from the answer: an estimate is taken first, and the rest settled afterwards.
	// +optional
	FromResponse ResponseCost `json:"fromResponse,omitzero"`

	// max is the most that one request costs: more is cut to it. Absent: the limit's burst for what is no number, and else no
	// cut: a request that costs more than the burst is denied, and told so.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="max must be from 1 to 1000000000"
	Max *int64 `json:"max,omitempty"`
}

// ResponseCost is a cost that only the answer tells, such as the tokens that a language model used.
type ResponseCost struct {
	// header of the answer (or its trailer) holds the cost. An answer without it, or one that is no number, costs the estimate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="header must be the name of an HTTP header, such as X-Tokens-Used"
	Header string `json:"header,omitempty"`

	// estimate is taken before the request is forwarded.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000000",message="estimate must be from 1 to 1000000000"
	Estimate int64 `json:"estimate,omitempty"` //nolint:kubeapilinter // the rule refuses zero, and says what to write instead; a minimum would not

	// maxDebt is how far below zero settling may take a bucket: further requests wait until the debt is earned. Absent: the
	// limit's burst.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1000000000",message="maxDebt must be from 0 to 1000000000"
	MaxDebt *int64 `json:"maxDebt,omitempty"`
}
