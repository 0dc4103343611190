package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// keySpan is what is lost of a table: the keys after the one and before the other. A nil end is the table's end.
type keySpan struct{ after, before []byte }

// intersects tells whether keys that begin with prefix may be in the span.
func (k keySpan) intersects(prefix []byte) bool {
	end := prefixEnd(prefix)
	return (k.before == nil || bytes.Compare(prefix, k.before) < 0) && (end == nil || bytes.Compare(k.after, end) < 0)
}

// salvaged is what could be read of a damaged table.
type salvaged struct {
	table []byte // as long as the damaged one, so that it can take its place
	lost  []keySpan
}

// mendTable makes of a damaged table one that can be read, without a loss where one bit of a block is all that is wrong with it.
func mendTable(b []byte, bounds keySpan, o *pebble.Options) (salvaged, error) {
	bad, whole := unflip(b, o)
	if whole {
		return salvaged{table: b}, nil
	}
	return salvage(&tableFile{b, bad}, bounds, o)
}

// salvage makes a table of all blocks of a damaged one that can be read. bounds are its keys as the manifest has
// them. If nothing can be read, as when the index is what is damaged, the new table is empty.
//
// Pebble knows a table by its number, its length and its bounds. So the new table has the old one's length, by zeros that nothing points
// to, in front of the footer, and its keys are within the old bounds. All entries keep their Pebble sequence numbers.
func salvage(file *tableFile, bounds keySpan, o *pebble.Options) (salvaged, error) {
	for _, profile := range []*block.CompressionProfile{nil, sstable.ZstdCompression} {
		s, err := salvageInto(file, bounds, o, profile)
		if err != nil {
			return salvaged{}, err
		}
		if len(s.table) > len(file.content) {
			continue // it compresses worse in other company
		}
		s.table, err = stretch(s.table, len(file.content), o)
		return s, err
	}
	return salvaged{}, errors.New("what can be read of the table takes more room than the table")
}

func salvageInto(file *tableFile, bounds keySpan, o *pebble.Options, profile *block.CompressionProfile) (salvaged, error) {
	s := salvaged{}
	format := o.FormatMajorVersion.MaxTableFormat()
	r, err := openTable(file, o)
	if err == nil {
		defer r.Close()
		if format, err = r.TableFormat(); err != nil {
			return salvaged{}, err
		}
	}
	writer := o.MakeWriterOptions(0, format)
	if profile != nil {
		writer.Compression = profile
	}
	out := &memoryTable{}
	w := sstable.NewRawWriter(out, writer)
	if r == nil || err != nil {
		s.lost = append(s.lost, bounds)
	} else if err := s.copyPoints(r, file, w, bounds); err != nil {
		return salvaged{}, errors.Join(err, w.Close())
	} else if err := s.copyRangeDeletions(r, w, bounds); err != nil {
		return salvaged{}, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return salvaged{}, err
	}
	s.table = out.Bytes()
	return s, nil
}

// copyPoints copies all entries of blocks that can be read.
func (s *salvaged) copyPoints(r *sstable.Reader, file *tableFile, w sstable.RawWriter, bounds keySpan) error {
	last := bounds.after
	for next := []byte(nil); ; {
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		if err != nil {
			s.lost = append(s.lost, bounds)
			return nil
		}
		kv := it.SeekGE(next, 0)
		for ; kv != nil; kv = it.Next() {
			value, _, err := kv.Value(nil)
			if err != nil {
				s.lost = append(s.lost, keySpan{last, bytes.Clone(kv.K.UserKey)})
				continue
			}
			if err := w.Add(kv.K, value, false); err != nil {
				return errors.Join(err, it.Close())
			}
			last = bytes.Clone(kv.K.UserKey)
		}
		failed := it.Error()
		_ = it.Close()
		if failed == nil {
			return nil
		}
		file.bad[blockOf(failed)] = true
		next = behindBlock(r, last, failed)
		s.lost = append(s.lost, keySpan{last, next})
		if next == nil {
			return nil
		}
	}
}

func (s *salvaged) copyRangeDeletions(r *sstable.Reader, w sstable.RawWriter, bounds keySpan) error {
	it, err := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil {
		s.lost = append(s.lost, bounds)
		return nil
	}
	if it == nil {
		return nil
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil; span, err = it.Next() {
		if err := w.EncodeSpan(*span); err != nil {
			return err
		}
	}
	if err != nil {
		s.lost = append(s.lost, bounds)
	}
	return nil
}

// longestKey is how many bytes of a key behindBlock tells apart.
const longestKey = recordKeyLen

// behindBlock finds the first key whose search does not come upon the damaged block that a search beyond last came upon; nil if there is none.
func behindBlock(r *sstable.Reader, last []byte, failed error) []byte {
	name := blockOf(failed)
	beyond := func(n *big.Int) bool {
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		if err != nil {
			return false
		}
		it.SeekGE(numberKey(n), 0)
		err = it.Error()
		_ = it.Close()
		return err == nil || blockOf(err) != name
	}
	low, high := keyNumber(last), new(big.Int).Lsh(big.NewInt(1), 8*longestKey)
	high.Sub(high, big.NewInt(1))
	for {
		middle := new(big.Int).Add(low, high)
		middle.Rsh(middle, 1)
		if middle.Cmp(low) == 0 {
			break
		}
		if beyond(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	key := numberKey(high)
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil
	}
	defer it.Close()
	if kv := it.SeekGE(key, 0); kv != nil {
		return bytes.Clone(kv.K.UserKey)
	}
	if it.Error() != nil {
		return key // another damaged block
	}
	return nil
}

func keyNumber(key []byte) *big.Int {
	var b [longestKey]byte
	copy(b[:], key)
	return new(big.Int).SetBytes(b[:])
}

func numberKey(n *big.Int) []byte {
	var b [longestKey]byte
	return bytes.TrimRight(n.FillBytes(b[:]), "\x00")
}

// stretch makes a table longer.
func stretch(table []byte, size int, o *pebble.Options) ([]byte, error) {
	r, err := openTable(&tableFile{content: table}, o)
	if err != nil {
		return nil, err
	}
	layout, err := r.Layout()
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	footer := int(layout.Footer.Offset)
	table = slices.Concat(table[:footer], make([]byte, size-len(table)), table[footer:])
	return table, checkTable(table, o)
}

func openTable(f *tableFile, o *pebble.Options) (*sstable.Reader, error) {
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, err
	}
	return sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
}

// tableFile is a table in memory. Blocks that are known to be bad it does not let Pebble read, which would look long for what is wrong.
type tableFile struct {
	content []byte
	bad     map[string]bool // names, see blockOf
}

func (f *tableFile) ReadAt(p []byte, off int64) (int, error) {
	if name := blockName(uint64(off), uint64(len(p)-blockTrailer)); f.bad[name] {
		return 0, fmt.Errorf("%s: %w", name, ErrDamaged)
	}
	return bytes.NewReader(f.content).ReadAt(p, off)
}

func (f *tableFile) Close() error { return nil }

func (f *tableFile) Stat() (vfs.FileInfo, error) {
	m := vfs.NewMem()
	if err := writeFile(m, "table", string(f.content)); err != nil {
		return nil, err
	}
	return m.Stat("table")
}

// memoryTable takes what a table writer writes.
type memoryTable struct{ bytes.Buffer }

func (m *memoryTable) Write(p []byte) error {
	_, err := m.Buffer.Write(p)
	return err
}

func (m *memoryTable) Finish() error { return nil }
func (m *memoryTable) Abort()        {}
