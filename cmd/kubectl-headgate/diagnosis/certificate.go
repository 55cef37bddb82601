// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// overdue reports whether a certificate should long have been renewed: the operator does so when two thirds of its time have
// passed.
func overdue(c *x509.Certificate, now time.Time) bool {
	whole := c.NotAfter.Sub(c.NotBefore)
	return now.After(c.NotBefore.Add(whole * 4 / 5))
}

// certificates looks at what the operator presents, against what the API server and the sidecars trust.
func (d *diagnosis) certificates() {
	if d.away {
		return // nothing presents one
	}
	var looked int
	var ends time.Time
	failures := map[Code][]string{}
	says := map[Code]string{}
	note := func(code Code, what, where string) {
		failures[code] = append(failures[code], where)
		says[code] = what
	}
	for i := range d.Served {
		s := &d.Served[i]
		where := fmt.Sprintf("pod/%s -n %s, port %d", s.Pod, d.Operator.Namespace, s.Port)
		if s.Error != "" || len(s.Chain) == 0 {
			if strings.Contains(s.Error, "no certificate") {
				note(CertificateMismatch, "the operator presents no certificate", where)
			} else {
				d.Blind = append(d.Blind, Blind{"certificate of " + where, s.Error})
			}
			continue
		}
		looked++
		leaf := s.Chain[0]
		if ends.IsZero() || leaf.NotAfter.Before(ends) {
			ends = leaf.NotAfter
		}
		switch code, what := d.judge(s); code {
		case "":
			if overdue(leaf, d.Now) {
				note(CertificateNotRenewed, fmt.Sprintf("the operator's certificate ends in %s and has not been renewed", short(leaf.NotAfter.Sub(d.Now))), where)
			}
		default:
			note(code, what, where)
		}
	}
	d.certificateFindings(failures, says)
	if looked > 0 && len(failures) == 0 {
		d.well("certificates", fmt.Sprintf("valid for %s, and of the authority that API server and sidecars trust", short(ends.Sub(d.Now))))
	}
	d.authorities()
}

// judge says what is wrong with a certificate, or nothing.
func (d *diagnosis) judge(s *Served) (Code, string) {
	leaf := s.Chain[0]
	if d.Now.After(leaf.NotAfter) {
		return CertificateExpired, fmt.Sprintf("the operator's certificate has expired %s ago", d.ago(leaf.NotAfter))
	}
	for _, bundle := range d.trust(s) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle.pem)
		rest := x509.NewCertPool()
		for _, c := range s.Chain[1:] {
			rest.AddCert(c)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: rest, DNSName: s.Name, CurrentTime: d.Now})
		var invalid x509.CertificateInvalidError
		switch {
		case err == nil:
		case errors.As(err, &invalid) && invalid.Reason == x509.Expired && d.Now.Before(leaf.NotBefore):
			return CertificateMismatch, fmt.Sprintf("the operator's certificate begins only in %s: a clock is off", short(leaf.NotBefore.Sub(d.Now)))
		case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
			return CertificateExpired, "the authority of the operator's certificate has expired"
		default:
			return CertificateMismatch, fmt.Sprintf("the operator's certificate is not what %s trusts: %v", bundle.who, err)
		}
	}
	return "", ""
}

// trusted is a bundle of authorities, and who trusts them.
type trusted struct {
	who string
	pem []byte
}

// trust lists who connects to a port, and whom they trust.
func (d *diagnosis) trust(s *Served) []trusted {
	if s.Port == portWebhook {
		if !d.Webhook.Configured {
			return nil
		}
		return []trusted{{"the API server", d.Webhook.CABundle}}
	}
	var out []trusted
	var seen [][]byte
	for _, ns := range sorted(d.Authorities) {
		ca := d.Authorities[ns]
		if ca == nil || slices.ContainsFunc(seen, func(b []byte) bool { return bytes.Equal(b, ca) }) {
			continue
		}
		seen = append(seen, ca)
		out = append(out, trusted{"the sidecars of namespace " + ns, ca})
	}
	return out
}

// Ports that the operator's pods serve.
const (
	portWebhook = 9443
	portQuota   = 9444
)

func (d *diagnosis) certificateFindings(failures map[Code][]string, says map[Code]string) {
	o := &d.Operator
	logs := fmt.Sprintf("kubectl logs -n %s deployment/%s --all-pods --prefix --since=24h | grep -i cert", o.Namespace, o.Name)
	restart := fmt.Sprintf("kubectl rollout restart deployment/%s -n %s", o.Name, o.Namespace)
	const why = "the API server does not trust the webhook, so new pods start without the sidecar; sidecars that connect anew are kept away, while those that are connected go on"
	if where := failures[CertificateExpired]; where != nil {
		d.refusing, d.uncalled = true, true
		d.problem(Finding{Code: CertificateExpired, What: says[CertificateExpired], Where: where, Why: why,
			Do:       "the operator renews it by itself (or cert-manager does, where the chart says so), so something keeps it from writing its Secret: look at what, and mend that",
			Commands: []string{logs, fmt.Sprintf("kubectl auth can-i update secrets/%s-cert -n %s --as=system:serviceaccount:%s:%s", o.Name, o.Namespace, o.Namespace, o.Name), restart}})
	}
	if where := failures[CertificateMismatch]; where != nil {
		d.refusing, d.uncalled = true, true
		d.problem(Finding{Code: CertificateMismatch, What: says[CertificateMismatch], Where: where, Why: why,
			Do:       "the operator writes its authority into the webhook configuration and into the ConfigMaps: look at what keeps it from that, and restart it",
			Commands: []string{logs, restart}})
	}
	if where := failures[CertificateNotRenewed]; where != nil {
		d.notice(Finding{Code: CertificateNotRenewed, What: says[CertificateNotRenewed], Where: where,
			Why: "it is renewed when two thirds of its time have passed, so something keeps the operator, or cert-manager, from that", Do: "look at what",
			Commands: []string{logs}})
	}
}

// authorities wants the ConfigMap that sidecars trust by in every namespace with policies.
func (d *diagnosis) authorities() {
	var missing []string
	for _, ns := range sorted(d.Authorities) {
		if d.Authorities[ns] == nil {
			missing = append(missing, "configmap/headgate-ca -n "+ns)
		}
	}
	if len(missing) > 0 {
		d.problem(Finding{Code: AuthorityMissing, What: "sidecars have nobody to trust: the operator's authority is not in their namespace", Where: missing,
			Why:      "a sidecar that starts there does not connect to the operator, and its pod never becomes ready",
			Do:       "the operator writes it when a policy comes: look at its logs",
			Commands: []string{fmt.Sprintf("kubectl logs -n %s deployment/%s --all-pods --prefix --since=1h | grep -i configmap", d.Operator.Namespace, d.Operator.Name)}})
	}
}
