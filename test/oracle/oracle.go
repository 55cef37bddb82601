// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle checks recorded decisions against the law of the guarantee (docs/guarantees.md):
//
//	for every account and every interval of length W:  admitted(W) <= B + R * (1 + rho) * W,  rho = 0.001
//
// over the records of all pods, killed ones included. It knows nothing of how limits are shared.
package oracle

import (
	"cmp"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/record"
)

// Limit is what was declared. Where it was edited while decisions were recorded, it is the larger of the old and new numbers.
type Limit struct {
	Name     string
	Requests uint64
	Period   time.Duration
	Burst    uint64
}

// Account is one limit and one key.
type Account struct {
	Limit string // the limit's id
	Key   admission.KeyHash
}

// Violation is an interval in which more was admitted than the law allows.
type Violation struct {
	Account  Account
	From, To int64 // CLOCK_BOOTTIME, nanoseconds; both ends belong to the interval
	Admitted uint64
	Allowed  *big.Rat
}

func (v Violation) String() string {
	allowed, _ := v.Allowed.Float64()
	return fmt.Sprintf("limit %s, key %s: %d admitted in %s, where the law allows %.3f",
		v.Account.Limit, v.Account.Key, v.Admitted, time.Duration(v.To-v.From), allowed)
}

// Report is the verdict.
type Report struct {
	Files, Decisions, Accounts int
	Admitted, Denied           uint64
	// Tightest is how much of its allowance the busiest interval of any account used, from 0 to 1 and, with a violation, above.
	Tightest float64
	// Violations has the worst interval of each account that broke the law.
	Violations []Violation
	// Unknown are limits that were recorded and not declared to Check.
	Unknown []string
}

// Kept reports whether the law held and everything recorded could be judged.
func (r *Report) Kept() bool { return len(r.Violations) == 0 && len(r.Unknown) == 0 }

// Fprint writes the report for people.
func (r *Report) Fprint(w io.Writer) {
	fmt.Fprintf(w, "oracle: %d decisions of %d processes, %d accounts: %d admitted, %d denied\n", r.Decisions, r.Files, r.Accounts, r.Admitted, r.Denied)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "oracle: BROKEN: %s\n", v)
	}
	for _, id := range r.Unknown {
		fmt.Fprintf(w, "oracle: limit %s was recorded but never declared\n", id)
	}
	if r.Kept() {
		fmt.Fprintf(w, "oracle: the law held in every interval; the tightest used %.1f %% of what it may\n", 100*r.Tightest)
	}
}

// Load reads every record below a folder.
func Load(folder string) ([]*record.File, error) {
	var files []*record.File
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != record.Extension {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		rec, err := record.Parse(f)
		if err != nil {
			return fmt.Errorf("record %s: %w", path, err)
		}
		files = append(files, rec)
		return nil
	})
	return files, err
}

// Check judges every account of the records.
func Check(files []*record.File, limits map[string]Limit) *Report {
	r := &Report{Files: len(files)}
	accounts := map[Account][]record.Decision{}
	unknown := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decisions {
			r.Decisions++
			if _, ok := limits[d.Limit]; !ok {
				unknown[d.Limit] = true
				continue
			}
			if !d.Admitted {
				r.Denied += d.Cost
				continue
			}
			r.Admitted += d.Cost
			a := Account{Limit: d.Limit, Key: d.Key}
			accounts[a] = append(accounts[a], d)
		}
	}
	r.Accounts = len(accounts)
	for a, decisions := range accounts {
		used, violation := judge(a, decisions, limits[a.Limit])
		r.Tightest = max(r.Tightest, used)
		if violation != nil {
			r.Violations = append(r.Violations, *violation)
		}
	}
	slices.SortFunc(r.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Account.Limit, b.Account.Limit), slices.Compare(a.Account.Key[:], b.Account.Key[:]))
	})
	for id := range unknown {
		r.Unknown = append(r.Unknown, id)
	}
	slices.Sort(r.Unknown)
	return r
}

// judge looks at every interval that begins and ends at an admission (no other can be worse) in one pass: the most that was
// admitted in excess of the rate, over all intervals that end now, is what it was at the last admission, less what the rate
// has allowed since, but never less than what begins now. Arithmetic is exact, in units of 1/(1000 * period) tokens.
func judge(a Account, decisions []record.Decision, l Limit) (used float64, worst *Violation) {
	slices.SortStableFunc(decisions, func(x, y record.Decision) int { return cmp.Compare(x.Time, y.Time) })
	unit := new(big.Int).Mul(big.NewInt(int64(l.Period)), big.NewInt(1000)) // one token
	burst := new(big.Int).Mul(new(big.Int).SetUint64(l.Burst), unit)
	perNano := new(big.Int).Mul(new(big.Int).SetUint64(l.Requests), big.NewInt(1001))

	excess, most := new(big.Int), new(big.Int)
	var from, last int64
	var admitted uint64 // since from
	step := new(big.Int)
	for i, d := range decisions {
		if i > 0 {
			excess.Sub(excess, step.Mul(perNano, step.SetInt64(d.Time-last)))
		}
		if i == 0 || excess.Sign() <= 0 {
			excess.SetInt64(0)
			from, admitted = d.Time, 0
		}
		last = d.Time
		admitted += d.Cost
		excess.Add(excess, step.Mul(unit, step.SetUint64(d.Cost)))
		if excess.Cmp(most) <= 0 {
			continue
		}
		most.Set(excess)
		if excess.Cmp(burst) > 0 {
			allowed := new(big.Int).Add(burst, new(big.Int).Mul(perNano, big.NewInt(d.Time-from)))
			worst = &Violation{Account: a, From: from, To: d.Time, Admitted: admitted, Allowed: new(big.Rat).SetFrac(allowed, unit)}
		}
	}
	used, _ = new(big.Rat).SetFrac(most, burst).Float64()
	return used, worst
}
