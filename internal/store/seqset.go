package store

// seqSet is a set of sequence numbers, small where they are dense. The zero value is empty.
type seqSet struct{ words map[uint64]uint64 }

func (s *seqSet) add(n uint64) {
	if s.words == nil {
		s.words = make(map[uint64]uint64)
	}
	s.words[n>>6] |= 1 << (n & 63)
}

func (s *seqSet) has(n uint64) bool { return s.words[n>>6]&(1<<(n&63)) != 0 }

func (s *seqSet) remove(n uint64) {
	w, ok := s.words[n>>6]
	if !ok {
		return
	}
	if w &^= 1 << (n & 63); w == 0 {
		delete(s.words, n>>6)
	} else {
		s.words[n>>6] = w
	}
}

// removeSpan removes all n with lo <= n < hi.
func (s *seqSet) removeSpan(r span) {
	for i, w := range s.words {
		for bit := range uint64(64) {
			if r.contains(i<<6 | bit) {
				w &^= 1 << bit
			}
		}
		if w == 0 {
			delete(s.words, i)
		} else {
			s.words[i] = w
		}
	}
}
