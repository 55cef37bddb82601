// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "slices"

// maxParcels bounds the memory of a ledger: beyond it the two parcels that are ready soonest are merged, at the later time.
const maxParcels = 64

// parcel is capacity that was freed and may go to a newborn at once, to an existing share only from ready on.
type parcel struct {
	units uint64
	ready int64
}

// parcels are kept in the order of their times.
type parcels []parcel

func (p *parcels) add(units uint64, ready int64) {
	if units == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(*p, ready, func(a parcel, t int64) int {
		if a.ready <= t {
			return -1
		}
		return 1
	})
	*p = slices.Insert(*p, i, parcel{units: units, ready: ready})
	if len(*p) > maxParcels {
		(*p)[1].units += (*p)[0].units
		*p = slices.Delete(*p, 0, 1)
	}
}

// take removes up to units, from what is ready last, so that existing shares wait no longer than they must.
func (p *parcels) take(units uint64) {
	for n := len(*p); n > 0 && units > 0; n = len(*p) {
		last := &(*p)[n-1]
		t := min(last.units, units)
		last.units -= t
		units -= t
		if last.units == 0 {
			*p = (*p)[:n-1]
		}
	}
}

// expire forgets what is ready: it is free from then on.
func (p *parcels) expire(now int64) {
	n := 0
	for n < len(*p) && (*p)[n].ready <= now {
		n++
	}
	*p = slices.Delete(*p, 0, n)
}

func (p *parcels) total() uint64 {
	var t uint64
	for _, x := range *p {
		t = addSat(t, x.units)
	}
	return t
}

func (p *parcels) next() (int64, bool) {
	if len(*p) == 0 {
		return 0, false
	}
	return (*p)[0].ready, true
}
