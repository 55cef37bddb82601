// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Contract says a limit in words: "at most 300 in any 1s, 200/s sustained, per x-api-key".
func Contract(l *quotav1.Limit) string {
	rate, period := l.Rate.Requests, time.Duration(l.Rate.PeriodNanoseconds)
	var b strings.Builder
	if l.Algorithm == quotav1.Algorithm_CONCURRENCY {
		fmt.Fprintf(&b, "at most %d under way at once", l.Burst)
	} else {
		fmt.Fprintf(&b, "at most %d%s in any %s, %s sustained", l.Burst+rate, unit(l), word(period), Rate(l.Rate, 1, 1))
	}
	for i, k := range l.Key {
		if i == 0 {
			b.WriteString(", per ")
		} else {
			b.WriteString(" and ")
		}
		b.WriteString(keyName(k))
	}
	if l.Scope == quotav1.Scope_PER_POD {
		b.WriteString(", in every pod")
	}
	if l.MaxDelayNanoseconds > 0 {
		fmt.Fprintf(&b, ", after a delay of up to %s", word(time.Duration(l.MaxDelayNanoseconds)))
	}
	if l.Shadow {
		b.WriteString("; shadow: counted, not denied")
	}
	return b.String()
}

// unit is what is counted, where it is not requests.
func unit(l *quotav1.Limit) string {
	if l.Cost == nil {
		return ""
	}
	return " tokens"
}

// keyName is what people call a part of a key.
func keyName(k *quotav1.KeyPart) string {
	switch part := k.GetPart().(type) {
	case *quotav1.KeyPart_ClientIp:
		return "client IP"
	case *quotav1.KeyPart_Cookie:
		return "cookie " + part.Cookie
	case *quotav1.KeyPart_Query:
		return "query parameter " + part.Query
	case *quotav1.KeyPart_PathVariable:
		return "{" + part.PathVariable + "}"
	case *quotav1.KeyPart_Request:
		return strings.ToLower(part.Request.String())
	case *quotav1.KeyPart_JwtClaim:
		return "claim " + part.JwtClaim.GetClaim()
	case *quotav1.KeyPart_Expression:
		return "expression"
	}
	return k.GetHeader()
}

// Rate writes num/den of a rate in the largest of second, minute, hour and day in which it reads as one or more: "12500/s",
// "5/h".
func Rate(r *quotav1.Rate, num, den uint64) string {
	perNano := new(big.Rat).Mul(ratio(r.Requests, r.PeriodNanoseconds), ratio(num, den))
	for _, u := range []struct {
		name string
		d    time.Duration
	}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}} {
		v := new(big.Rat).Mul(perNano, new(big.Rat).SetInt64(int64(u.d)))
		if v.Cmp(big.NewRat(1, 1)) >= 0 {
			return decimal(v) + "/" + u.name
		}
	}
	return decimal(new(big.Rat).Mul(perNano, new(big.Rat).SetInt64(int64(24*time.Hour)))) + "/d"
}

func ratio(num, den uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
}

// decimal rounds to two places and drops zeros at the end.
func decimal(v *big.Rat) string {
	s := strings.TrimRight(v.FloatString(2), "0")
	return strings.TrimRight(s, ".")
}

// word writes a period without the parts that are zero: 1h, not 1h0m0s.
func word(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
