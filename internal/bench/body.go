package bench

import "math/rand/v2"

// bodies makes the bodies of messages, all of one size: a stamp and then random bytes that do not repeat within a
// megabyte, so that a broker which compresses what it stores gains nothing.
type bodies struct {
	pool []byte
	at   int
	body []byte // the last one
}

const poolSize = 1 << 20

func newBodies(size int) *bodies {
	b := &bodies{pool: make([]byte, poolSize+size), body: make([]byte, size)}
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(b.pool) // never fails
	return b
}

// next returns a body that is valid until the next call.
func (b *bodies) next(s Stamp) []byte {
	copy(b.body, b.pool[b.at:])
	b.at = (b.at + len(b.body)) % poolSize
	s.Put(b.body)
	return b.body
}
