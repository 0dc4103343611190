package store

import "errors"

// purge removes a range of records of one queue. The counters stay exact: what is removed is counted, or all that stays, whichever
// is less work.
func (w *batchWriter) purge(o *op, index int) error {
	st := w.s.touch(o.q, w.g)
	r := span{o.seq, o.more.to}
	for _, space := range [...]byte{spaceDurable, spaceTransient} {
		messages, _ := st.next.of(space)
		if *messages == 0 {
			continue
		}
		gone := o.more.known
		if !o.known || space == spaceTransient {
			var err error
			gone, err = w.count(st, space, r, index)
			if err = w.tolerate(err); err != nil {
				return err
			}
		}
		if err := w.deleteRecords(st, space, r, gone.messages, index); err != nil {
			return err
		}
		st.next.take(space, gone.messages, gone.bytes)
		if space == spaceDurable {
			st.removed += gone.messages
			if r.lo <= st.next.head {
				st.next.head = max(st.next.head, min(r.hi, st.next.NextSeq))
			}
		}
	}
	st.transient.removeSpan(r)
	return nil
}

// drop removes a queue.
func (w *batchWriter) drop(o *op, index int) error {
	st := w.s.touch(o.q, w.g)
	for _, space := range [...]byte{spaceDurable, spaceTransient} {
		messages, _ := st.next.of(space)
		if *messages == 0 && st.next.marksOf(space).empty() {
			continue
		}
		if err := w.deleteRecords(st, space, span{0, maxSeq}, *messages, index); err != nil {
			return err
		}
	}
	st.next, st.transient, st.dropped = tally{}, seqSet{}, true
	return nil
}

// deleteRecords deletes the records of a queue in r, of which there are so many, and their marks. Few are deleted one by one: a range
// deletion is a burden to all readers until it has been compacted.
func (w *batchWriter) deleteRecords(st *queueState, space byte, r span, messages uint64, index int) error {
	w.durable = w.durable || space == spaceDurable
	if space == spaceDurable {
		r.lo = max(r.lo, min(st.now.head, st.next.head))
	}
	if messages > w.s.tuning.fewRecords {
		w.deleteSpan(space, st.id, r)
		return nil
	}
	for i := range index { // what the batch has
		o := &w.g.ops[i]
		if o.q != st.id || o.space != space || !r.contains(o.seq) {
			continue
		}
		switch o.kind {
		case opPut:
			if !o.put.cancelled {
				_ = w.b.Delete(w.recordKey(space, o.q, o.seq, partRecord), nil)
			}
		case opMark:
			_ = w.b.Delete(w.recordKey(space, o.q, o.seq, partMark), nil)
		}
	}
	err := w.e.eachRecordKey(space, st.id, r, func(key []byte) { _ = w.b.Delete(key, nil) })
	if errors.Is(err, ErrDamaged) {
		w.deleteSpan(space, st.id, r)
	}
	return w.tolerate(err)
}

// tolerate reports damage, and forgets it: what is damaged must not keep anybody from removing it. The counters of its queue are not exact
// any more.
func (w *batchWriter) tolerate(err error) error {
	if errors.Is(err, ErrDamaged) {
		w.s.logger.Error("cannot read what is removed", "err", err)
		return nil
	}
	return err
}

// amount is a number of records and their size.
type amount struct{ messages, bytes uint64 }

// count counts the records of a queue in r, as of the operations of the group before index. It reads what is inside r and what is
// outside in turn; the side that ends first gives the answer.
func (w *batchWriter) count(st *queueState, space byte, r span, index int) (amount, error) {
	head := uint64(0)
	if space == spaceDurable {
		head = st.now.head // on disk there is nothing below
	}
	purged := w.purgesBefore(st.id, index)
	inside := w.tallyOf(space, st.id, purged, span{max(r.lo, head), r.hi})
	outside := w.tallyOf(space, st.id, purged, span{head, r.lo}, span{r.hi, maxSeq})
	defer inside.close()
	defer outside.close()
	for {
		if !inside.step() {
			w.adjust(&inside.amount, st.id, space, purged, index, r.contains)
			return inside.amount, inside.failed
		}
		if !outside.step() {
			w.adjust(&outside.amount, st.id, space, purged, index, func(seq uint64) bool { return !r.contains(seq) })
			messages, bytes := st.next.of(space)
			return amount{*messages - outside.messages, *bytes - outside.bytes}, outside.failed
		}
	}
}

// adjust corrects what was counted on disk by what the operations of the group before index change.
func (w *batchWriter) adjust(a *amount, q QueueID, space byte, purged purges, index int, counts func(seq uint64) bool) {
	for i := range index {
		o := &w.g.ops[i]
		if o.q != q || o.space != space || !counts(o.seq) {
			continue
		}
		switch {
		case o.kind == opPut && !o.put.cancelled && !purged.contain(o.seq, i, index):
			a.messages++
			a.bytes += uint64(o.size)
		case o.kind == opRemove && !purged.contain(o.seq, 0, i):
			a.messages--
			a.bytes -= uint64(o.size)
		}
	}
}

// purges are the ranges of one queue that operations of a group drop.
type purges []struct {
	index int
	span
}

func (w *batchWriter) purgesBefore(q QueueID, index int) purges {
	var all purges
	for i := range index {
		o := &w.g.ops[i]
		switch {
		case o.q != q:
		case o.kind == opPurge:
			all = append(all, struct {
				index int
				span
			}{i, span{o.seq, o.more.to}})
		case o.kind == opDrop:
			all = append(all, struct {
				index int
				span
			}{i, span{0, maxSeq}})
		}
	}
	return all
}

// contain reports whether an operation whose index is from or greater, and less than to, drops seq.
func (p purges) contain(seq uint64, from, to int) bool {
	for _, r := range p {
		if from <= r.index && r.index < to && r.contains(seq) {
			return true
		}
	}
	return false
}

// counting adds up the records on disk in some ranges, without those that the group has purged before.
type counting struct {
	amount
	parts  []*cursor
	purged purges
	failed error
}

func (w *batchWriter) tallyOf(space byte, q QueueID, purged purges, ranges ...span) *counting {
	c := &counting{purged: purged}
	for _, r := range ranges {
		c.parts = append(c.parts, openCursor(w.e, space, q, r))
	}
	return c
}

// step counts one record more, and reports whether there was one.
func (c *counting) step() bool {
	for ; len(c.parts) > 0; c.parts = c.parts[1:] {
		part := c.parts[0]
		if part.next() {
			if !c.purged.contain(part.seq, 0, 1<<62) {
				c.messages++
				c.bytes += uint64(part.size())
			}
			return true
		}
		if c.failed = part.close(); c.failed != nil {
			return false
		}
	}
	return false
}

func (c *counting) close() {
	for _, part := range c.parts {
		_ = part.close()
	}
}
