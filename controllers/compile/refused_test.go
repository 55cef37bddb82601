// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// What the API server's own rules let through is refused here, and by the admission webhook with the same words.
func TestWhatCannotBeEnforcedIsRefusedWithWhatToWriteInstead(t *testing.T) {
	limit := func(fields string) string {
		return "limits: [{name: ok, rate: {requests: 1, per: 1s}}, {name: all, rate: {requests: 100, per: 1s}, " + fields + "}]"
	}
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"a path expression that does not compile":  {limit(`match: [{path: {type: RegularExpression, value: "/(a"}}]`), []string{"spec.limits[1].match[0].path.value", "no regular expression of RE2", "write for example"}},
		"a look-ahead, which RE2 does not know":    {limit(`match: [{headers: [{name: X, type: RegularExpression, value: "(?!a)"}]}]`), []string{"spec.limits[1].match[0].headers[0].value", "RE2"}},
		"a query expression that does not compile": {limit(`match: [{query: [{name: q, type: RegularExpression, value: "*"}]}]`), []string{"match[0].query[0].value", "RE2"}},
		"a template with half a variable":          {limit(`match: [{path: {type: Template, value: "/users/u{user}"}}]`), []string{"match[0].path.value", `"u{user}"`, "/users/{user}/orders"}},
		"a template with a variable twice":         {limit(`match: [{path: {type: Template, value: "/{a}/{a}"}}]`), []string{"match[0].path.value", "variable a stands twice"}},
		"a template with a rest in the middle":     {limit(`match: [{path: {type: Template, value: "/{a...}/b"}}]`), []string{"match[0].path.value", "nothing may follow", "/files/{path...}"}},
		"a host with a port":                       {limit(`match: [{hosts: ["shop.example:8080"]}]`), []string{"match[0].hosts[0]", "without a port", "shop.example or *.shop.example"}},
		"a when that does not compile":             {limit(`when: "request.method = 'GET'"`), []string{"spec.limits[1].when", "Syntax error", "write for example request.headers"}},
		"a when that is no condition":              {limit(`when: "request.method"`), []string{"spec.limits[1].when", "yields string, and bool is needed"}},
		"a key expression of an unknown name":      {limit(`key: [{expression: "request.body"}]`), []string{"spec.limits[1].key[0].expression", "undeclared reference", "write for example"}},
		"a variable of no template":                {limit(`key: [{pathVariable: user}]`), []string{"spec.limits[1].key[0].pathVariable", "no path template with user", `/users/{user}`}},
		"a variable that one match lacks":          {limit(`key: [{pathVariable: user}], match: [{path: {type: Template, value: "/u/{user}"}}, {methods: [GET]}]`), []string{"key[0].pathVariable", "match[1] has no path template with user"}},
		"an override of too few values":            {limit(`key: [{header: A}, {header: B}], overrides: [{values: [[a]], rate: {requests: 1, per: 1s}}]`), []string{"spec.limits[1].overrides[0].values[0]", "1 values for a key of 2 parts"}},
		"a delay that is too long":                 {limit(`onExceed: Delay, maxDelay: 2m`), []string{"spec.limits[1].maxDelay", "up to 60s", "500ms"}},
		"an override of no key":                    {limit(`key: [{header: A}], overrides: [{values: [], rate: {requests: 1, per: 1s}}]`), []string{"spec.limits[1].overrides[0].values", "[[gold-7f3]]"}},
		"an override of an address that is none":   {limit(`key: [{clientIP: {}}], overrides: [{values: [[10.0.0.0/8]], rate: {requests: 1, per: 1s}}]`), []string{"overrides[0].values[0]", "no address", "10.1.2.3"}},
		"a key that has two overrides":             {limit(`key: [{header: A}], overrides: [{values: [[a]], rate: {requests: 1, per: 1s}}, {values: [[b], [a]], rate: {requests: 2, per: 1s}}]`), []string{"overrides[1].values[1]", "has numbers already"}},
		"an override with a bad period":            {limit(`key: [{header: A}], overrides: [{values: [[a]], rate: {requests: 1, per: soon}}]`), []string{"overrides[0].rate.per", "write for example 1s"}},
		"a tier found nowhere":                     {limit(`tiers: {by: {}, tiers: [{name: gold, rate: {requests: 1, per: 1s}}]}`), []string{"spec.limits[1].tiers.by", "exactly one of header"}},
		"a cost above the burst":                   {limit(`cost: {tokens: 101}`), []string{"spec.limits[1].cost.tokens", "101 is more than burst 100", "write burst: 101 or more"}},
		"a cost above an override's burst":         {limit(`cost: {tokens: 10}, key: [{header: A}], overrides: [{values: [[a]], rate: {requests: 1, per: 1s}}]`), []string{"cost.tokens", "10 is more than burst 1", "overrides[0]"}},
		"an estimate above the burst":              {limit(`cost: {fromResponse: {header: X, estimate: 500}}`), []string{"cost.fromResponse.estimate", "500 is more than burst 100"}},
		"a cost expression that is a string":       {limit(`cost: {expression: "request.path"}`), []string{"spec.limits[1].cost.expression", "a number is needed", "write for example"}},
		"a cost of two things":                     {limit(`cost: {tokens: 1, header: X}`), []string{"spec.limits[1].cost", "exactly one of"}},
		"concurrency without a number":             {`limits: [{name: all, algorithm: Concurrency}]`, []string{"spec.limits[0].maxInFlight", "such as maxInFlight: 50"}},
		"a hold that is too long":                  {limit(``) + "\nmaxHold: 2s", []string{"spec.maxHold", "from 0s to 1s", "50ms"}},
		"an exempt range that is none":             {limit(``) + "\nexempt: {cidrs: [10.0.0.0]}", []string{"spec.exempt.cidrs[0]", "no range of addresses", "10.0.0.0/8"}},
		"an exempt path that does not compile":     {limit(``) + "\nexempt: {paths: [{type: RegularExpression, value: '('}]}", []string{"spec.exempt.paths[0].value", "RE2"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RateLimitPolicy{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &p.Spec); err != nil {
				t.Fatal(err)
			}
			_, err := compile.Policy(p, "")
			if err == nil {
				t.Fatal("accepted: it would silently not be enforced as written")
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the message lacks %q:\n%v", w, err)
				}
			}
		})
	}
}

func TestANamespaceInShadowModeMakesEveryLimitCountOnly(t *testing.T) {
	p := &v1alpha1.RateLimitPolicy{}
	p.Spec.Limits = []v1alpha1.Limit{{Name: "all", Rate: v1alpha1.Rate{Requests: 1, Per: "1s"}}}
	mode := compile.NamespaceMode(map[string]string{v1alpha1.LabelMode: "Shadow"})
	for given, want := range map[v1alpha1.Mode]bool{mode: true, compile.NamespaceMode(nil): false} {
		out, err := compile.Policy(p, given)
		if err != nil || out.Limits[0].Shadow != want {
			t.Errorf("namespace mode %q: shadow = %v, %v", given, out.Limits[0].Shadow, err)
		}
	}
}

func TestTheOldestPolicyDecidesHowClientsAreAnswered(t *testing.T) {
	old := policy(func(p *v1alpha1.RateLimitPolicy) {
		p.Name, p.UID = "old", "1"
		p.CreationTimestamp.Time = p.CreationTimestamp.AddDate(2000, 0, 0)
		p.Spec.Response = v1alpha1.Response{Body: "old"}
	})
	young := policy(func(p *v1alpha1.RateLimitPolicy) {
		p.Name, p.UID = "a-young", "2"
		p.CreationTimestamp.Time = p.CreationTimestamp.AddDate(2001, 0, 0)
		p.Spec.Response = v1alpha1.Response{Body: "young"}
	})
	silent := policy(func(p *v1alpha1.RateLimitPolicy) { p.Name, p.UID = "oldest", "3" })
	if got := compile.Snapshot(young, old, silent).Response.GetBody(); got != "old" {
		t.Errorf("clients are answered %q", got)
	}
	if got := compile.Snapshot(silent).Response; got != nil {
		t.Errorf("clients are answered %v where nobody says how", got)
	}
}
