package store

import "encoding/binary"

// The first byte of a key says what it is.
const (
	spaceCounters   = 'c'
	spaceDefinition = 'd'
	spaceGroup      = 'g'
	spaceDurable    = 'r'
	spaceTransient  = 't'
)

// The last byte of a key in spaceDurable and spaceTransient. A mark sorts before its record, so that one forward pass reads both.
const (
	partMark   = 0
	partRecord = 1
)

// maxSeq is above all sequence numbers.
const maxSeq = 1<<64 - 1

const (
	counterKeyLen = 1 + 8
	recordKeyLen  = 1 + 8 + 8 + 1
)

func appendCounterKey(dst []byte, q QueueID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, spaceCounters), uint64(q))
}

func appendRecordKey(dst []byte, space byte, q QueueID, seq uint64, part byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, space), uint64(q))
	return append(binary.BigEndian.AppendUint64(dst, seq), part)
}

func splitRecordKey(key []byte) (q QueueID, seq uint64, part byte) {
	return QueueID(binary.BigEndian.Uint64(key[1:])), binary.BigEndian.Uint64(key[9:]), key[17]
}
