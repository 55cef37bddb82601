// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// webhook looks at how pods get the sidecar: at the configuration, and at pods that were tried.
func (d *diagnosis) webhook() {
	if d.blind("webhook") {
		return
	}
	w, o := &d.Webhook, &d.Operator
	why := "new pods start without the sidecar, and are not limited"
	if w.Fails {
		why = "no new pod of a namespace with policies can be created"
	}
	reinstall := []string{fmt.Sprintf("helm upgrade headgate charts/headgate -n %s", o.Namespace)}
	restart := []string{fmt.Sprintf("kubectl rollout restart deployment/%s -n %s", o.Name, o.Namespace)}
	service := fmt.Sprintf("service/%s -n %s", o.Name, o.Namespace)
	switch {
	case !w.Configured && !d.blindOperator():
		if !d.Has(OperatorMissing) {
			d.problem(Finding{Code: WebhookMissing, What: "there is no webhook configuration", Where: []string{"mutatingwebhookconfiguration/" + o.Name}, Why: why,
				Do: "install the chart again", Commands: reinstall})
		}
		d.uncalled = true
	case d.away:
		d.uncalled = true // nothing answers, for a reason that is named
	case !w.Service:
		d.uncalled = true
		d.problem(Finding{Code: WebhookNoEndpoints, What: "the Service that the API server asks is not there", Where: []string{service}, Why: why,
			Do: "install the chart again", Commands: reinstall})
	case w.Endpoints == 0 && !d.blind("endpoints"):
		d.uncalled = true
		d.problem(Finding{Code: WebhookNoEndpoints, What: "the Service that the API server asks leads to no pod that is ready", Where: []string{service}, Why: why,
			Do:       "its selector must match the operator's pods, and they must be ready",
			Commands: []string{fmt.Sprintf("kubectl get endpointslices -n %s -l kubernetes.io/service-name=%s", o.Namespace, o.Name), fmt.Sprintf("kubectl get pods -n %s --show-labels", o.Namespace)}})
	case !w.Called:
		d.uncalled = true
		if len(d.Policies) == 0 {
			break // without policies it has no rules, so that nothing depends on it
		}
		d.problem(Finding{Code: WebhookNotCalled, What: "the webhook is never called: its configuration has no rules", Where: []string{"mutatingwebhookconfiguration/" + o.Name}, Why: why,
			Do: "the operator writes them: restart it, and look at its logs if they do not come", Commands: restart})
	default:
		d.uncovered(why, restart)
	}
	d.trials(why)
}

func (d *diagnosis) blindOperator() bool { return d.Operator.Deployment == nil && d.blind("operator") }

// uncovered finds namespaces with policies whose pods the webhook is not called for.
func (d *diagnosis) uncovered(why string, restart []string) {
	var out []string
	for i := range d.Policies {
		if ns := d.Policies[i].Namespace; !d.Webhook.Covers[ns] && !slices.Contains(out, "namespace/"+ns) {
			out = append(out, "namespace/"+ns)
		}
	}
	if len(out) > 0 {
		d.uncalled = true
		d.problem(Finding{Code: WebhookNotCalled, What: "the webhook is not called for pods of " + plural(len(out), "namespace") + " with policies", Where: out, Why: why,
			Do: "the operator keeps the list of namespaces: restart it, and look at its logs if that does not help", Commands: restart})
	}
}

// WebhookName is the name of the one webhook that injects.
const WebhookName = "inject.ratelimit.headgate.dev"

// trials judges by the pods that were created for the look of it.
func (d *diagnosis) trials(why string) {
	var bare, refused []string
	injected := 0
	for i := range d.Trials {
		t := &d.Trials[i]
		where := fmt.Sprintf("a pod of %s -n %s", strings.ToLower(t.Workload.String()), t.Workload.Namespace)
		switch {
		case t.Injected:
			injected++
		case t.Refused == "":
			bare = append(bare, where)
		case d.uncalled || d.away: // what refuses it was named
		case strings.Contains(t.Refused, WebhookName):
			bare = append(bare, where+": "+t.Refused)
		default:
			refused = append(refused, where+": "+t.Refused)
		}
	}
	if len(bare) > 0 && !d.uncalled {
		what := "the API server does not get an answer of the webhook, though the operator is ready"
		if d.Webhook.Reached != "" {
			what += ": " + d.Webhook.Reached
		}
		d.uncalled = true
		d.problem(Finding{Code: WebhookUnreachable, What: what, Where: bare, Why: why,
			Do: fmt.Sprintf("let the API server reach port %d of the operator's pods: a firewall between the control plane and the nodes, or a NetworkPolicy%s, stands between", portWebhook, d.suspects(networkingv1.PolicyTypeIngress, d.Operator.Namespace, nil)),
			Commands: []string{
				fmt.Sprintf("kubectl get --raw '/api/v1/namespaces/%s/services/https:%s:443/proxy/'", d.Operator.Namespace, d.Operator.Name),
				fmt.Sprintf("kubectl get networkpolicies -n %s", d.Operator.Namespace),
			}})
	}
	if len(refused) > 0 {
		d.notice(Finding{Code: PodsRefused, What: "the cluster refuses pods", Where: refused, Why: "the workload cannot be restarted or scaled, with or without the sidecar",
			Do: "look at what the API server says"})
	}
	if injected > 0 && len(bare) == 0 {
		d.well("webhook", fmt.Sprintf("a pod that was tried in %s got the sidecar", plural(injected, "namespace")))
	}
}

// sorted lists the keys of a map.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
