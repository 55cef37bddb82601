// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"
	"net/textproto"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// keyPart is one compiled element of a key's tuple: a header, or the client's address.
type keyPart struct {
	header string // canonical; empty for the client's address
	v4, v6 int    // bits of the address that count
}

func compileKey(k *quotav1.KeyPart) (keyPart, error) {
	switch part := k.GetPart().(type) {
	case *quotav1.KeyPart_Header:
		if part.Header == "" {
			return keyPart{}, fmt.Errorf("key by a header without a name")
		}
		return keyPart{header: textproto.CanonicalMIMEHeaderKey(part.Header)}, nil
	case *quotav1.KeyPart_ClientIp:
		p := keyPart{v4: int(part.ClientIp.GetIpv4Prefix()), v6: int(part.ClientIp.GetIpv6Prefix())}
		if p.v4 == 0 {
			p.v4 = 32
		}
		if p.v6 == 0 {
			p.v6 = 64
		}
		if p.v4 < 0 || p.v4 > 32 || p.v6 < 0 || p.v6 > 128 {
			return keyPart{}, fmt.Errorf("client address cut to /%d (IPv4) or /%d (IPv6)", p.v4, p.v6)
		}
		return p, nil
	}
	return keyPart{}, fmt.Errorf("key part of unknown kind")
}

// value returns the part's value in the request. Exactly one of text and address is meant: text when the part is a header.
func (k *keyPart) value(r *Request) (text string, address netip.Prefix, ok bool) {
	if k.header == hostHeader {
		return r.Host, netip.Prefix{}, r.Host != ""
	}
	if k.header != "" {
		lines, ok := r.lines(k.header)
		if !ok {
			return "", netip.Prefix{}, false
		}
		return lines[0], netip.Prefix{}, true
	}
	peer := r.Peer.Unmap().WithZone("")
	bits := k.v6
	if peer.Is4() {
		bits = k.v4
	}
	address, err := peer.Prefix(bits)
	return "", address, err == nil && peer.IsValid()
}

// hash returns the seeded hash of the request's key, and false when the request lacks a part of it. Each part is
// preceded by its length, so that no two tuples are written alike.
func hashKey(parts []keyPart, r *Request, seed maphash.Seed) (uint64, bool) {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range parts {
		text, address, ok := parts[i].value(r)
		if !ok {
			return 0, false
		}
		if parts[i].header != "" {
			writeLength(&h, len(text))
			_, _ = h.WriteString(text)
			continue
		}
		bytes := address.Addr().As16()
		writeLength(&h, len(bytes))
		_, _ = h.Write(bytes[:])
	}
	return h.Sum64(), true
}

func writeLength(h *maphash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = h.Write(b[:])
}

// KeyHash names a key in decision records: the same for the same key in every process, and no way back to the key's
// value that is shorter than guessing it. The zero value stands for the one account of a limit without a key.
type KeyHash [16]byte

// stableHash is hashKey for records. It allocates; records are for tests.
func stableHash(parts []keyPart, r *Request) KeyHash {
	if len(parts) == 0 {
		return KeyHash{}
	}
	var b []byte
	for i := range parts {
		text, address, _ := parts[i].value(r)
		if parts[i].header == "" {
			bytes := address.Addr().As16()
			text = string(bytes[:])
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(text)))
		b = append(b, text...)
	}
	sum := sha256.Sum256(b)
	return KeyHash(sum[:16])
}
