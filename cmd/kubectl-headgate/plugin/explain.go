// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
)

func newExplain(s *session) *cobra.Command {
	var request, pod, peer, output string
	var headers []string
	c := &cobra.Command{
		Use:   "explain POLICY",
		Short: "Say which limits a request would meet, by which keys, and what would happen to it now",
		Long: `Asks a pod that enforces the policy what each of its limits would make of a request: whether it counts it,
by which key and at which cost, how much is left, and what would happen. Nothing is taken from any limit.

The answer is of one pod and of now: other pods may have more left, or less.`,
		Example: `  # Would this request be admitted?
  kubectl headgate explain checkout -n shop --request 'GET /v1/orders?page=2' -H 'X-API-Key: gold-7f3'

  # For a client behind the load balancer, as JSON
  kubectl headgate explain login -n shop --request 'POST /login' --peer 10.0.3.7 -H 'X-Forwarded-For: 203.0.113.7' -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completePolicies,
		RunE: func(cmd *cobra.Command, args []string) error {
			question, err := readRequest(request, headers, peer)
			if err != nil {
				return err
			}
			if err := s.connect(); err != nil {
				return err
			}
			policy, err := s.policy(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			from, err := s.enforcing(cmd.Context(), policy, pod)
			if err != nil {
				return err
			}
			var x admission.Explanation
			if err := s.ask(cmd.Context(), from, quotav1.PathExplain, question, &x); err != nil {
				return err
			}
			return printExplanation(s.streams.Out, output, from.Name, policy.Name, &x)
		},
	}
	c.Flags().StringVar(&request, "request", "", "method and path of the request, such as 'GET /v1/orders' (required)")
	c.Flags().StringArrayVarP(&headers, "header", "H", nil, "a header of the request, such as 'X-API-Key: a'; may be repeated. 'Host: shop.example' sets the host")
	c.Flags().StringVar(&peer, "peer", "", "address that the request comes from, such as 10.0.3.7")
	c.Flags().StringVar(&pod, "pod", "", "pod to ask; any that enforces the policy when absent")
	c.Flags().StringVarP(&output, "output", "o", "", "json or yaml; a table when absent")
	_ = c.MarkFlagRequired("request")
	return c
}

// readRequest reads what a person writes of a request.
func readRequest(line string, headers []string, peer string) (*admin.CheckRequest, error) {
	out := &admin.CheckRequest{Headers: map[string][]string{}, Peer: peer}
	words := strings.Fields(line)
	switch {
	case len(words) == 1:
		out.Method, out.Path = "GET", words[0]
	case len(words) == 2, len(words) == 3 && strings.HasPrefix(words[2], "HTTP/"):
		out.Method, out.Path = strings.ToUpper(words[0]), words[1]
	}
	if !strings.HasPrefix(out.Path, "/") {
		return nil, fmt.Errorf("--request %q: write a method and a path, such as --request 'GET /v1/orders'", line)
	}
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("--header %q: write a name and a value, such as -H 'X-API-Key: a'", h)
		}
		if strings.EqualFold(name, "Host") {
			out.Host = strings.TrimSpace(value)
			continue
		}
		out.Headers[name] = append(out.Headers[name], strings.TrimSpace(value))
	}
	return out, nil
}

func printExplanation(out io.Writer, format, pod, policy string, x *admission.Explanation) error {
	if format != "" {
		return printObject(out, format, "json or yaml", x)
	}
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "LIMIT\tCOUNTS\tKEY\tCOST\tLEFT\tWOULD\tWHY")
	for _, l := range x.Limits {
		name := l.Policy + "/" + l.Limit
		if l.Variant != "" {
			name += " (" + l.Variant + ")"
		}
		if l.Policy == policy {
			name = "* " + name
		} else {
			name = "  " + name
		}
		if !l.Counts {
			fmt.Fprintf(t, "%s\tno\t-\t-\t-\t-\t%s\n", name, l.Why)
			continue
		}
		key, would := "-", l.Would
		if len(l.Key) > 0 {
			key = strings.Join(l.Key, ", ")
		}
		if l.Shadow {
			would += " (shadow)"
		}
		fmt.Fprintf(t, "%s\tyes\t%s\t%d\t%s of %s\t%s\t%s\n", name, key, l.Cost, short(l.Remaining), short(l.Most), would, l.Why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe request would be %s by pod %s now", x.Verdict, pod)
	if x.RetryAfterSeconds > 0 {
		fmt.Fprintf(out, "; admitted in %s s if nobody else asks", short(x.RetryAfterSeconds))
	}
	fmt.Fprintln(out, ".")
	return nil
}

// short writes a number with two places at most.
func short(n float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", n), "0"), ".")
}
