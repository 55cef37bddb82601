// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

// Buffers keep bytes that cannot be passed on yet. A loop has one, and a connection has a buffer only while something waits.
// The zero value is ready. They count what is out, so that many slow peers can be told from a few.
type Buffers struct {
	free [len(classes)][][]byte
	held int
}

// classes are the sizes that are kept for reuse.
var classes = [...]int{4 << 10, 16 << 10, 64 << 10}

// spare is how many of a size are kept for reuse.
const spare = 32

// Held is how many bytes are in use.
func (p *Buffers) Held() int { return p.held }

// Keep returns a copy of b in a buffer that is at least that long.
func (p *Buffers) Keep(b []byte) []byte { return append(p.get(len(b)), b...) }

// Append appends to a buffer, nil included, in a larger one if need be.
func (p *Buffers) Append(buffer, b []byte) []byte {
	if len(buffer)+len(b) <= cap(buffer) {
		return append(buffer, b...)
	}
	larger := append(append(p.get(len(buffer)+len(b)), buffer...), b...)
	p.Free(buffer)
	return larger
}

func (p *Buffers) get(n int) []byte {
	for i, size := range classes {
		if n > size {
			continue
		}
		p.held += size
		if free := p.free[i]; len(free) > 0 {
			b := free[len(free)-1]
			free[len(free)-1] = nil
			p.free[i] = free[:len(free)-1]
			return b
		}
		return make([]byte, 0, size)
	}
	p.held += n
	return make([]byte, 0, n)
}

// Free gives a buffer back. Nothing may refer to it any more. nil is no buffer.
func (p *Buffers) Free(b []byte) {
	if cap(b) == 0 {
		return
	}
	p.held -= cap(b)
	for i, size := range classes {
		if cap(b) == size && len(p.free[i]) < spare {
			p.free[i] = append(p.free[i], b[:0])
		}
	}
}
