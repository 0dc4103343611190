package bench

import (
	"encoding/binary"
	"time"
)

// StampSize is the length of a Stamp, and so the smallest body, in bytes.
const StampSize = 16

// Stamp begins the body of every message: which it is, and when it is due. Big-endian:
//
//	| producer (1 byte) | number (7 bytes) | due, nanoseconds since 1970 (8 bytes) |
type Stamp struct {
	Producer int    // below MaxProducers
	Number   uint64 // of the producer's messages, from 0
	Due      time.Time
}

// MaxProducers is how many producers a Stamp can tell apart.
const MaxProducers = 256

const numberBits = 56

// Put writes the stamp to the beginning of body.
func (s Stamp) Put(body []byte) {
	binary.BigEndian.PutUint64(body, uint64(s.Producer)<<numberBits|s.Number)
	binary.BigEndian.PutUint64(body[8:], uint64(s.Due.UnixNano()))
}

// ReadStamp reads the stamp at the beginning of body. It returns false if the body is too short.
func ReadStamp(body []byte) (Stamp, bool) {
	if len(body) < StampSize {
		return Stamp{}, false
	}
	which := binary.BigEndian.Uint64(body)
	return Stamp{
		Producer: int(which >> numberBits),
		Number:   which & (1<<numberBits - 1),
		Due:      time.Unix(0, int64(binary.BigEndian.Uint64(body[8:]))),
	}, true
}
