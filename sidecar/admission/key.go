// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"

	"github.com/headgate/headgate/api/expression"
	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// keyPart is one compiled element of a key's tuple.
type keyPart struct {
	source     *quotav1.KeyPart // what it was compiled from: equal sources are equal parts
	header     string           // canonical
	address    *addressPart
	cookie     string
	query      string
	variable   string
	request    quotav1.RequestPart
	claim      *claimPart
	expression *expression.Program
}

func compileKey(k *quotav1.KeyPart) (keyPart, error) {
	out := keyPart{source: k}
	var err error
	switch part := k.GetPart().(type) {
	case *quotav1.KeyPart_Header:
		out.header, err = canonical(part.Header), named(part.Header, "header")
	case *quotav1.KeyPart_ClientIp:
		out.address, err = compileAddress(part.ClientIp)
	case *quotav1.KeyPart_Cookie:
		out.cookie, err = part.Cookie, named(part.Cookie, "cookie")
	case *quotav1.KeyPart_Query:
		out.query, err = part.Query, named(part.Query, "query parameter")
	case *quotav1.KeyPart_PathVariable:
		out.variable, err = part.PathVariable, named(part.PathVariable, "path variable")
	case *quotav1.KeyPart_Request:
		out.request = part.Request
		if _, ok := quotav1.RequestPart_name[int32(part.Request)]; !ok || part.Request == 0 {
			err = fmt.Errorf("key by unknown part of the request %v", part.Request)
		}
	case *quotav1.KeyPart_JwtClaim:
		out.claim, err = compileClaim(part.JwtClaim)
	case *quotav1.KeyPart_Expression:
		out.expression, err = expression.Compile(part.Expression, expression.Text)
	default:
		err = fmt.Errorf("key part of unknown kind")
	}
	return out, err
}

func named(name, what string) error {
	if name == "" {
		return fmt.Errorf("key by a %s without a name", what)
	}
	return nil
}

// value returns the part's value in a request, false when the request lacks it. Exactly one of text and address is meant:
// the address when the part is one.
func (k *keyPart) value(r *reading) (text string, address netip.Addr, ok bool) {
	switch {
	case k.address != nil:
		address, ok = k.address.value(r)
	case k.header == hostHeader:
		text, ok = r.host(), r.Host != ""
	case k.header != "":
		text, ok = r.first(k.header)
	case k.cookie != "":
		lines, _ := r.lines("Cookie")
		text, ok = cookie(lines, k.cookie)
	case k.query != "":
		text, ok = firstParameter(r.Query, k.query)
	case k.variable != "":
		for _, v := range r.variables {
			if v.name == k.variable {
				return v.value, netip.Addr{}, true
			}
		}
	case k.claim != nil:
		text, ok = k.claim.value(r)
	case k.expression != nil:
		var err error
		text, err = k.expression.Text(r.facts())
		ok = err == nil
	case k.request == quotav1.RequestPart_PATH:
		text, ok = r.paths.strict, true
	case k.request == quotav1.RequestPart_METHOD:
		text, ok = r.Method, true
	case k.request == quotav1.RequestPart_HOST:
		text, ok = r.host(), r.Host != ""
	}
	return text, address, ok
}

// hashKey returns the seeded hash of the request's key, and false when the request lacks a part of it. Each part is
// preceded by its length, so that no two tuples are written alike.
func hashKey(parts []keyPart, r *reading, seed maphash.Seed) (uint64, bool) {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range parts {
		text, address, ok := parts[i].value(r)
		if !ok {
			return 0, false
		}
		parts[i].write(&h, text, address)
	}
	return h.Sum64(), true
}

func (k *keyPart) write(h *maphash.Hash, text string, address netip.Addr) {
	if k.address == nil {
		writeLength(h, len(text))
		_, _ = h.WriteString(text)
		return
	}
	bytes := address.As16()
	writeLength(h, len(bytes))
	_, _ = h.Write(bytes[:])
}

func writeLength(h *maphash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = h.Write(b[:])
}

// hashTuple returns the hash that a request with these values has.
func hashTuple(parts []keyPart, values []string, seed maphash.Seed) (uint64, error) {
	if len(values) != len(parts) {
		return 0, fmt.Errorf("%d values for a key of %d parts", len(values), len(parts))
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range parts {
		var address netip.Addr
		if parts[i].address != nil {
			parsed, err := netip.ParseAddr(values[i])
			if err != nil {
				return 0, fmt.Errorf("value of a key by address: %w", err)
			}
			address, _ = parts[i].address.cut(parsed)
		}
		parts[i].write(&h, values[i], address)
	}
	return h.Sum64(), nil
}

// sharedKey is the hash of all requests that lack a part of the key, where they share a bucket.
func sharedKey(seed maphash.Seed) uint64 { return maphash.String(seed, "headgate: key missing") }
