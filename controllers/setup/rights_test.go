// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// right is what the operator may do with one resource, and what for.
type right struct{ scope, resource, names, verbs, why string }

// rights has every right of config/rbac/role.yaml, which the chart grants. One without a reason fails the test, and a reason
// without a right does.
var rights = []right{
	{"cluster", "ratelimitpolicies.ratelimit.headgate.dev", "", "get list patch watch", "to know the policies; patch takes the annotation away by which a person releases a share"},
	{"cluster", "ratelimitpolicies.ratelimit.headgate.dev/status", "", "patch", "to say what is enforced"},
	{"cluster", "pods", "", "get list watch", "to count the pods that share a limit, and to tell which of them live"},
	{"cluster", "nodes", "", "get list watch", "to tell that the pods of a dead node have ended"},
	{"cluster", "namespaces", "", "get list watch", "to read a namespace's mode, Pod Security level and labels"},
	{"cluster", "services", "", "get list watch", "to find the ports that lead to an app, and ways around its sidecar"},
	{"cluster", "networkpolicies.networking.k8s.io", "", "get list watch", "to report one that keeps clients from the sidecar"},
	{"cluster", "deployments.apps", "", "get list patch watch", "to find a policy's target; patch restarts it (not with rollout.enabled: false)"},
	{"cluster", "statefulsets.apps", "", "get list patch watch", "as of Deployments"},
	{"cluster", "daemonsets.apps", "", "get list patch watch", "as of Deployments"},
	{"cluster", "replicasets.apps", "", "get list watch", "to find the Deployment that a pod is of"},
	{"cluster", "pods/eviction", "", "create", "to replace a pod that came up without the sidecar, as its PodDisruptionBudget allows (not with rollout.enabled: false)"},
	{"cluster", "events", "", "list", "to read why a restarted workload makes no pods"},
	{"cluster", "events.events.k8s.io", "", "create patch", "to say what happened to a policy or a workload"},
	{"cluster", "configmaps", "headgate-ca", "create get list patch watch", "to bring the authority to the namespaces that have policies; of each one ConfigMap, by name"},
	{"cluster", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "headgate-operator", "get list patch watch", "to keep its own webhook's authority, and whom it is called for"},
	{"cluster", "validatingwebhookconfigurations.admissionregistration.k8s.io", "headgate-operator", "get list patch watch", "to keep its own webhook's authority"},
	{"cluster", "tokenreviews.authentication.k8s.io", "", "create", "to tell who asks for quota or metrics"},
	{"cluster", "subjectaccessreviews.authorization.k8s.io", "", "create", "to tell who may read metrics"},
	{"headgate-system", "secrets", "headgate-operator-cert", "get list update watch", "to keep its certificate (without update where cert-manager does)"},
	{"headgate-system", "leases.coordination.k8s.io", "", "create", "to elect the first leader; Kubernetes cannot narrow create by name"},
	{"headgate-system", "leases.coordination.k8s.io", "headgate-operator", "get update", "to elect a leader, and to raise the epoch"},
}

func TestEveryRightOfTheOperatorHasAReason(t *testing.T) {
	text, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[right]bool{}
	for doc := range strings.SplitSeq(string(text), "---\n") {
		var role rbacv1.Role // a ClusterRole has the same form
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") || len(rule.NonResourceURLs) > 0 {
				t.Errorf("a rule is without bounds: %v", rule)
			}
			slices.Sort(rule.Verbs)
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					name, sub, _ := strings.Cut(resource, "/")
					if group != "" {
						name += "." + group
					}
					if sub != "" {
						name += "/" + sub
					}
					r := right{cmp.Or(role.Namespace, "cluster"), name, strings.Join(rule.ResourceNames, " "), strings.Join(rule.Verbs, " "), ""}
					granted[r] = true
				}
			}
		}
	}
	joined := map[right][]string{} // controller-gen may write one resource's verbs into two rules
	for r := range granted {
		k := r
		k.verbs = ""
		joined[k] = append(joined[k], strings.Fields(r.verbs)...)
	}
	have := map[right]bool{}
	for k, verbs := range joined {
		slices.Sort(verbs)
		k.verbs = strings.Join(slices.Compact(verbs), " ")
		have[k] = true
	}
	for _, r := range rights {
		if r.why == "" {
			t.Errorf("%s %s: say why", r.scope, r.resource)
		}
		r.why = ""
		if !have[r] {
			t.Errorf("there is a reason for a right that is not granted: %+v", r)
		}
		delete(have, r)
	}
	for r := range have {
		t.Errorf("nobody says why the operator has this right: %+v", r)
	}
}
