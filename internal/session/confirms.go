package session

// confirms turns the outcomes of published messages into basic.ack and basic.nack,
// gathering acks that follow one another into one with multiple set. An ack with
// multiple set never reaches over a message that was nacked: clients keep only the
// last word on a message.
type confirms struct {
	emit  func(tag uint64, multiple, ack bool)
	low   uint64          // all before are resolved
	ahead map[uint64]bool // resolved before their predecessors; whether acked

	// Acks that are not emitted yet: the last one, and how many there are.
	top   uint64
	fresh int
}

func newConfirms(emit func(tag uint64, multiple, ack bool)) confirms {
	return confirms{emit: emit, low: 1}
}

// resolve records the outcome of the message with that sequence number. Each has
// one outcome. Acks in order are emitted by flush, all else at once.
func (c *confirms) resolve(seq uint64, ack bool) {
	if seq != c.low {
		if c.ahead == nil {
			c.ahead = map[uint64]bool{}
		}
		c.ahead[seq] = ack
		c.emit(seq, false, ack)
		return
	}
	c.low++
	if ack {
		c.top = seq
		c.fresh++
	} else {
		c.flush()
		c.emit(seq, false, false)
	}
	for len(c.ahead) > 0 {
		ack, resolved := c.ahead[c.low]
		if !resolved {
			return
		}
		delete(c.ahead, c.low)
		if !ack {
			c.flush()
		}
		c.low++
	}
}

// resolved is how many messages have had their outcome.
func (c *confirms) resolved() uint64 { return c.low - 1 + uint64(len(c.ahead)) }

// flush emits the acks that have been gathered.
func (c *confirms) flush() {
	if c.fresh > 0 {
		c.emit(c.top, c.fresh > 1, true)
		c.fresh = 0
	}
}
