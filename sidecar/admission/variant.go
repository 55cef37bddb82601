// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"hash/maphash"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// variants are the limits with other numbers that stand in the place of a base for some requests. Each has an account of its
// own, and the pod has a share of each.
type variants struct {
	byKey  map[uint64]*Limit // by the hash of the key
	byTier map[string]*Limit
	tier   *keyPart // where the tier is found; nil without tiers
}

// add gives a base one more variant.
func (v *variants) add(base, l *Limit, in *quotav1.Variant, seed maphash.Seed) error {
	if in.GetTier() != "" {
		if v.tier == nil || v.byTier[in.GetTier()] != nil {
			return fmt.Errorf("tier %q stands twice, or the base has no tiers", in.GetTier())
		}
		if v.byTier == nil {
			v.byTier = map[string]*Limit{}
		}
		v.byTier[in.GetTier()] = l
		return nil
	}
	if len(in.GetValues()) == 0 {
		return fmt.Errorf("a variant for no request")
	}
	if v.byKey == nil {
		v.byKey = map[uint64]*Limit{}
	}
	for _, tuple := range in.GetValues() {
		hash, err := hashTuple(base.key, tuple.GetValues(), seed)
		if err != nil {
			return err
		}
		if v.byKey[hash] != nil {
			return fmt.Errorf("values %q stand twice", tuple.GetValues())
		}
		v.byKey[hash] = l
	}
	return nil
}

// choose returns the limit that counts a request in the place of its base.
func (l *Limit) choose(r *reading, hash uint64) *Limit {
	if v := l.variants.byKey[hash]; v != nil {
		return v
	}
	if l.variants.tier != nil {
		if text, _, ok := l.variants.tier.value(r); ok {
			if v := l.variants.byTier[text]; v != nil {
				return v
			}
		}
	}
	return l
}
