package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

// blockTrailer is what follows a block of a table: a byte that says how it is compressed, and a checksum (CRC-32C, as LevelDB masks it) of
// both, little-endian.
const blockTrailer = 1 + 4

// unflip mends the blocks of a table in which one bit is not what was written, and returns the names of those that it cannot mend. whole
// tells that nothing is wrong any more. The checksum of a block tells which bit it is: each leaves a remainder of its own.
func unflip(table []byte, o *pebble.Options) (bad map[string]bool, whole bool) {
	bad = map[string]bool{}
	file := &tableFile{content: table, bad: bad}
	for {
		blocks, err := blocksOf(file, o)
		for _, h := range blocks {
			end := h.Offset + h.Length + blockTrailer
			if end > uint64(len(table)) {
				return bad, false
			}
			if b := table[h.Offset:end]; syndrome(b) != 0 && !unflipBlock(b) {
				bad[blockName(h.Offset, h.Length)] = true
			}
		}
		if err == nil {
			return bad, len(bad) == 0
		}
		// A block without which the others cannot be found.
		offset, length, ok := parseBlock(blockOf(err))
		if !ok || offset+length+blockTrailer > len(table) || !unflipBlock(table[offset:offset+length+blockTrailer]) {
			return bad, false
		}
	}
}

// blocksOf lists the blocks of a table that can be found.
func blocksOf(file *tableFile, o *pebble.Options) ([]block.Handle, error) {
	r, err := openTable(file, o)
	if err != nil {
		return nil, err
	}
	l, err := r.Layout()
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	blocks := append([]block.Handle{l.TopIndex, l.RangeDel, l.RangeKey, l.ValueIndex, l.Properties, l.MetaIndex, l.BlobReferenceIndex}, l.Index...)
	blocks = append(blocks, l.ValueBlock...)
	for _, h := range l.Data {
		blocks = append(blocks, h.Handle)
	}
	for _, h := range l.Filter {
		blocks = append(blocks, h.Handle)
	}
	return slices.DeleteFunc(blocks, func(h block.Handle) bool { return h.Length == 0 }), nil
}

func blockName(offset, length uint64) string { return fmt.Sprintf("block %d/%d", offset, length) }

var blockNames = regexp.MustCompile(`block \d+/\d+`)

// blockOf names the block that an error of Pebble is about.
func blockOf(err error) string { return blockNames.FindString(err.Error()) }

func parseBlock(name string) (offset, length int, ok bool) {
	from, size, ok := strings.Cut(strings.TrimPrefix(name, "block "), "/")
	if !ok {
		return 0, 0, false
	}
	offset, err := strconv.Atoi(from)
	if err != nil {
		return 0, 0, false
	}
	length, err = strconv.Atoi(size)
	return offset, length, err == nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// syndrome is the difference of the checksum that a block has and the one that it should have.
func syndrome(b []byte) uint32 {
	data, sum := b[:len(b)-4], b[len(b)-4:]
	masked := binary.LittleEndian.Uint32(sum) - 0xa282ead8
	return crc32.Checksum(data, castagnoli) ^ bits.RotateLeft32(masked, 15)
}

// unflipBlock mends one bit of a block with its trailer, and reports whether that makes it whole.
func unflipBlock(b []byte) bool {
	wrong := syndrome(b)
	if bits.OnesCount32(wrong) <= 1 {
		return false // the checksum itself may be what is wrong; then so may be anything
	}
	// The remainder that bit k of a byte leaves, from the last byte to the first.
	var remainder [8]uint32
	for k := range remainder {
		remainder[k] = castagnoli[1<<k]
	}
	data := b[:len(b)-4]
	for i := len(data) - 1; i >= 0; i-- {
		for k, r := range remainder {
			if r == wrong {
				data[i] ^= 1 << k
				return true
			}
			remainder[k] = r>>8 ^ castagnoli[byte(r)]
		}
	}
	return false
}
