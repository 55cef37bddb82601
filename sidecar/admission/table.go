// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// table is all that is enforced, compiled. Immutable once in force.
type table struct {
	version  string
	snapshot *quotav1.Snapshot
	limits   []*Limit
	byID     map[string]*Limit
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
func compile(s *quotav1.Snapshot) (*table, error) {
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
		names := map[string]bool{}
		for _, in := range p.GetLimits() {
			l, err := compileLimit(p, in)
			switch {
			case err != nil:
			case names[l.name]:
				err = errors.New("name used twice")
			case t.byID[l.id] != nil:
				err = fmt.Errorf("id %q used twice", l.id)
			case len(l.matches) > maxMatches || len(t.limits) == maxLimits:
				err = errors.New("too many limits or matches")
			}
			if err != nil {
				return nil, fmt.Errorf("%w: policy %s/%s, limit %q: %w", errSnapshot, p.GetNamespace(), p.GetName(), in.GetName(), err)
			}
			names[l.name] = true
			t.byID[l.id] = l
			t.limits = append(t.limits, l)
		}
	}
	return t, nil
}

// deal gives the limits their shares. It returns what each share starts with, in units, where it starts with something.
func (t *table) deal(shares []*quotav1.Share) (map[string]uint64, error) {
	dealt := map[string]bool{}
	var fills map[string]uint64
	for _, s := range shares {
		l := t.byID[s.GetLimitId()]
		switch {
		case l == nil:
			return nil, fmt.Errorf("%w: share of limit %q, which the snapshot does not have", errShares, s.GetLimitId())
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
