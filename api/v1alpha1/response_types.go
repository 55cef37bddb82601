// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Response is what clients are answered. gRPC calls are denied with RESOURCE_EXHAUSTED whatever stands here.
//
// +kubebuilder:validation:MinProperties=1
type Response struct {
	// status is the HTTP status of a denial. Absent: 429.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 400 && self <= 599",message="status must be from 400 to 599, such as 503; leave it out for 429"
	Status *int32 `json:"status,omitempty"`

	// body replaces the problem document of a denial. ${limit} stands for the name of the limit that denied, as policy/limit,
	// and ${retryAfterSeconds} for the seconds until asking again makes sense.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="!self.replace('${limit}', '').replace('${retryAfterSeconds}', '').contains('${')",message="body knows ${limit} and ${retryAfterSeconds} only"
	Body string `json:"body,omitempty"`

	// contentType is the type of body. Absent: text/plain; charset=utf-8.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~][ -~]*$')",message="contentType must be a media type, such as application/json"
	ContentType string `json:"contentType,omitempty"`

	// fields are further header fields of a denial.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Fields []HeaderField `json:"fields,omitempty"`

	// headers says how allowed and denied answers alike tell the client where it stands: None, IETFDraft10 (RateLimit-Policy
	// and RateLimit of draft-ietf-httpapi-ratelimit-headers-10) or XRateLimit (X-RateLimit-Limit, -Remaining and -Reset).
	// +optional
	// +default="None"
	Headers HeaderFamily `json:"headers,omitempty"`
}

// HeaderFamily names the header fields that tell a client where it stands.
// +kubebuilder:validation:Enum=None;IETFDraft10;XRateLimit
type HeaderFamily string

const (
	// HeadersNone tells nothing but Retry-After in a denial.
	HeadersNone HeaderFamily = "None"
	// HeadersIETFDraft10 are the fields of the IETF's draft, version 10.
	HeadersIETFDraft10 HeaderFamily = "IETFDraft10"
	// HeadersXRateLimit are the fields that most APIs send today.
	HeadersXRateLimit HeaderFamily = "XRateLimit"
)

// HeaderField is one line of a header.
type HeaderField struct {
	// name is the field's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="name must be the name of an HTTP header, such as X-Support"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['connection', 'content-length', 'content-type', 'date', 'retry-after', 'trailer', 'transfer-encoding', 'upgrade', 'keep-alive'])",message="the answer's framing, its type and Retry-After are written by Headgate: choose another name, such as X-Support"
	Name string `json:"name,omitempty"`

	// value is the field's value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]([ -~]*[!-~])?$')",message="value must be printable ASCII without spaces around it"
	Value string `json:"value,omitempty"`
}

// Mode says whether a limit denies.
// +kubebuilder:validation:Enum=Enforce;Shadow
type Mode string

const (
	// ModeEnforce denies what is over the limit.
	ModeEnforce Mode = "Enforce"
	// ModeShadow counts what it would have denied, and denies nothing.
	ModeShadow Mode = "Shadow"
)
