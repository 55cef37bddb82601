// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/test/apiserver"
)

// A real API server with the CRD: the messages below are what `kubectl apply` prints.
func TestEveryKindOfBadPolicyIsRefusedWithWhatToWriteInstead(t *testing.T) {
	c := apiServer(t)
	const good = `
targetRefs: [{kind: Deployment, name: checkout}]
limits: [{name: all, rate: {requests: 100, per: 1s}}]`
	limit := func(fields string) string {
		return "targetRefs: [{kind: Deployment, name: checkout}]\nlimits: [{name: all, rate: {requests: 100, per: 1s}, " + fields + "}]"
	}
	rate := func(r string) string {
		return "targetRefs: [{kind: Deployment, name: checkout}]\nlimits: [{name: all, rate: " + r + "}]"
	}
	target := func(ref string) string {
		return "targetRefs: [" + ref + "]\nlimits: [{name: all, rate: {requests: 100, per: 1s}}]"
	}
	many := func(n int, format string) string {
		s := make([]string, n)
		for i := range s {
			s[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(s, ", ")
	}
	tests := map[string]struct {
		spec string
		want []string // each in the message; none = accepted
	}{
		"the smallest policy":  {spec: good},
		"five per hour":        {spec: rate(`{requests: 5, per: 1h}`)},
		"a period in parts":    {spec: rate(`{requests: 5, per: 1h30m}`)},
		"a whole-year period":  {spec: rate(`{requests: 1, per: 8784h}`)},
		"all of a limit":       {spec: limit(`burst: 200, scope: PerPod, strategy: EqualShare, key: [{header: X-API-Key}, {clientIP: {ipv4PrefixBits: 24}}], match: [{path: {value: /v1/}, methods: [GET], headers: [{name: X-T, value: a}]}]`)},
		"every kind of target": {spec: target(`{kind: Deployment, name: a}, {kind: StatefulSet, name: a}, {kind: DaemonSet, name: a}, {kind: ReplicaSet, name: a, group: apps}`)},
		"named ports":          {spec: good + "\ninjection: {mode: NamedPort, rollout: Manual, ports: [http, grpc]}"},
		"numbered ports":       {spec: good + "\ninjection: {mode: Redirect, ports: [http, \"8080\"], preStopSleepSeconds: 0}"},
		"a sidecar of its own": {spec: good + "\ninjection: {sidecar: {image: \"registry.example/sidecar:v2\", resources: {requests: {cpu: 100m}}, imagePullSecrets: [{name: mirror}]}}"},

		"every kind of match":  {spec: limit(`match: [{path: {type: Template, value: "/users/{user}"}, headers: [{type: Present, name: X-A}, {type: RegularExpression, name: X-B, value: "a.*"}], query: [{name: plan, value: free}, {type: Present, name: q}], hosts: [shop.example, "*.shop.example"]}, {grpc: {service: shop.v1.Cart, method: Add}}, {path: {type: RegularExpression, value: ".*[.]png"}}], when: "request.method == 'GET'"`)},
		"every kind of key":    {spec: limit(`onMissingKey: Deny, key: [{cookie: session}, {query: api_key}, {request: Path}, {claimOfVerifiedJWT: {claim: sub}}]`)},
		"further keys":         {spec: limit(`onMissingKey: Shared, key: [{expression: "request.headers['x']"}, {clientIP: {trustedHops: 2}}, {pathVariable: user}], match: [{path: {type: Template, value: "/{user}"}}]`)},
		"overrides":            {spec: limit(`key: [{header: X-A}], overrides: [{values: [[gold], [silver]], rate: {requests: 1000, per: 1s}, burst: 5000}]`)},
		"tiers":                {spec: limit(`key: [{header: X-A}], tiers: {by: {header: X-Plan}, tiers: [{name: gold, rate: {requests: 1000, per: 1s}}]}`)},
		"every kind of cost":   {spec: "targetRefs: [{kind: Deployment, name: checkout}]\nlimits: [" + many(4, `{name: a%d, rate: {requests: 100, per: 1s}, cost: {tokens: 5, max: 9}}`) + "]"},
		"a cost by a header":   {spec: limit(`cost: {header: X-Cost, fallback: 3, max: 50}`)},
		"a cost in the answer": {spec: limit(`cost: {fromResponse: {header: X-Tokens-Used, estimate: 50, maxDebt: 1000}}`)},
		"a limit that delays":  {spec: limit(`onExceed: Delay, maxDelay: 1s500ms`)},
		"a concurrency limit":  {spec: "targetRefs: [{kind: Deployment, name: checkout}]\nlimits: [{name: guard, algorithm: Concurrency, maxInFlight: 50, mode: Shadow}]"},
		"all of a policy":      {spec: good + "\nmode: Shadow\nexempt: {cidrs: [10.0.0.0/8, '2001:db8::/32'], paths: [{value: /healthz}], headers: [{type: Present, name: X-Internal}]}\nresponse: {status: 503, body: '{\"limit\":\"${limit}\",\"wait\":${retryAfterSeconds}}', contentType: application/json, headers: IETFDraft10, fields: [{name: X-Support, value: 'mailto:a@b'}]}"},

		"no targets":                {spec: `limits: [{name: all, rate: {requests: 100, per: 1s}}]`, want: []string{"spec.targetRefs: Required value"}},
		"an empty list of targets":  {spec: target(""), want: []string{"spec.targetRefs", "should have at least 1 items"}},
		"too many targets":          {spec: target(many(17, "{kind: Deployment, name: a%d}")), want: []string{"spec.targetRefs: Too many", "at most 16"}},
		"a target that is repeated": {spec: target(`{kind: Deployment, name: a}, {kind: Deployment, name: a}`), want: []string{"spec.targetRefs", "each target may be named once"}},
		"a Service as target":       {spec: target(`{kind: Service, name: a}`), want: []string{"spec.targetRefs[0]", "kind must be Deployment, StatefulSet, DaemonSet or ReplicaSet"}},
		"a target of another group": {spec: target(`{group: batch, kind: Deployment, name: a}`), want: []string{"spec.targetRefs[0]", "group must be apps"}},
		"a target without a name":   {spec: target(`{kind: Deployment}`), want: []string{"spec.targetRefs[0].name: Required value"}},
		"a target's bad name":       {spec: target(`{kind: Deployment, name: Check_Out}`), want: []string{"spec.targetRefs[0].name", "such as checkout"}},

		"no limits":                      {spec: `targetRefs: [{kind: Deployment, name: a}]`, want: []string{"spec.limits: Required value"}},
		"too many limits":                {spec: "targetRefs: [{kind: Deployment, name: a}]\nlimits: [" + many(33, "{name: a%d, rate: {requests: 1, per: 1s}}") + "]", want: []string{"spec.limits: Too many", "at most 32"}},
		"two limits of one name":         {spec: "targetRefs: [{kind: Deployment, name: a}]\nlimits: [" + many(2, "{name: all, rate: {requests: 1%d, per: 1s}}") + "]", want: []string{"spec.limits[1]: Duplicate value", "all"}},
		"a limit without a name":         {spec: "targetRefs: [{kind: Deployment, name: a}]\nlimits: [{rate: {requests: 1, per: 1s}}]", want: []string{"spec.limits[0].name: Required value"}},
		"a limit with a bad name":        {spec: "targetRefs: [{kind: Deployment, name: a}]\nlimits: [{name: Per_Key, rate: {requests: 1, per: 1s}}]", want: []string{"spec.limits[0].name", "such as per-api-key"}},
		"a limit without a rate":         {spec: "targetRefs: [{kind: Deployment, name: a}]\nlimits: [{name: all}]", want: []string{"spec.limits[0]: Invalid value: algorithm TokenBucket has a rate, such as {requests: 100, per: 1s}"}},
		"a rate without a period":        {spec: rate(`{requests: 5}`), want: []string{"spec.limits[0].rate.per: Required value"}},
		"a rate without requests":        {spec: rate(`{per: 1s}`), want: []string{"spec.limits[0].rate.requests: Required value"}},
		"a rate of zero":                 {spec: rate(`{requests: 0, per: 1s}`), want: []string{"spec.limits[0].rate.requests", "requests must be from 1 to 1000000000", "{requests: 5, per: 1h}"}},
		"a negative rate":                {spec: rate(`{requests: -1, per: 1s}`), want: []string{"spec.limits[0].rate.requests", "from 1 to 1000000000"}},
		"an absurd rate":                 {spec: rate(`{requests: 1000000001, per: 1s}`), want: []string{"spec.limits[0].rate.requests", "from 1 to 1000000000"}},
		"a fraction of a request":        {spec: rate(`{requests: 0.5, per: 1s}`), want: []string{"spec.limits[0].rate.requests", "must be of type integer"}},
		"a period of zero":               {spec: rate(`{requests: 1, per: 0s}`), want: []string{"spec.limits[0].rate.per", "at least 1ms and at most 8784h"}},
		"a period that is too long":      {spec: rate(`{requests: 1, per: 9000h}`), want: []string{"spec.limits[0].rate.per", "at least 1ms and at most 8784h"}},
		"a period in days":               {spec: rate(`{requests: 1, per: 1d}`), want: []string{"spec.limits[0].rate.per", "write 24h for a day"}},
		"a period without a unit":        {spec: rate(`{requests: 1, per: "60"}`), want: []string{"spec.limits[0].rate.per", "such as 1s, 1m or 1h30m"}},
		"a negative period":              {spec: rate(`{requests: 1, per: -1s}`), want: []string{"spec.limits[0].rate.per", "such as 1s"}},
		"a burst of zero":                {spec: limit(`burst: 0`), want: []string{"spec.limits[0].burst", "burst must be from 1 to 1000000000", "leave it out"}},
		"a negative burst":               {spec: limit(`burst: -5`), want: []string{"spec.limits[0].burst", "from 1 to"}},
		"a strategy that is not there":   {spec: limit(`strategy: Central`), want: []string{`spec.limits[0].strategy: Unsupported value: "Central": supported values: "EqualShare", "Adaptive"`}},
		"lending what cannot be lent":    {spec: limit(`strategy: Adaptive, scope: PerPod`), want: []string{"strategy Adaptive lends tokens", "write EqualShare"}},
		"a scope that is not there":      {spec: limit(`scope: Node`), want: []string{`spec.limits[0].scope: Unsupported value: "Node": supported values: "Total", "PerPod"`}},
		"an empty key":                   {spec: limit(`key: []`), want: []string{"spec.limits[0].key", "at least 1 items"}},
		"a key of nothing":               {spec: limit(`key: [{}]`), want: []string{"spec.limits[0].key[0]", "exactly one of header, clientIP", "{header: X-API-Key}"}},
		"a key of two things in one":     {spec: limit(`key: [{header: A, clientIP: {}}]`), want: []string{"spec.limits[0].key[0]", "exactly one of header, clientIP"}},
		"a key with the address twice":   {spec: limit(`key: [{clientIP: {}}, {clientIP: {}}]`), want: []string{"spec.limits[0].key", "clientIP may stand once"}},
		"a key of too many parts":        {spec: limit(`key: [` + many(5, "{header: A%d}") + `]`), want: []string{"spec.limits[0].key: Too many", "at most 4"}},
		"a header that cannot exist":     {spec: limit(`key: [{header: "X API Key"}]`), want: []string{"spec.limits[0].key[0].header", "such as X-API-Key"}},
		"an IPv4 prefix that is too big": {spec: limit(`key: [{clientIP: {ipv4PrefixBits: 33}}]`), want: []string{"ipv4PrefixBits must be from 8 to 32"}},
		"an IPv6 prefix of zero":         {spec: limit(`key: [{clientIP: {ipv6PrefixBits: 0}}]`), want: []string{"ipv6PrefixBits must be from 16 to 128"}},
		"an empty match":                 {spec: limit(`match: [{}]`), want: []string{"spec.limits[0].match[0]", "to count every request leave match out"}},
		"an empty list of matches":       {spec: limit(`match: []`), want: []string{"spec.limits[0].match", "at least 1 items"}},
		"a relative path":                {spec: limit(`match: [{path: {value: v1}}]`), want: []string{"match[0].path.value", "such as /v1/"}},
		"a path with a query":            {spec: limit(`match: [{path: {value: "/v1?x=1"}}]`), want: []string{"match[0].path.value", "leave out the query"}},
		"a path that never matches":      {spec: limit(`match: [{path: {value: /a/../b}}]`), want: []string{"match[0].path.value", "it would never match"}},
		"a path with an empty segment":   {spec: limit(`match: [{path: {value: /a//b}}]`), want: []string{"match[0].path.value", "it would never match"}},
		"a path type that is not there":  {spec: limit(`match: [{path: {type: Regex, value: /a}}]`), want: []string{`Unsupported value: "Regex": supported values: "Exact", "PathPrefix", "RegularExpression", "Template"`}},
		"a method in small letters":      {spec: limit(`match: [{methods: [get]}]`), want: []string{"match[0].methods", "such as GET or POST"}},
		"a header match without a value": {spec: limit(`match: [{headers: [{name: X}]}]`), want: []string{"match[0].headers[0].value", "value is required", "{name: X-Tenant, value: acme}"}},
		"a header match of a bad name":   {spec: limit(`match: [{headers: [{name: "a b", value: c}]}]`), want: []string{"match[0].headers[0].name", "such as X-Tenant"}},

		"a template that is a query":                  {spec: limit(`match: [{path: {type: Template, value: "/a?b"}}]`), want: []string{"match[0].path.value", "leave out the query"}},
		"a Present match with a value":                {spec: limit(`match: [{headers: [{type: Present, name: X, value: a}]}]`), want: []string{"match[0].headers[0].value", "for type Present, which takes none"}},
		"a query match without a value":               {spec: limit(`match: [{query: [{name: plan}]}]`), want: []string{"match[0].query[0].value", "{name: plan, value: free}"}},
		"gRPC beside a path":                          {spec: limit(`match: [{grpc: {service: a.B}, path: {value: /}}]`), want: []string{"match[0]", "grpc says path and method already"}},
		"gRPC of nothing":                             {spec: limit(`match: [{grpc: {}}]`), want: []string{"match[0].grpc", "at least 1 properties"}},
		"a gRPC service that is a path":               {spec: limit(`match: [{grpc: {service: /a.B}}]`), want: []string{"match[0].grpc.service", "such as shop.v1.Cart"}},
		"an answer to a key that is not there":        {spec: limit(`onMissingKey: Deny`), want: []string{"spec.limits[0]", "onMissingKey is for a limit with a key"}},
		"a claim without a name":                      {spec: limit(`key: [{claimOfVerifiedJWT: {}}]`), want: []string{"key[0].claimOfVerifiedJWT.claim: Required value"}},
		"hops and a header":                           {spec: limit(`key: [{clientIP: {trustedHops: 1, fromHeader: X-Real-IP}}]`), want: []string{"key[0].clientIP", "write one of trustedHops"}},
		"no trusted hops":                             {spec: limit(`key: [{clientIP: {trustedHops: 0}}]`), want: []string{"trustedHops must be from 1 to 16", "leave it out"}},
		"overrides without a key":                     {spec: limit(`overrides: [{values: [[a]], rate: {requests: 1, per: 1s}}]`), want: []string{"spec.limits[0]", "overrides are for some values of a key"}},
		"overrides beside tiers":                      {spec: limit(`key: [{header: A}], overrides: [{values: [[a]], rate: {requests: 1, per: 1s}}], tiers: {by: {header: P}, tiers: [{name: gold, rate: {requests: 1, per: 1s}}]}`), want: []string{"spec.limits[0]", "overrides or tiers, not both"}},
		"an override of a zero rate":                  {spec: limit(`key: [{header: A}], overrides: [{values: [[a]], rate: {requests: 0, per: 1s}}]`), want: []string{"overrides[0].rate.requests", "from 1 to"}},
		"two tiers of one name":                       {spec: limit(`tiers: {by: {header: P}, tiers: [{name: gold, rate: {requests: 1, per: 1s}}, {name: gold, rate: {requests: 2, per: 1s}}]}`), want: []string{"tiers.tiers[1]: Duplicate value"}},
		"a cost of nothing":                           {spec: limit(`cost: {max: 5}`), want: []string{"spec.limits[0].cost", "exactly one of tokens, header, expression and fromResponse", "{tokens: 5}"}},
		"a cost of zero":                              {spec: limit(`cost: {tokens: 0}`), want: []string{"cost.tokens", "from 1 to 1000000000", "exempt"}},
		"a negative cost":                             {spec: limit(`cost: {tokens: -1}`), want: []string{"cost.tokens", "from 1 to 1000000000"}},
		"a fallback without a header":                 {spec: limit(`cost: {tokens: 2, fallback: 3}`), want: []string{"spec.limits[0].cost", "fallback is the cost of a request without the header"}},
		"an estimate of zero":                         {spec: limit(`cost: {fromResponse: {header: X, estimate: 0}}`), want: []string{"cost.fromResponse.estimate", "from 1 to"}},
		"concurrency with a rate":                     {spec: limit(`algorithm: Concurrency, maxInFlight: 5`), want: []string{"spec.limits[0]", "algorithm Concurrency has maxInFlight, and neither rate nor burst"}},
		"concurrency without a number":                {spec: "targetRefs: [{kind: Deployment, name: a}]\nlimits: [{name: a, algorithm: Concurrency}]", want: []string{"spec.limits[0]", "has maxInFlight"}},
		"concurrency with a cost":                     {spec: "targetRefs: [{kind: Deployment, name: a}]\nlimits: [{name: a, algorithm: Concurrency, maxInFlight: 5, cost: {tokens: 2}}]", want: []string{"spec.limits[0]", "leave out cost"}},
		"a delay without a bound":                     {spec: limit(`onExceed: Delay`), want: []string{"spec.limits[0]", "onExceed: Delay needs maxDelay, such as 500ms"}},
		"a bound without a delay":                     {spec: limit(`maxDelay: 500ms`), want: []string{"spec.limits[0]", "onExceed: Deny takes none"}},
		"a delay of an hour":                          {spec: limit(`onExceed: Delay, maxDelay: 1h`), want: []string{"spec.limits[0].maxDelay", "from 1ms to 60s"}},
		"an answer to what exceeds that is not there": {spec: limit(`onExceed: Drop`), want: []string{`supported values: "Deny", "Delay"`}},
		"an algorithm that is not there":              {spec: limit(`algorithm: Leaky`), want: []string{`supported values: "TokenBucket", "Concurrency"`}},
		"a mode that is not there":                    {spec: limit(`mode: Off`), want: []string{`supported values: "Enforce", "Shadow"`}},
		"an exemption of nothing":                     {spec: good + "\nexempt: {}", want: []string{"spec.exempt", "at least 1 properties"}},
		"an exempt address without a prefix":          {spec: good + "\nexempt: {cidrs: [10.0.0.1]}", want: []string{"spec.exempt.cidrs", "such as 10.0.0.0/8", "10.1.2.3/32"}},
		"a status of success":                         {spec: good + "\nresponse: {status: 200}", want: []string{"spec.response.status", "from 400 to 599"}},
		"a body with an unknown word":                 {spec: good + "\nresponse: {body: '${secret}'}", want: []string{"spec.response.body", "${limit} and ${retryAfterSeconds} only"}},
		"a field that breaks the framing":             {spec: good + "\nresponse: {fields: [{name: Content-Length, value: '5'}]}", want: []string{"response.fields[0].name", "choose another name, such as X-Support"}},
		"a field that breaks the line":                {spec: good + "\nresponse: {fields: [{name: X-A, value: \"a\\r\\nb\"}]}", want: []string{"response.fields[0].value", "printable ASCII"}},
		"headers of an unknown family":                {spec: good + "\nresponse: {headers: IETF}", want: []string{`supported values: "None", "IETFDraft10", "XRateLimit"`}},

		"an injection mode that is not there": {spec: good + "\ninjection: {mode: Magic}", want: []string{`spec.injection.mode: Unsupported value: "Magic": supported values: "Auto", "NamedPort", "Redirect", "None"`}},
		"a rollout that is not there":         {spec: good + "\ninjection: {rollout: Never}", want: []string{`supported values: "Automatic", "Manual"`}},
		"a port without quotes":               {spec: good + "\ninjection: {ports: [8080]}", want: []string{"spec.injection.ports", "must be of type string"}},
		"a port beyond all":                   {spec: good + "\ninjection: {ports: [\"65536\"]}", want: []string{"spec.injection.ports", "numbers from 1 to 65535"}},
		"a port in capitals":                  {spec: good + "\ninjection: {ports: [HTTP]}", want: []string{"spec.injection.ports", "names of container ports, such as http"}},
		"a port listed twice":                 {spec: good + "\ninjection: {ports: [http, http]}", want: []string{"spec.injection.ports[1]: Duplicate value"}},
		"a sleep beyond reason":               {spec: good + "\ninjection: {preStopSleepSeconds: 301}", want: []string{"spec.injection.preStopSleepSeconds"}},
		"a field that does not exist":         {spec: limit(`brust: 5`), want: []string{`unknown field "spec.limits[0].brust"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), policy(t, tc.spec), client.FieldValidation("Strict"), client.DryRunAll)
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the message lacks %q:\n%v", w, err)
				}
			}
		})
	}
}

func TestEverySampleIsAccepted(t *testing.T) {
	c := apiServer(t)
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d samples: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, u); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		u.SetNamespace("default")
		if err := c.Create(t.Context(), u, client.FieldValidation("Strict"), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		typed := &v1alpha1.RateLimitPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
			t.Errorf("%s: %v", file, err)
		} else if _, err := compile.Policy(typed, ""); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// policy is unstructured, so that a test can write what the Go types cannot.
func policy(t *testing.T, spec string) client.Object {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "RateLimitPolicy",
		"metadata": map[string]any{"generateName": "test-", "namespace": "default"},
	}}
	var s map[string]any
	if err := yaml.Unmarshal([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = s
	return u
}

func apiServer(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(apiserver.Start(t, "../../config/crd/bases"), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(context.Background(), &v1alpha1.RateLimitPolicyList{}); err != nil {
		t.Fatal(err)
	}
	return c
}
