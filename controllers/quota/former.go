// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter/escrow"
)

// maxFormer bounds the former forms of a policy's limits that this leader hears of from pods: no policy has more limits.
const maxFormer = 32

// recall takes in what a pod says it holds of a limit that has since become another one (another strategy, say) under a
// leader that is gone: this leader knows the new form only. Nothing is granted of that before the old one is out of use.
func (h *Home) recall(uid types.UID, p *pod) {
	id, now := holderID(uid, p.session.incarnation), h.opts.Now()
	for _, pol := range h.policies {
		if !p.covered(pol) {
			continue
		}
		for _, held := range p.session.hello.Holdings {
			a := pol.former(held.LimitId)
			if a == nil || a.ledger.Knows(id) {
				continue
			}
			a.ledger.Join(id, min(max(held.Units, 1), quotav1.Whole), now)
		}
	}
}

// former returns the account that stands for a former form of one of the policy's limits, nil where the id is of no such.
func (p *policy) former(id string) *account {
	if p.accounts[id] != nil {
		return nil
	}
	if a := p.retired[id]; a != nil {
		if a.ledger == nil {
			return nil // this leader lent it, and knows all about it
		}
		return a
	}
	var next []*account
	for _, a := range p.accounts {
		if form(a.limit.Id) == form(id) && form(id) != "" {
			next = append(next, a)
		}
	}
	if len(next) == 0 || len(p.retired) >= maxFormer {
		return nil
	}
	old := &account{limit: &quotav1.Limit{Id: id}, ledger: escrow.New(quotav1.Whole, 0, nil)}
	p.retired[id] = old
	for _, a := range next {
		a.from = append(slices.DeleteFunc(a.from, func(f *account) bool { return !f.inUse() }), old)
	}
	return old
}

// form is what the identities of all forms of one limit begin with: policy and name.
func form(id string) string {
	at := strings.LastIndexByte(id, '/')
	if at < 0 {
		return ""
	}
	return id[:at+1]
}
