package store

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// Any one bit of any block is mended, and nothing is taken for one that is not.
func TestUnflip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 500).Draw(t, "block")
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		whole := binary.LittleEndian.AppendUint32(bytes.Clone(data), bits.RotateLeft32(sum, -15)+0xa282ead8)
		damaged := bytes.Clone(whole)
		flips := rapid.SliceOfNDistinct(rapid.IntRange(0, 8*len(data)-1), 1, 3, rapid.ID).Draw(t, "bits")
		for _, bit := range flips {
			damaged[bit/8] ^= 1 << (bit % 8)
		}
		mended := unflipBlock(damaged)
		if len(flips) == 1 && (!mended || !bytes.Equal(damaged, whole)) {
			t.Fatal("one bit was not mended")
		}
		if len(flips) > 1 && mended {
			t.Fatal("several bits were taken for one")
		}
	})
}
