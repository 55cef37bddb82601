// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Match holds when every field that is present holds.
//
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.methods) || has(self.headers) || has(self.query) || has(self.hosts) || has(self.grpc)",message="a match needs at least one of path, methods, headers, query, hosts and grpc; to count every request leave match out"
// +kubebuilder:validation:XValidation:rule="!(has(self.grpc) && (has(self.path) || has(self.methods)))",message="grpc says path and method already: leave out path and methods, or leave out grpc"
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

	// query holds when each entry of the list holds for the query of the request's URL.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Query []QueryMatch `json:"query,omitempty"`

	// hosts holds when the request's host is one of the list: a name such as shop.example, or *.shop.example for every name
	// below it. The port does not count, nor does the case of letters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Hosts []string `json:"hosts,omitempty"`

	// grpc matches calls of gRPC by service and method.
	// +optional
	GRPC GRPCMatch `json:"grpc,omitzero"`
}

// PathMatchType says how a path is compared.
// +kubebuilder:validation:Enum=Exact;PathPrefix;RegularExpression;Template
type PathMatchType string

const (
	// PathExact compares the whole path.
	PathExact PathMatchType = "Exact"
	// PathPrefix compares by segments: /v1 matches /v1 and /v1/x, not /v10.
	PathPrefix PathMatchType = "PathPrefix"
	// PathRegularExpression matches the whole path with an expression in RE2's syntax.
	PathRegularExpression PathMatchType = "RegularExpression"
	// PathTemplate has variables for segments: /users/{user}/orders.
	PathTemplate PathMatchType = "Template"
)

// PathMatch compares the path of a request, after dot segments, repeated slashes and percent-encoding of unreserved
// characters have been resolved; the request itself is forwarded as it was sent.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || self.value.startsWith('/')",message="value must be an absolute path, such as /v1/",fieldPath=".value"
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || (!self.value.contains('?') && !self.value.contains('#') && !self.value.matches('\\\\s'))",message="value is a path alone: leave out the query, the fragment and spaces, as in /v1/orders",fieldPath=".value"
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || (!self.value.contains('//') && !self.value.matches('/[.][.]?(/|$)'))",message="value must have no empty, '.' or '..' segments: a request's path is compared after these are resolved, so it would never match; write /v1/orders",fieldPath=".value"
type PathMatch struct {
	// type is PathPrefix (by whole segments: /v1 matches /v1 and /v1/x, not /v10), Exact, Template (/users/{user}/orders: a
	// variable stands for one segment, {rest...} at the end for all that follow) or RegularExpression (RE2, on the whole path).
	// +optional
	// +default="PathPrefix"
	Type PathMatchType `json:"type,omitempty"`

	// value is the path, which starts with a slash, or the expression.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// ValueMatchType says how a value is compared.
// +kubebuilder:validation:Enum=Exact;RegularExpression;Present
type ValueMatchType string

const (
	// ValueExact compares the whole value.
	ValueExact ValueMatchType = "Exact"
	// ValueRegularExpression matches the whole value with an expression in RE2's syntax.
	ValueRegularExpression ValueMatchType = "RegularExpression"
	// ValuePresent holds whatever the value is.
	ValuePresent ValueMatchType = "Present"
)

// HeaderMatch compares one header of a request. Of a header with several lines, one line is enough.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != (self.type == 'Present')",message="value is required, but for type Present, which takes none: {name: X-Tenant, value: acme} or {type: Present, name: X-Tenant}",fieldPath=".value"
type HeaderMatch struct {
	// type is Exact, RegularExpression (RE2, on the whole value) or Present.
	// +optional
	// +default="Exact"
	Type ValueMatchType `json:"type,omitempty"`

	// name is the header's name; upper and lower case are the same.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="name must be the name of an HTTP header, such as X-Tenant"
	Name string `json:"name,omitempty"`

	// value is the value to find.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// QueryMatch compares one parameter of a request's query. Of a parameter that is repeated, one value is enough.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != (self.type == 'Present')",message="value is required, but for type Present, which takes none: {name: plan, value: free} or {type: Present, name: plan}",fieldPath=".value"
type QueryMatch struct {
	// type is Exact, RegularExpression (RE2, on the whole value) or Present.
	// +optional
	// +default="Exact"
	Type ValueMatchType `json:"type,omitempty"`

	// name is the parameter's name, after decoding. Upper and lower case differ.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// value is the value to find, after decoding.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// GRPCMatch compares a call's service and method. A request counts as a call of gRPC by its content type.
//
// +kubebuilder:validation:MinProperties=1
type GRPCMatch struct {
	// service is the full name of the service, with its package.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_.]*$')",message="service is the full name of a service, such as shop.v1.Cart"
	Service string `json:"service,omitempty"`

	// method is the name of the method.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="method is the name of a method, such as AddItem"
	Method string `json:"method,omitempty"`
}

// Exempt names requests that no limit of the policy counts: any entry of any list is enough.
//
// +kubebuilder:validation:MinProperties=1
type Exempt struct {
	// cidrs are addresses of clients, such as 10.0.0.0/8: of the peer that opened the connection.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="cidrs are ranges of addresses, such as 10.0.0.0/8 or 2001:db8::/32; write one address as 10.1.2.3/32"
	CIDRs []string `json:"cidrs,omitempty"`

	// paths are paths of requests. A request is exempt only when its path matches in every reading, so that a spelling cannot
	// borrow an exemption.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Paths []PathMatch `json:"paths,omitempty"`

	// headers are headers of requests. Whoever can send the header is exempt: use one that your edge sets or strips.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Headers []HeaderMatch `json:"headers,omitempty"`
}
