// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/sha256"
	"encoding/binary"
)

// KeyHash names a key in decision records: the same for the same key in every process, and no way back to the key's
// value that is shorter than guessing it. The zero value stands for the one account of a limit without a key.
type KeyHash [16]byte

// stableHash is hashKey for records. It allocates; records are for tests.
func stableHash(parts []keyPart, r *reading) KeyHash {
	if len(parts) == 0 {
		return KeyHash{}
	}
	var b []byte
	for i := range parts {
		text, address, ok := parts[i].value(r)
		if !ok {
			return KeyHash(sha256.New().Sum(nil)[:16]) // of all that lack a part
		}
		if parts[i].address != nil {
			bytes := address.As16()
			text = string(bytes[:])
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(text)))
		b = append(b, text...)
	}
	sum := sha256.Sum256(b)
	return KeyHash(sum[:16])
}
