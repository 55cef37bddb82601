// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"hash/maphash"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// table is all that is enforced, compiled. Immutable once in force.
type table struct {
	version  string
	snapshot *quotav1.Snapshot
	limits   []*Limit // variants among them
	byID     map[string]*Limit
	lent     []*adaptive // of the limits whose tokens are lent
	bases    []*Limit    // those that are matched, in the order of the snapshot
	index    *index      // of bases
}

// Bounds of what a snapshot may hold, far above what the API accepts: a decision walks all limits.
const (
	maxLimits  = 4096
	maxMatches = 1024
)

var (
	errSnapshot = errors.New("snapshot cannot be enforced")
	errShares   = errors.New("shares cannot be enforced")
)

// compile turns a snapshot into a table whose limits have no share and no account yet.
func compile(s *quotav1.Snapshot, seed maphash.Seed) (*table, error) {
	if s.GetVersion() == "" {
		return nil, fmt.Errorf("%w: no version", errSnapshot)
	}
	t := &table{version: s.GetVersion(), snapshot: s, byID: map[string]*Limit{}}
	policies := map[[2]string]bool{}
	for _, p := range s.GetPolicies() {
		name := [2]string{p.GetNamespace(), p.GetName()}
		if policies[name] {
			return nil, fmt.Errorf("%w: policy %s/%s twice", errSnapshot, name[0], name[1])
		}
		policies[name] = true
		if err := t.addPolicy(p, seed); err != nil {
			return nil, fmt.Errorf("%w: policy %s/%s, %w", errSnapshot, p.GetNamespace(), p.GetName(), err)
		}
	}
	t.index = buildIndex(t.bases)
	return t, nil
}

func (t *table) addPolicy(p *quotav1.Policy, seed maphash.Seed) error {
	exempt, err := compileExempt(p.GetExempt())
	if err != nil {
		return err
	}
	names := map[[2]string]bool{}
	for _, in := range p.GetLimits() {
		l, err := compileLimit(p, in)
		name := [2]string{in.GetName(), in.GetVariant().GetName()}
		switch {
		case err != nil:
		case names[name]:
			err = errors.New("name used twice")
		case t.byID[l.id] != nil:
			err = fmt.Errorf("id %q used twice", l.id)
		case len(l.matches) > maxMatches || len(t.limits) == maxLimits:
			err = errors.New("too many limits or matches")
		default:
			l.exempt = exempt
			err = t.addLimit(l, seed)
		}
		if err != nil {
			return fmt.Errorf("limit %q: %w", in.GetName(), err)
		}
		names[name] = true
		t.byID[l.id] = l
		t.limits = append(t.limits, l)
	}
	return nil
}

// addLimit makes a limit one that is matched, or a variant of one that stands before it.
func (t *table) addLimit(l *Limit, seed maphash.Seed) error {
	if l.variant == nil {
		t.bases = append(t.bases, l)
		return nil
	}
	base := t.byID[l.variant.GetBaseId()]
	if base == nil || base.variant != nil || base.name != l.name {
		return fmt.Errorf("a variant of %q, which is no limit before it", l.variant.GetBaseId())
	}
	l.key, l.missing = base.key, base.missing
	return base.variants.add(base, l, l.variant, seed)
}

// deal gives the limits their shares. It returns what each share starts with, in units, where it starts with something.
func (t *table) deal(shares []*quotav1.Share) (map[string]uint64, error) {
	dealt := map[string]bool{}
	var fills map[string]uint64
	for _, s := range shares {
		l := t.byID[s.GetLimitId()]
		switch {
		case l == nil, l.lent:
			return nil, fmt.Errorf("%w: share of limit %q, which the snapshot does not assign", errShares, s.GetLimitId())
		case dealt[l.id]:
			return nil, fmt.Errorf("%w: two shares of limit %q", errShares, l.id)
		case s.GetUnits() > quotav1.Whole || s.GetFillUnits() > quotav1.Whole:
			return nil, fmt.Errorf("%w: share of limit %q is more than the whole", errShares, l.id)
		}
		dealt[l.id] = true
		l.give(s.GetUnits())
		if s.GetFillUnits() > 0 {
			if fills == nil {
				fills = map[string]uint64{}
			}
			fills[l.id] = s.GetFillUnits()
		}
	}
	return fills, nil
}
